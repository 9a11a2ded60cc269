// Streams, events and graphs. On the emulated device streams run late and in any order that events
// allow; on a real one at the same time.
#include "cuda/device/stream.h"

#include <gtest/gtest.h>

#include "cuda/device/graph.h"
#include "cuda/device/kept_graphs.h"
#include "unit/cuda/trial_device.h"
#include "unit/cuda/trial_kernels.h"

namespace tacit::cuda::testing {
namespace {

class StreamTest : public OnDevice {
 protected:
  Stream Another() {
    auto stream = Stream::Make(*device_);
    EXPECT_TRUE(stream) << stream.error().message;
    return std::move(*stream);
  }
  Event MakeEvent() {
    auto event = Event::Make(*device_);
    EXPECT_TRUE(event) << event.error().message;
    return std::move(*event);
  }
};

TEST_F(StreamTest, WorkIsDoneInOrder) {
  if (device_ == nullptr) return;
  const auto x = ToDevice(Counted(200));
  ASSERT_TRUE(AddScaled(*stream_, x.span(), 3, 1));
  ASSERT_TRUE(AddScaled(*stream_, x.span(), 5, 2));
  ASSERT_TRUE(stream_->Fill(x.span().Sub(0, 1), 0xff));
  auto want = Counted(200);
  for (uint32_t& n : want) n = 5 * (3 * n + 1) + 2;
  want[0] = 0xffffffff;
  EXPECT_EQ(FromDevice(x), want);
}

TEST_F(StreamTest, StreamThatGoesHasDoneItsWork) {
  if (device_ == nullptr) return;
  const auto x = Make<uint32_t>(64);
  std::vector<uint32_t> home(64);
  {
    Stream other = Another();
    ASSERT_TRUE(other.Fill(x.span(), 7));
    ASSERT_TRUE(other.Download(x.span(), std::span<uint32_t>(home)));
  }
  // The thread sanitizer sees whether the end has waited.
  EXPECT_EQ(home, std::vector<uint32_t>(64, 0x07070707));
}

TEST_F(StreamTest, CopiesOfNothingAreNothing) {
  if (device_ == nullptr) return;
  const auto none = Make<uint32_t>(0);
  EXPECT_EQ(none.span().data, nullptr);
  EXPECT_TRUE(stream_->Fill(none.span(), 1));
  EXPECT_TRUE(FromDevice(none).empty());
}

TEST_F(StreamTest, BufferThatWasMovedFromHasNothing) {
  if (device_ == nullptr) return;
  auto from = Make<uint32_t>(5);
  const auto to = std::move(from);
  EXPECT_EQ(to.size(), 5u);
  EXPECT_EQ(from.size(), 0u);  // NOLINT: that is the question
  EXPECT_EQ(from.span().data, nullptr);
}

TEST_F(StreamTest, EventOrdersTwoStreams) {
  if (device_ == nullptr) return;
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto x = ToDevice(Counted(500));
    const auto copy = Make<uint32_t>(500);
    Stream other = Another();
    Event written = MakeEvent(), read = MakeEvent();
    ASSERT_TRUE(AddScaled(*stream_, x.span(), 7, 3));
    ASSERT_TRUE(stream_->Record(written));
    ASSERT_TRUE(other.Wait(written));
    ASSERT_TRUE(other.CopyOnDevice<uint32_t>(x.span(), copy.span()));
    ASSERT_TRUE(other.Record(read));
    ASSERT_TRUE(stream_->Wait(read));
    ASSERT_TRUE(AddScaled(*stream_, x.span(), 0, 9));
    auto want = Counted(500);
    for (uint32_t& n : want) n = 7 * n + 3;
    std::vector<uint32_t> got(500);
    ASSERT_TRUE(other.Download(copy.span(), std::span<uint32_t>(got)));
    ASSERT_TRUE(other.Synchronize());
    ASSERT_EQ(got, want) << "order " << order;
    ASSERT_EQ(FromDevice(x), std::vector<uint32_t>(500, 9)) << "order " << order;
  }
}

TEST_F(StreamTest, EventThatWasNeverRecordedHoldsNobodyUp) {
  if (device_ == nullptr) return;
  Event event = MakeEvent();
  ASSERT_TRUE(stream_->Wait(event));
  EXPECT_TRUE(event.Synchronize());
  EXPECT_TRUE(stream_->Synchronize());
}

TEST_F(StreamTest, HostWaitsForAnEvent) {
  if (device_ == nullptr) return;
  auto staging = HostBuffer<uint32_t>::Make(*device_, 64);
  ASSERT_TRUE(staging);
  const auto x = ToDevice(Counted(64));
  Event home = MakeEvent();
  ASSERT_TRUE(AddScaled(*stream_, x.span(), 2, 0));
  ASSERT_TRUE(stream_->Download(x.span(), staging->span()));
  ASSERT_TRUE(stream_->Record(home));
  ASSERT_TRUE(home.Synchronize());
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(staging->span()[i], 2 * (i + 1));
}

TEST_F(StreamTest, GraphDoesItsWorkAtEachLaunchAndNotBefore) {
  if (device_ == nullptr) return;
  const auto x = ToDevice(Counted(100));
  auto graph = Graph::Capture(*stream_, [&](Stream& stream) -> Status {
    TACIT_RETURN_IF_ERROR(AddScaled(stream, x.span(), 3, 1));
    return AddScaled(stream, x.span(), 2, 5);
  });
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(FromDevice(x), Counted(100));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(graph->Launch(*stream_));
  auto want = Counted(100);
  for (int i = 0; i < 3; ++i)
    for (uint32_t& n : want) n = 2 * (3 * n + 1) + 5;
  EXPECT_EQ(FromDevice(x), want);
}

// Two lanes of a graph, each of which waits for the other once.
TEST_F(StreamTest, GraphOfTwoStreamsKeepsTheirOrder) {
  if (device_ == nullptr) return;
  auto beside = Stream::Make(*device_);
  ASSERT_TRUE(beside);
  Event fork = MakeEvent(), half = MakeEvent(), join = MakeEvent();
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto x = ToDevice(Counted(100)), y = ToDevice(Counted(100));
    auto graph = Graph::Capture(*stream_, [&](Stream& stream) -> Status {
      TACIT_RETURN_IF_ERROR(AddScaled(stream, x.span(), 3, 1));
      TACIT_RETURN_IF_ERROR(stream.Record(fork));
      TACIT_RETURN_IF_ERROR(beside->Wait(fork));
      TACIT_RETURN_IF_ERROR(beside->CopyOnDevice<uint32_t>(x.span(), y.span()));
      TACIT_RETURN_IF_ERROR(beside->Record(half));
      TACIT_RETURN_IF_ERROR(AddScaled(*beside, y.span(), 2, 5));
      TACIT_RETURN_IF_ERROR(beside->Record(join));
      TACIT_RETURN_IF_ERROR(stream.Wait(half));
      TACIT_RETURN_IF_ERROR(AddScaled(stream, x.span(), 2, 5));
      return stream.Wait(join);
    });
    ASSERT_TRUE(graph) << graph.error().message;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(graph->Launch(*stream_));
    auto want = Counted(100);
    for (int i = 0; i < 3; ++i)
      for (uint32_t& n : want) n = 2 * (3 * n + 1) + 5;
    EXPECT_EQ(FromDevice(y), want);
    EXPECT_EQ(FromDevice(x), want);
  }
}

