// A reader of ranges that jumps from one to another, beside a real broker: over transactions that
// were committed and aborted, and over what the cleaner has taken. librdkafka 2.0 has lost records
// around jumps: a message that is left out would look like a hole.
//
// TACIT_RANGE_JUMPS is the number of jumps.
#include "stream/kafka/range_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "stream/kafka/reader.h"
#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/clients.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;
using stream::KafkaRangeReader;

constexpr int32_t kPartitions = 3;
constexpr int kTransactions = 400, kRecordsMost = 100;  // of a transaction

// The values of a topic's records by offset, for each partition.
using Contents = std::vector<std::map<uint64_t, std::string>>;

Contents Read(const Broker& broker, const std::string& topic) {
  Contents contents(kPartitions);
  for (const TopicRecord& record : ReadTopic(broker.bootstrap(), topic))
    contents[static_cast<size_t>(record.partition)][static_cast<uint64_t>(record.offset)] =
        record.value.value_or("");
  return contents;
}

size_t Count(const Contents& contents) {
  size_t count = 0;
  for (const auto& partition : contents) count += partition.size();
  return count;
}

// Transactions of different sizes, every third of them aborted, under keys that come again.
void WriteTransactions(const Broker& broker, const std::string& topic, std::mt19937_64& random,
                       size_t* committed) {
  const Client producer =
      MakeClient(RD_KAFKA_PRODUCER, broker.bootstrap(), {{"transactional.id", topic}});
  ASSERT_EQ(rd_kafka_init_transactions(producer.get(), 60'000), nullptr);
  int number = 0;
  for (int i = 0; i < kTransactions; ++i) {
    ASSERT_EQ(rd_kafka_begin_transaction(producer.get()), nullptr);
    const uint64_t records = 1 + random() % kRecordsMost;
    for (uint64_t left = records; left > 0; --left) {
      std::string key = std::to_string(random() % 4000), value = std::to_string(++number);
      value.resize(100 + random() % 1000, ' ');
      ASSERT_EQ(
          rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                            RD_KAFKA_V_PARTITION(static_cast<int32_t>(random() % kPartitions)),
                            RD_KAFKA_V_KEY(key.data(), key.size()),
                            RD_KAFKA_V_VALUE(value.data(), value.size()),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
          RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    if (i % 3 != 1) {
      ASSERT_EQ(rd_kafka_commit_transaction(producer.get(), 60'000), nullptr);
      *committed += records;
    } else {
      ASSERT_EQ(rd_kafka_flush(producer.get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
      ASSERT_EQ(rd_kafka_abort_transaction(producer.get(), 60'000), nullptr);
    }
  }
}

class RangeReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(kDefaultVersion);
    broker_ = std::make_unique<Broker>(
        Broker::Options{.properties = "log.cleaner.backoff.ms=50\n"
                                      "log.cleaner.dedupe.buffer.size=4194304\n"
                                      "log.initial.task.delay.ms=100\n"
                                      "transaction.state.log.replication.factor=1\n"
                                      "transaction.state.log.min.isr=1\n"
                                      "log.segment.delete.delay.ms=0\n"});
    topic_ = FreshName("ranges");
    broker_->CreateTopic(topic_, kPartitions,
                         {{"cleanup.policy", "compact"},
                          {"segment.bytes", "262144"},
                          {"min.cleanable.dirty.ratio", "0.001"}});
    WriteTransactions(*broker_, topic_, random_, &committed_);
  }

  // Waits until the cleaner has taken records.
  void AwaitCompaction() const {
    EXPECT_TRUE(Eventually("the topic is compacted", [&] {
      std::this_thread::sleep_for(milliseconds(250));
      return Count(Read(*broker_, topic_)) < committed_ * 3 / 4;
    })) << broker_->Log();
  }

  std::unique_ptr<Broker> broker_;
  std::string topic_;
  std::mt19937_64 random_{3};
  size_t committed_ = 0;
};

TEST_F(RangeReaderTest, JumpsLeaveNoRecordOutAndReadNoneTwice) {
  AwaitCompaction();
  const char* given = std::getenv("TACIT_RANGE_JUMPS");
  const int jumps = given == nullptr ? 2000 : std::atoi(given);
  const Contents before = Read(*broker_, topic_);

  stream::KafkaSourceOptions options;
  options.properties.values = {{"bootstrap.servers", broker_->bootstrap()}, {"group.id", topic_}};
  options.topic = topic_;
  stream::KafkaReader fetcher(options);
  const auto starts = fetcher.Open({});
  ASSERT_TRUE(starts) << starts.error().message;
  const SystemClock clock;
  KafkaRangeReader reader({.topic = topic_}, clock, nullptr);
  std::vector<uint64_t> ends;
  for (const stream::PartitionStart& start : *starts) {
    reader.Start(start);
    ends.push_back(start.end);
  }
  std::vector<std::pair<OffsetRange, std::map<uint64_t, std::string>>> read;
  uint64_t empty = 0, offsets = 0, left = 0;
  OffsetRange range{0, 0, 0};
  for (int jump = 0; jump < jumps; ++jump) {
    // Now and then a range goes on where the one before ended, or is the same once more.
    const uint64_t kind = random_() % 8;
    if (kind == 0)
      range.begin = std::exchange(
          range.end, std::min(range.end + 50, ends[static_cast<size_t>(range.partition)]));
    if (kind > 1) {
      range.partition = static_cast<int32_t>(random_() % kPartitions);
      const uint64_t end = ends[static_cast<size_t>(range.partition)];
      range.begin = random_() % end;
      range.end = std::min(end, range.begin + 1 + random_() % 400);
    }
    const Status begun = reader.Begin(fetcher, range);
    ASSERT_TRUE(begun) << begun.error().message;
    std::map<uint64_t, std::string> records;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    // Many a range is left in its midst, with more of it on its way.
    uint64_t takes_left = random_() % 3 == 0 ? 1 + random_() % 2 : 1'000'000;
    auto outcome = KafkaRangeReader::Outcome::kNothing;
    while (outcome != KafkaRangeReader::Outcome::kDone && takes_left-- > 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << "range " << jump << ": partition " << range.partition << ", " << range.begin << " to "
          << range.end << ": " << reader.Find(range.partition)->next();
      ASSERT_TRUE(fetcher.Serve());
      event::RawRecords frame;
      std::optional<stream::LastRecord> last;
      const auto taken = reader.Take(fetcher, milliseconds(100), &frame, &last);
      ASSERT_TRUE(taken) << taken.error().message;
      outcome = *taken;
      for (size_t i = 0; i < frame.size(); ++i)
        ASSERT_TRUE(records.emplace(frame.first_offset + i, frame[i]).second) << "twice";
    }
    if (outcome == KafkaRangeReader::Outcome::kDone) {
      ASSERT_EQ(reader.empty(), range.size() - records.size());
      empty += reader.empty();
      offsets += range.size();
    } else {
      range.end = reader.Find(range.partition)->next();
      ++left;
    }
    read.emplace_back(range, std::move(records));
  }
  // The cleaner may have gone on meanwhile: a record that is still there was there all the time.
  const Contents after = Read(*broker_, topic_);
  int lost = 0, strange = 0;
  for (const auto& [range, records] : read) {
    const auto p = static_cast<size_t>(range.partition);
    for (auto at = after[p].lower_bound(range.begin); at != after[p].lower_bound(range.end); ++at) {
      const auto found = records.find(at->first);
      lost += found == records.end() || found->second != at->second;
    }
    for (const auto& [offset, value] : records) {
      const auto found = before[p].find(offset);
      strange += offset < range.begin || offset >= range.end || found == before[p].end() ||
                 found->second != value;
    }
  }
  std::cout << jumps << " jumps over " << offsets << " offsets, " << empty << " of them empty; "
            << left << " ranges were left in their midst\n";
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(strange, 0);
  EXPECT_GT(empty, offsets / 4);
  EXPECT_LT(empty, offsets);
}

}  // namespace
}  // namespace tacit::test
