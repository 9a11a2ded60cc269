// Ranges of a topic behind librdkafka's mock of a broker. The oracle is the list of what was
// written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/hash.h"
#include "mock_kafka.h"
#include "stream/kafka/range_source.h"

namespace tacit::stream {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr int kPartitions = 3, kRecords = 300;

class RangeSourceTest : public ::testing::Test {
 protected:
  RangeSourceTest() {
    kafka_.Create("events", kPartitions);
    for (int p = 0; p < kPartitions; ++p) kafka_.WriteNumbers("events", p, 1000 * p, kRecords);
  }
  std::unique_ptr<RangeSource> Open() {
    KafkaSourceOptions options;
    options.topic = "events";
    options.properties.values = {{"bootstrap.servers", kafka_.bootstrap()}, {"group.id", "g"}};
    auto source = OpenKafkaRanges(std::move(options), nullptr);
    EXPECT_TRUE(source) << source.error().message;
    return *std::move(source);
  }
  static std::string ValueOf(int32_t partition, uint64_t offset) {
    return std::to_string(1000 * partition + static_cast<int>(offset));
  }

  // Reads the ranges to their end, and checks each record.
  void ReadAll(RangeSource& source, const std::vector<OffsetRange>& ranges) {
    source.SetRanges(ranges);
    ASSERT_TRUE(source.Seek({}));
    std::vector<OffsetRange> due = ranges;  // what is still to come
    event::RawRecords frame;
    size_t periods = 0;
    while (true) {
      const auto polled = source.Poll(milliseconds(100), &frame);
      ASSERT_TRUE(polled) << polled.error().message;
      if (*polled == PollOutcome::kEnd) break;
      if (*polled == PollOutcome::kNothing) continue;
      periods += frame.period.empty() ? 0 : 1;
      for (size_t i = 0; i < frame.size(); ++i) {
        ASSERT_FALSE(due.empty());
        ASSERT_EQ(frame.partition, due[0].partition);
        ASSERT_EQ(frame.first_offset + i, due[0].begin);
        ASSERT_EQ(frame[i], ValueOf(frame.partition, due[0].begin));
        if (++due[0].begin == due[0].end) due.erase(due.begin());
      }
    }
    EXPECT_TRUE(due.empty());
    EXPECT_EQ(periods, 1u);
    ASSERT_EQ(source.read().size(), ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      const ReadRange& read = source.read()[i];
      EXPECT_EQ(read.range, ranges[i]);
      EXPECT_EQ(read.empty, 0u);
      ASSERT_EQ(read.before.has_value(), ranges[i].begin > 0);
      ASSERT_TRUE(read.last);
      ExpectRecord(*read.last, ranges[i].partition, ranges[i].end - 1);
      if (read.before) ExpectRecord(*read.before, ranges[i].partition, ranges[i].begin - 1);
    }
  }
  static void ExpectRecord(const LastRecord& record, int32_t partition, uint64_t offset) {
    EXPECT_EQ(record.offset, offset);
    EXPECT_EQ(record.hash, BucketHash(ValueOf(partition, offset), 0));
  }

  MockKafka kafka_;
};

TEST_F(RangeSourceTest, EachRangeIsReadOnceWithTheRecordBeforeIt) {
  const auto source = Open();
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<OffsetRange> ranges;
    for (int32_t p = 0; p < kPartitions; ++p) {
      if (random() % 4 == 0) continue;
      uint64_t at = random() % 3 == 0 ? 0 : random() % kRecords;
      for (int i = 0; i < 2 && at < kRecords; ++i) {
        const uint64_t end = at + 1 + random() % (kRecords - at);
        ranges.push_back({p, at, end});
        at = end + random() % 5;  // two ranges may meet
      }
    }
    if (ranges.empty()) continue;
    SCOPED_TRACE(seed);
    ReadAll(*source, ranges);
  }
}

TEST_F(RangeSourceTest, ASliceThatIsDroppedLeavesNothingForTheNext) {
  const auto source = Open();
  source->SetRanges({{0, 10, 300}, {1, 0, 300}});
  ASSERT_TRUE(source->Seek({}));
  event::RawRecords frame;
  ASSERT_TRUE(test::Eventually("records come", [&] {
    return source->Poll(milliseconds(50), &frame).value() == PollOutcome::kRecords;
  }));
  ReadAll(*source, {{0, 20, 30}, {2, 5, 9}});
}

TEST_F(RangeSourceTest, APausedSourceDeliversNothing) {
  const auto source = Open();
  source->SetRanges({{0, 0, 5}});
  ASSERT_TRUE(source->Seek({}));
  source->Pause({});
  event::RawRecords frame;
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(source->Poll(milliseconds(5), &frame).value(), PollOutcome::kNothing);
  source->Resume({});
  ASSERT_TRUE(test::Eventually("records come", [&] {
    return source->Poll(milliseconds(50), &frame).value() == PollOutcome::kRecords;
  }));
}

// The mock keeps 5 MiB of a partition.
TEST_F(RangeSourceTest, ARangeThatIsGoneIsRefusedByItsOffset) {
  for (int i = 0; i < 60; ++i) kafka_.Write("events", 1, std::string(200'000, 'x'));
  kafka_.Flush();
  const auto source = Open();
  source->SetRanges({{1, 3, 20}});
  ASSERT_TRUE(source->Seek({}));
  event::RawRecords frame;
  std::string why;
  ASSERT_TRUE(test::Eventually("it is refused", [&] {
    const auto polled = source->Poll(milliseconds(50), &frame);
    if (!polled) why = polled.error().message;
    return !polled;
  }));
  EXPECT_THAT(why, HasSubstr("topic 'events' partition 1: offset 3 is gone, the first is"));
  ReadAll(*source, {{0, 20, 30}});
}

}  // namespace
}  // namespace tacit::stream
