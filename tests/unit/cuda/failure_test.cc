// A device that fails: at every call of a piece of work in turn, with errors that lose the device
// and with others. And faults of order between streams, which the emulated device lets show.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "cuda/device/buffer.h"
#include "cuda/device/emulated.h"
#include "cuda/device/emulator.h"
#include "cuda/device/errors.h"
#include "cuda/device/graph.h"
#include "unit/cuda/trial_device.h"
#include "unit/cuda/trial_kernels.h"

namespace tacit::cuda::testing {
namespace {

// One of everything; the sum of what came home.
Result<uint64_t> WorkOnce() {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  TACIT_ASSIGN(Stream other, Stream::Make(*device));
  TACIT_ASSIGN(Event event, Event::Make(*device));
  TACIT_ASSIGN(const auto numbers, Buffer<uint32_t>::Make(*device, 128));
  TACIT_ASSIGN(const auto reversed, Buffer<uint32_t>::Make(*device, 128));
  TACIT_ASSIGN(const auto staging, HostBuffer<uint32_t>::Make(*device, 128));
  const auto x = numbers.span(), y = reversed.span();
  for (uint32_t i = 0; i < 128; ++i) staging.span()[i] = i;
  TACIT_RETURN_IF_ERROR(stream.Upload<uint32_t>(staging.span(), x));
  TACIT_ASSIGN(Graph graph, Graph::Capture(stream, [&](Stream& s) -> Status {
                 TACIT_RETURN_IF_ERROR(AddScaled(s, x, 2, 1));
                 return Reverse(s, x, y);
               }));
  TACIT_RETURN_IF_ERROR(graph.Launch(stream));
  TACIT_RETURN_IF_ERROR(stream.Record(event));
  TACIT_RETURN_IF_ERROR(other.Wait(event));
  TACIT_RETURN_IF_ERROR(other.Download(y, staging.span()));
  TACIT_RETURN_IF_ERROR(other.Synchronize());
  for (const auto& one : {x, y}) TACIT_RETURN_IF_ERROR(stream.Fill(one, 0));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  uint64_t sum = 0;
  for (const uint32_t n : staging.span()) sum += n;
  return sum;
}

constexpr uint64_t kSum = 128 * 127 + 128;

TEST(Failures, EveryCallMayFailAndNothingIsLeaked) {
  emulated::Reset();
  const auto whole = WorkOnce();
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(*whole, kSum);
  const uint64_t calls = emulated::Calls();
  ASSERT_GT(calls, 20u);
  for (const int code : {code::kMemoryAllocation, code::kLaunchFailure}) {
    for (uint64_t n = 1; n <= calls; ++n) {
      SCOPED_TRACE(fmt::format("call {} fails with {}", n, code));
      emulated::Reset();
      emulated::FailCall(n, code);
      const auto failed = WorkOnce();
      // The driver's version is only asked for messages.
      if (n == 1 && !LosesDevice(code)) {
        EXPECT_TRUE(failed);
      } else {
        ASSERT_FALSE(failed);
        EXPECT_NE(failed.error().message, "");
      }
      EXPECT_EQ(emulated::BytesTaken(), 0u);
    }
  }
  emulated::Reset();
  EXPECT_EQ(WorkOnce().value_or(0), kSum);
}

TEST(Failures, LostDeviceStaysLostAndSaysWhatLostIt) {
  auto device = OpenTrialDevice();
  auto stream = Stream::Make(*device);
  auto x = Buffer<uint32_t>::Make(*device, 10);
  emulated::FailCall(1, code::kIllegalAddress);
  const Status first = AddScaled(*stream, x->span(), 1, 1);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message,
            "GPU 0: launching AddScaled with 1 x 1 x 1 blocks of 64 x 1 x 1 threads and 0 bytes: "
            "cudaErrorIllegalAddress, as a test asked for; the device is lost to this process, "
            "which must be restarted");
  EXPECT_EQ(first.error().code, ErrorCode::kInternal);
  for (const Status& later : {stream->Synchronize(), stream->Fill(x->span(), 0), device->Health(),
                              AddScaled(*stream, x->span(), 1, 1)}) {
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().message, first.error().message);
  }
}

TEST(Failures, OtherFailuresPass) {
  auto device = OpenTrialDevice();
  auto stream = Stream::Make(*device);
  emulated::FailCall(1, code::kMemoryAllocation);
  const auto failed = Buffer<uint32_t>::Make(*device, 10);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(failed.error().message.find("taking 40 bytes of its memory (1073741824 of 1073741824 "
                                        "are free): cudaErrorMemoryAllocation"),
            std::string::npos)
      << failed.error().message;
  EXPECT_TRUE(device->Health());
  EXPECT_TRUE(Buffer<uint32_t>::Make(*device, 10));
}

// A stream reads what another writes. With the wait that a real engine needs, and without.
std::vector<uint32_t> ReadWhatAnotherWrites(bool wait) {
  auto device = OpenDevice(0);
  auto writer = Stream::Make(**device), reader = Stream::Make(**device);
  auto event = Event::Make(**device);
  auto x = Buffer<uint32_t>::Make(**device, 64);
  std::vector<uint32_t> got(64);
  EXPECT_TRUE(writer->Fill(x->span(), 0));
  EXPECT_TRUE(writer->Synchronize());
  EXPECT_TRUE(AddScaled(*writer, x->span(), 1, 5));
  EXPECT_TRUE(writer->Record(*event));
  if (wait) {
    EXPECT_TRUE(reader->Wait(*event));
  }
  EXPECT_TRUE(reader->Download(x->span(), std::span<uint32_t>(got)));
  EXPECT_TRUE(reader->Synchronize());
  return got;
}

