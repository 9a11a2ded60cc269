#include "console/standard_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "console/exit_code.h"

namespace tacit::console {
namespace {

TEST(RunWithOutputTest, ReturnsTheCodeOfItsBody) {
  EXPECT_EQ(RunWithOutput("tacit", [] { return 3; }), 3);
}

// An exception that nobody caught leaves one line and a status, no aborted process.
TEST(RunWithOutputTest, AnExceptionIsOneLineAndAFailure) {
  testing::internal::CaptureStderr();
  const int code = RunWithOutput(
      "tacit", []() -> int { throw std::runtime_error("the library says\n\x1b[2Jno"); });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, kExitFailed);
  EXPECT_THAT(said, testing::StartsWith("tacit: "));
  EXPECT_THAT(said, testing::HasSubstr("the library says"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;

  testing::internal::CaptureStderr();
  const int other = RunWithOutput("tacitd", []() -> int {
    throw std::system_error(std::make_error_code(std::errc::not_a_directory), "/nope");
  });
  EXPECT_EQ(other, kExitFailed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("tacitd: /nope: "));
}

}  // namespace
}  // namespace tacit::console
