#include <gtest/gtest.h>

#include "mock_kafka.h"
#include "stream/kafka/source.h"
#include "stream/kafka/waker.h"

namespace tacit::stream {
namespace {

using namespace std::chrono_literals;
using TimePoint = Clock::TimePoint;

constexpr size_t kMessages = 1000, kBytes = 100'000;
constexpr TimePoint kThen{1h};

TEST(FetchWaker, IsNotDueWhileTheQueueWasNeverFull) {
  FetchWaker waker(kMessages, kBytes);
  for (size_t left : {400u, 200u, 10u, 0u})
    EXPECT_FALSE(waker.IsDue(50, 50 * 10, left, kThen)) << left;
  EXPECT_FALSE(waker.IsDue(0, 0, 0, kThen));
}

TEST(FetchWaker, IsDueWhenHalfOfAFullQueueIsUsedUpAndForEachHalfAfterThat) {
  FetchWaker waker(kMessages, kBytes);
  TimePoint now = kThen;
  const auto due = [&](size_t left) { return waker.IsDue(10, 10, left, now += 1s); };
  EXPECT_FALSE(due(990));
  EXPECT_FALSE(due(600));
  EXPECT_TRUE(due(499));
  EXPECT_FALSE(due(400));
  EXPECT_TRUE(due(240));
  EXPECT_TRUE(due(0));
  EXPECT_FALSE(due(0)) << "a reader that was woken for an empty queue fetches";
  EXPECT_FALSE(due(990)) << "full again";
  EXPECT_TRUE(due(0));
}

// With large values a queue is full of bytes before it is full of messages.
TEST(FetchWaker, GoesByTheWeightOfWhatWasTaken) {
  FetchWaker waker(kMessages, kBytes);
  EXPECT_FALSE(waker.IsDue(10, 20'000, 40, kThen));
  EXPECT_TRUE(waker.IsDue(10, 20'000, 20, kThen));
  // All of it at once.
  FetchWaker other(kMessages, kBytes);
  EXPECT_TRUE(other.IsDue(60, 60'000, 0, kThen));
}

TEST(FetchWaker, DoesNotWakeMoreOftenThanItHelps) {
  FetchWaker waker(kMessages, kBytes);
  EXPECT_TRUE(waker.IsDue(900, 900, 400, kThen));
  EXPECT_FALSE(waker.IsDue(200, 200, 200, kThen + 1ms));
  EXPECT_FALSE(waker.IsDue(200, 200, 0, kThen + 2ms));
  EXPECT_TRUE(waker.IsDue(0, 0, 0, kThen + 20ms)) << "it was due all the time";
}

// The queue is full hundreds of times, and the fetcher, unless it is woken, asleep each time. By
// count, on any machine: to wait so long costs tens of thousands of polls.
TEST(FetchWaker, ASmallQueueIsReadWithoutWaitingForTheFetcher) {
  constexpr int kRecords = 4000;
  MockKafka kafka;
  kafka.Create("t", 1);
  for (int i = 0; i < kRecords; ++i) {
    kafka.Write("t", 0, std::string(1000, 'x'));
    if (i % 5 == 4) kafka.Flush();  // a batch
  }
  KafkaSourceOptions options;
  options.properties.values = {{"bootstrap.servers", kafka.bootstrap()},
                               {"group.id", "tacit"},
                               {"queued.min.messages", "5"},
                               {"fetch.message.max.bytes", "10000"}};
  options.topic = "t";
  const auto source = OpenKafkaSource(options, nullptr);
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE((*source)->Seek({}));
  size_t records = 0;
  for (int polls = 0; records < kRecords && polls < 20'000; ++polls) {
    event::RawRecords frame;
    ASSERT_TRUE((*source)->Poll(5ms, &frame));
    records += frame.size();
  }
  EXPECT_EQ(records, size_t{kRecords});
}

}  // namespace
}  // namespace tacit::stream