TEST(MissingWait, ShowsInTheResultWhenStreamsAreLate) {
  const std::vector<uint32_t> right(64, 5);
  emulated::Reset();
  emulated::SetTurns(emulated::Turns::kLate);
  EXPECT_EQ(ReadWhatAnotherWrites(true), right);
#if !defined(__SANITIZE_THREAD__)  // which ends the process at the race
  emulated::Reset();
  emulated::SetTurns(emulated::Turns::kLate);
  EXPECT_NE(ReadWhatAnotherWrites(false), right);
#endif
}

TEST(MissingWait, ShowsUnderSomeOrderOfTurns) {
  const std::vector<uint32_t> right(64, 5);
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    emulated::Reset();
    emulator::SetSeed(seed);
    EXPECT_EQ(ReadWhatAnotherWrites(true), right) << "seed " << seed;
#if !defined(__SANITIZE_THREAD__)
    emulator::SetSeed(seed);
    wrong += ReadWhatAnotherWrites(false) != right;
  }
  EXPECT_GT(wrong, 0);
#else
  }
  EXPECT_EQ(wrong, 0);
#endif
}

#if defined(__SANITIZE_THREAD__)
TEST(MissingWait, IsNamedByTheThreadSanitizer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        emulated::Reset();
        (void)ReadWhatAnotherWrites(false);
        std::exit(0);
      },
      ::testing::ExitedWithCode(66), "data race");
}
#endif

// A host that does not wait before it reads what a stream brings. What it reads first, and then.
std::pair<uint32_t, uint32_t> ReadWithoutWaiting() {
  emulated::Reset();
  auto device = OpenDevice(0);
  auto stream = Stream::Make(**device);
  auto x = Buffer<uint32_t>::Make(**device, 4);
  auto staging = HostBuffer<uint32_t>::Make(**device, 4);
  EXPECT_TRUE(stream->Fill(x->span(), 0));
  EXPECT_TRUE(stream->Download(x->span(), staging->span()));
  const uint32_t first = staging->span()[0];
  EXPECT_TRUE(stream->Synchronize());
  return {first, staging->span()[0]};
}

#if defined(__SANITIZE_THREAD__)
TEST(MissingWait, OfTheHostIsNamedByTheThreadSanitizer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The value is used, or the compiler would leave the read out. Reports make 66 of 0.
  EXPECT_EXIT(std::exit(ReadWithoutWaiting().first == 1), ::testing::ExitedWithCode(66),
              "data race");
}
#else
TEST(MissingWait, HostSeesWhatWasNeverWritten) {
  EXPECT_EQ(ReadWithoutWaiting(), std::pair(0xCDCDCDCDu, 0u));
}
#endif

TEST(Graphs, TakeNothingButWorkOfTheirStream) {
  auto device = OpenTrialDevice();
  auto stream = Stream::Make(*device);
  auto other = Stream::Make(*device);
  auto event = Event::Make(*device);
  ASSERT_TRUE(other->Record(*event));
  for (const auto& wrong : std::vector<std::function<Status(Stream&)>>{
           [](Stream& s) { return s.Synchronize(); }, [&](Stream& s) { return s.Wait(*event); },
           [&](Stream& s) -> Status {
             TACIT_RETURN_IF_ERROR(s.Record(*event));
             return event->Synchronize();
           }}) {
    // Also where the work keeps its failure for itself.
    const auto graph = Graph::Capture(*stream, [&](Stream& s) -> Status {
      (void)wrong(s);
      return {};
    });
    ASSERT_FALSE(graph);
    EXPECT_NE(graph.error().message.find("cudaErrorStreamCaptureInvalidated"), std::string::npos)
        << graph.error().message;
  }
}

TEST(Graphs, EndBehindAllThatTheyTakeIn) {
  auto device = OpenTrialDevice();
  auto stream = Stream::Make(*device);
  auto other = Stream::Make(*device);
  auto fork = Event::Make(*device), join = Event::Make(*device);
  auto x = Buffer<uint32_t>::Make(*device, 64);
  const auto capture = [&](bool works_after_join, bool joins) {
    return Graph::Capture(*stream, [&](Stream& s) -> Status {
      TACIT_RETURN_IF_ERROR(s.Record(*fork));
      TACIT_RETURN_IF_ERROR(other->Wait(*fork));
      TACIT_RETURN_IF_ERROR(AddScaled(*other, x->span(), 2, 1));
      TACIT_RETURN_IF_ERROR(other->Record(*join));
      if (works_after_join) TACIT_RETURN_IF_ERROR(AddScaled(*other, x->span(), 2, 1));
      return joins ? s.Wait(*join) : Status();
    });
  };
  EXPECT_TRUE(capture(false, true));
  for (const auto& graph : {capture(true, true), capture(false, false)}) {
    ASSERT_FALSE(graph);
    EXPECT_NE(graph.error().message.find("cudaErrorStreamCaptureUnjoined"), std::string::npos)
        << graph.error().message;
  }
  // Both streams are as they were.
  EXPECT_TRUE(AddScaled(*other, x->span(), 2, 1));
  EXPECT_TRUE(other->Synchronize());
  EXPECT_TRUE(stream->Synchronize());
}

}  // namespace
}  // namespace tacit::cuda::testing