TEST_F(StreamTest, KeptGraphsAreOfTheSameWorkToTheByte) {
  if (device_ == nullptr) return;
  auto beside = Stream::Make(*device_);
  ASSERT_TRUE(beside);
  KeptGraphs graphs(*stream_, *beside);
  const auto x = ToDevice(Counted(100));
  auto want = Counted(100);
  const auto run = [&](uint32_t factor, size_t n) {
    ASSERT_TRUE(graphs.Run([&] { return AddScaled(*stream_, x.span().Sub(0, n), factor, 1); }));
    for (size_t i = 0; i < n; ++i) want[i] = factor * want[i] + 1;
  };
  for (const uint32_t factor : {3u, 3u, 3u, 5u, 3u, 5u}) run(factor, 100);
  EXPECT_EQ(graphs.captured(), 2u);
  EXPECT_EQ(graphs.launched(), 4u);
  run(3, 99);  // other work, though the kernel is the same
  EXPECT_EQ(graphs.launched(), 4u);
  run(3, 99);
  EXPECT_EQ(graphs.captured(), 3u);
  EXPECT_EQ(FromDevice(x), want);
  // The one that was not used for the longest time goes.
  for (uint32_t factor = 10; factor < 10 + KeptGraphs::kMost; ++factor)
    for (int twice = 0; twice < 2; ++twice) run(factor, 100);
  const uint64_t captured = graphs.captured();
  run(11, 100);
  EXPECT_EQ(graphs.captured(), captured);
  for (int twice = 0; twice < 2; ++twice) run(3, 100);
  EXPECT_EQ(graphs.captured(), captured + 1);
  EXPECT_EQ(FromDevice(x), want);
  const auto failed = graphs.Run([] { return Fail(ErrorCode::kInternal, "changed its mind"); });
  ASSERT_FALSE(failed);
  run(3, 100);
  EXPECT_EQ(FromDevice(x), want);
}

TEST_F(StreamTest, FailedCaptureLeavesTheStreamUsable) {
  if (device_ == nullptr) return;
  const auto x = ToDevice(Counted(10));
  const auto failed = Graph::Capture(*stream_, [&](Stream& stream) -> Status {
    TACIT_RETURN_IF_ERROR(AddScaled(stream, x.span(), 3, 1));
    return Fail(ErrorCode::kInternal, "changed its mind");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "changed its mind");
  EXPECT_EQ(FromDevice(x), Counted(10));
}

TEST_F(StreamTest, ForkedChildIsStopped) {
  if (device_ == nullptr) return;
  // Forks here, where the device is open, and not before as "threadsafe" would.
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH((void)stream_->Synchronize(), "a forked child must not use its parent's device");
}

}  // namespace
}  // namespace tacit::cuda::testing
