#include <gtest/gtest.h>

#include <random>

#include "broker_double.h"
#include "stream/kafka/range_reader.h"

namespace tacit::stream {
namespace {

using Outcome = KafkaRangeReader::Outcome;

// A reader of a topic on a script, whose client breaks now and then.
class Ranges {
 public:
  Ranges(const TopicScript& script, uint64_t seed) : broker_(script, {}, clock_, seed) {
    clock_.Advance(script.last_arrival_ms() + 100'000);
    for (size_t p = 0; p < script.partitions.size(); ++p)
      reader_.Start({.partition = static_cast<int32_t>(p)});
  }

  // Reads a range, or `takes` frames of it. Returns the offsets that came.
  std::vector<uint64_t> Read(const OffsetRange& range, uint64_t takes, Outcome* outcome) {
    std::vector<uint64_t> offsets;
    Status begun = reader_.Begin(broker_, range);
    EXPECT_TRUE(begun);
    for (*outcome = Outcome::kNothing; *outcome != Outcome::kDone && takes > 0;) {
      event::RawRecords frame;
      std::optional<LastRecord> last;
      const auto taken = reader_.Take(broker_, milliseconds(0), &frame, &last);
      if (!taken) {
        OpenAnew();
        continue;
      }
      *outcome = *taken;
      if (frame.size() > 0) {
        --takes;
        EXPECT_EQ(last->offset, frame.end_offset() - 1);
        EXPECT_EQ(frame.partition, range.partition);
      }
      for (size_t i = 0; i < frame.size(); ++i) offsets.push_back(frame.first_offset + i);
    }
    return offsets;
  }
  uint64_t empty() const { return reader_.empty(); }
  uint64_t next(int32_t partition) const { return reader_.Find(partition)->next(); }
  size_t breaks() const { return breaks_; }

 private:
  void OpenAnew() {
    ++breaks_;
    reader_.DropFetched();
    for (const auto& partition : reader_.partitions()) {
      EXPECT_TRUE(broker_.Seek(partition->id(), partition->next()));
      reader_.Start({.partition = partition->id(), .offset = partition->next()});
    }
  }

  SetClock clock_;
  BrokerDouble broker_;
  KafkaRangeReader reader_{{.topic = "t"}, clock_, nullptr};
  size_t breaks_ = 0;
};

std::vector<uint64_t> RecordsIn(const TopicScript& script, const OffsetRange& range) {
  std::vector<uint64_t> offsets;
  for (const auto& record : script.partitions[static_cast<size_t>(range.partition)])
    if (record.offset >= range.begin && record.offset < range.end) offsets.push_back(record.offset);
  return offsets;
}

// Ranges that lie anywhere, follow each other, come again, or are left in their midst.
TEST(KafkaRangeReaderTest, ReadsTheRecordsOfEachRangeOnce) {
  std::mt19937_64 random(1);
  const TopicScript script = TopicScript::Draw(random, 3, 1000);
  Ranges ranges(script, 1);
  uint64_t empty = 0, done = 0;
  OffsetRange range;
  for (int jump = 0; jump < 3000; ++jump) {
    SCOPED_TRACE(testing::Message() << "range " << jump);
    const auto end = [&] {
      return script.partitions[static_cast<size_t>(range.partition)].back().end;
    };
    const uint64_t kind = random() % 8;
    if (kind == 0) range.begin = std::exchange(range.end, std::min(range.end + 50, end()));
    if (kind > 1) {
      range.partition = static_cast<int32_t>(random() % 3);
      range.begin = random() % end();
      range.end = std::min(end(), range.begin + random() % 600);
    }
    Outcome outcome;
    const auto offsets = ranges.Read(range, random() % 3 == 0 ? 1 : 1'000'000, &outcome);
    if (outcome != Outcome::kDone) {
      range.end = ranges.next(range.partition);
    } else {
      ++done;
      empty += ranges.empty();
      ASSERT_EQ(ranges.empty(), range.size() - offsets.size());
      ASSERT_EQ(ranges.next(range.partition), range.end);
    }
    ASSERT_EQ(offsets, RecordsIn(script, range));
  }
  EXPECT_GT(done, 1000u);
  EXPECT_GT(empty, 1000u);
  EXPECT_GT(ranges.breaks(), 0u);
}

}  // namespace
}  // namespace tacit::stream
