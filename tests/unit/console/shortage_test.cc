#include "console/shortage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "console/exit_code.h"
#include "console/standard_streams.h"

namespace tacit::console {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

void ThrowNoMemory() { throw std::bad_alloc(); }
void ThrowNoThread() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}
void ThrowAnother() { throw std::logic_error("a fault of ours"); }

// The end of a process one of whose threads lets an exception out.
void LetOut(void (*thrower)()) {
  EndOnShortage();
  std::thread(thrower).join();
}

TEST(ShortageDeathTest, AThreadThatIsRefusedMemoryOrAThreadEndsTheProcessInOrder) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LetOut(ThrowNoMemory), ExitedWithCode(kExitFailed), "the system refused memory: ");
  EXPECT_EXIT(LetOut(ThrowNoThread), ExitedWithCode(kExitFailed), "the system refused a thread");
  EXPECT_EXIT(LetOut(ThrowAnother), testing::KilledBySignal(SIGABRT), "a fault of ours");
}

TEST(ShortageTest, TheMainThreadSaysTheSame) {
  const auto said = [](void (*thrower)()) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(RunWithOutput("tacitd", [&]() -> int { return thrower(), 0; }), kExitFailed);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(ThrowNoMemory), HasSubstr("tacitd: the system refused memory: "));
  EXPECT_THAT(said(ThrowNoThread), HasSubstr("tacitd: the system refused a thread"));
  EXPECT_THAT(said(ThrowAnother), HasSubstr("a fault of ours"));
}

}  // namespace
}  // namespace tacit::console
