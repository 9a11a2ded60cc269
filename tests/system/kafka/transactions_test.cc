// A producer that writes in transactions and takes some of them back: what was aborted is never
// learnt from, its offsets count like any others, and markers at the end hold up no reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <utility>

#include "system/kafka/clients.h"
#include "system/kafka/fault.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;

constexpr int kTimeoutMs = 60'000;

// librdkafka's producer of transactions; a failure is one of the test. The broker answers before it
// has written the markers that end a transaction, so Commit and Abort wait for these: what is
// written next lies after them.
class Transaction {
 public:
  Transaction(const Broker& broker, const std::string& id)
      : bootstrap_(broker.bootstrap()),
        client_(MakeClient(RD_KAFKA_PRODUCER, broker.bootstrap(), {{"transactional.id", id}})) {
    Expect(rd_kafka_init_transactions(client_.get(), kTimeoutMs));
  }

  void Begin() { Expect(rd_kafka_begin_transaction(client_.get())); }
  void Write(const std::string& topic, std::span<const TopicRecord> records) {
    for (const TopicRecord& record : records)
      EXPECT_EQ(rd_kafka_producev(
                    client_.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                    RD_KAFKA_V_PARTITION(record.partition),
                    RD_KAFKA_V_VALUE(const_cast<char*>(record.value->data()), record.value->size()),
                    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    topic_ = topic;
    for (const TopicRecord& record : records) partitions_.insert(record.partition);
    records_ += static_cast<int64_t>(records.size());
    // Now, so that what is written next lies after it.
    EXPECT_EQ(rd_kafka_flush(client_.get(), kTimeoutMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void Commit() { End(rd_kafka_commit_transaction); }
  void Abort() { End(rd_kafka_abort_transaction); }

 private:
  // A partition ends, for who reads what is committed, where the first open transaction begins.
  void End(rd_kafka_error_t* (*end)(rd_kafka_t*, int)) {
    const int64_t decided = TopicSize(bootstrap_, topic_) + std::exchange(records_, 0) +
                            static_cast<int64_t>(std::exchange(partitions_, {}).size()) - 1;
    Expect(end(client_.get(), kTimeoutMs));
    EXPECT_TRUE(Eventually("the marks are written",
                           [&] { return TopicSize(bootstrap_, topic_) >= decided; }));
  }
  static void Expect(rd_kafka_error_t* error) {
    if (error == nullptr) return;
    ADD_FAILURE() << rd_kafka_error_string(error);
    rd_kafka_error_destroy(error);
  }

  const std::string bootstrap_;
  Client client_;
  std::string topic_;
  std::set<int32_t> partitions_;  // written to in this transaction
  int64_t records_ = 0;           // of it
};

class TransactionsTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeTopic(SharedBroker(), 3);
    Configure();
  }
};

// Random lengths and fates on partition 0, aborted ones alone on partition 1, and nothing at all on
// partition 2; each run ends at markers, of aborted and of committed transactions.
TEST_F(TransactionsTest, WhatWasAbortedIsNeverLearntAndItsOffsetsCount) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Transaction producer(*broker_, topic_);
  uint64_t steps = 0, end = 0, position = 0;  // of partition 0
  // The first record of all; then each run begins where the one before has ended.
  std::optional<uint64_t> begin;
  for (const bool committed_last : {false, true}) {
    for (int i = 0; i < 12; ++i) {
      const bool commits = i == 11 ? committed_last : random() % 2 == 0;
      const int count = 1 + static_cast<int>(random() % 30);
      producer.Begin();
      producer.Write(topic_, NewEvents(0, count, commits ? 1 : 0));
      if (!commits) producer.Write(topic_, NewEvents(1, 7, 0));
      commits ? producer.Commit() : producer.Abort();
      if (commits && !begin) begin = end;
      if (commits) position = end + static_cast<uint64_t>(count);
      end += static_cast<uint64_t>(count) + 1;
      if (random() % 3 != 0) continue;
      Write({NewEvent(0)});  // of no transaction
      if (!begin) begin = end;
      position = ++end;
    }
    if (begin) steps += StepsOf(*begin, position);
    if (begin) begin = position;
    const Ended ended = Learn();
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    ExpectLearnt();
    ExpectSteps(steps);
    EXPECT_EQ(Learn().exit_code, 0);  // between two markers, nothing is to be done
    ExpectSteps(steps);
  }
}

// A transaction that is open holds back the records of all producers behind it, and no
// longer.
TEST_F(TransactionsTest, AnOpenOneIsTheEndUntilItIsDecided) {
  Transaction first(*broker_, topic_ + "-a"), second(*broker_, topic_ + "-b");
  Write(NewEvents(0, 40));
  const std::vector<TopicRecord> kept = NewEvents(0, 10), dropped = NewEvents(0, 10),
                                 behind = NewEvents(0, 22);
  const auto expect_later = [&](size_t from, size_t count, int times) {
    std::fill_n(expected_.begin() + static_cast<ptrdiff_t>(from), count, times);
  };
  expect_later(40, 42, 0);
  first.Begin();
  first.Write(topic_, kept);
  second.Begin();
  second.Write(topic_, dropped);
  Write(behind);
  Ended ended = Learn();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  ExpectLearnt();
  ExpectSteps(StepsOf(0, 40));

  first.Commit();  // up to where the second begins
  expect_later(40, 10, 1);
  ASSERT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
  ExpectSteps(StepsOf(0, 40) + StepsOf(40, 50));

  StartDaemon();
  AwaitReadyz("ready");
  second.Abort();
  expect_later(60, 22, 1);
  AwaitLearnt();
  KillDaemon();
  ASSERT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
}

// When retention has taken markers that lay after the last record that was read, it cannot be known
// any more that no records were among them: the daemon says which offsets, and continues where it
// may.
TEST_F(TransactionsTest, MarkersThatAreGoneAreTakenForRecords) {
  Transaction producer(*broker_, topic_);
  for (const bool commits : {true, false}) {
    producer.Begin();
    producer.Write(topic_, NewEvents(0, 20, commits ? 1 : 0));
    commits ? producer.Commit() : producer.Abort();
  }
  ASSERT_EQ(Learn().exit_code, 0);
  broker_->DeleteRecordsBefore(topic_, 0, 42);
  Write(NewEvents(0, 30));
  const Ended refused = Learn();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("partition 0: offsets 20 to 41 are gone"));
  Configure("format: criteo_tsv, on_period_lost: close");
  EXPECT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
  ExpectSteps(StepsOf(0, 20) + 1 + StepsOf(42, 72));
}

}  // namespace
}  // namespace tacit::test
