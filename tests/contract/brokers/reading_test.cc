// Topics as clients read them, and what brokers tell about them.
#include "contract/brokers/rig.h"

namespace tacit::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class ReadingContract : public BrokersContract {};

TEST_F(ReadingContract, PartitionsAreCountedAndMoreMayCome) {
  EXPECT_EQ(TopicPartitions(subject::Bootstrap(), topic_), 0);
  Create(3);
  EXPECT_EQ(TopicPartitions(subject::Bootstrap(), topic_), 3);
  subject::GrowTopic(topic_, 5);
  EXPECT_EQ(TopicPartitions(subject::Bootstrap(), topic_), 5);
  Write(4, {"a"});
  EXPECT_THAT(Shown(Read()), ElementsAre("0:a"));
}

TEST_F(ReadingContract, ATopicThatIsNotThereHasAnErrorInItsMetadata) {
  const Client client = Consumer();
  rd_kafka_topic_t* const handle = rd_kafka_topic_new(client.get(), topic_.c_str(), nullptr);
  const rd_kafka_metadata_t* metadata = nullptr;
  ASSERT_EQ(rd_kafka_metadata(client.get(), 0, handle, &metadata, kLongMs),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(metadata->topic_cnt, 1);
  EXPECT_EQ(metadata->topics[0].err, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_EQ(metadata->topics[0].partition_cnt, 0);
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(handle);
}

TEST_F(ReadingContract, APartitionBeginsAtItsFirstRecordAndEndsBehindItsLast) {
  Create(2);
  const Client client = Consumer();
  EXPECT_THAT(Span(client, 0), Pair(0, 0));
  Write(0, {"a", "b", "c"});
  EXPECT_THAT(Span(client, 0), Pair(0, 3));
  EXPECT_THAT(Span(client, 1), Pair(0, 0));
}

TEST_F(ReadingContract, APartitionThatIsNotThereIsUnknown) {
  Create(1);
  const Client client = Consumer();
  EXPECT_EQ(Span(client, 1).first, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
}

TEST_F(ReadingContract, RecordsComeInOrderAndThenTheEnd) {
  Create(1);
  Write(0, {"a", "b", "c"});
  const Client client = Consumer();
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 1}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "b@1");
  EXPECT_EQ(Next(client), "c@2");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@3");
  ExpectNothing(client, "the end is told once");
  Write(0, {"d"});
  EXPECT_EQ(Next(client), "d@3");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@4");
}

TEST_F(ReadingContract, AnEmptyPartitionEndsAtOnce) {
  Create(1);
  const Client client = Consumer();
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), std::string(kEnd) + "@0");
}

TEST_F(ReadingContract, AnOffsetThatIsNotThereIsAnErrorAndThePartitionRests) {
  Create(2);
  Write(0, {"a", "b", "c"});
  const Client client = Consumer();
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 7}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "(Local: No offset to automatically reset to)@7");
  Write(0, {"d"});
  ExpectNothing(client);
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 3}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "d@3");
}

TEST_F(ReadingContract, WhatWasDeletedIsNotThere) {
  Create(1);
  Write(0, {"a", "b", "c", "d"});
  const Client client = Consumer();
  ASSERT_TRUE(DeleteBefore({{0, 2}}));
  EXPECT_THAT(Span(client, 0), Pair(2, 4));
  EXPECT_THAT(Shown(Read()), ElementsAre("2:c", "3:d"));
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 1}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "(Local: No offset to automatically reset to)@1");
  // A later request with an earlier offset changes nothing.
  ASSERT_TRUE(DeleteBefore({{0, 1}}));
  EXPECT_THAT(Span(client, 0), Pair(2, 4));
  ASSERT_TRUE(DeleteBefore({{0, 4}}));
  EXPECT_THAT(Span(client, 0), Pair(4, 4));
  EXPECT_FALSE(DeleteBefore({{0, 9}})) << "it is behind the end";
}

TEST_F(ReadingContract, QueuesOfPartitionsHaveTheirOwnMessages) {
  Create(2);
  Write(0, {"a"});
  Write(1, {"b"});
  const Client client = Consumer();
  const BareQueue queue(rd_kafka_queue_get_partition(client.get(), topic_.c_str(), 1));
  rd_kafka_queue_forward(queue.get(), nullptr);
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}, {1, 0}}).get()),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(queue), "b@0");
  EXPECT_EQ(Next(queue), std::string(kEnd) + "@1");
  EXPECT_EQ(Next(client), "a@0");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@1");
}

TEST_F(ReadingContract, ABatchTakesWhatIsThere) {
  Create(1);
  Write(0, {"a", "b", "c"});
  const Client client = Consumer();
  const BareQueue queue(rd_kafka_queue_get_partition(client.get(), topic_.c_str(), 0));
  rd_kafka_queue_forward(queue.get(), nullptr);
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_message_t* batch[2];
  std::vector<std::string> shown;
  EXPECT_TRUE(Eventually("records and end come", [&] {
    const ssize_t got = rd_kafka_consume_batch_queue(queue.get(), 0, batch, 2);
    EXPECT_GE(got, 0);
    EXPECT_LE(got, 2);
    for (ssize_t i = 0; i < got; ++i)
      shown.push_back(BrokersContract::Shown(BareMessage(batch[i]).get()));
    return shown.size() >= 4;
  }));
  EXPECT_EQ(rd_kafka_queue_length(queue.get()), 0u);
  EXPECT_THAT(shown, ElementsAre("a@0", "b@1", "c@2", std::string(kEnd) + "@3"));
}

TEST_F(ReadingContract, AnAssignmentDropsWhatWasFetchedBefore) {
  Create(1);
  Write(0, {"a", "b", "c"});
  const Client client = Consumer();
  const BareQueue queue(rd_kafka_queue_get_consumer(client.get()));
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "a@0");
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 2}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "c@2");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@3");
  ASSERT_EQ(rd_kafka_assign(client.get(), nullptr), RD_KAFKA_RESP_ERR_NO_ERROR);
  Write(0, {"d"});
  ExpectNothing(client);
}

TEST_F(ReadingContract, PartitionsAreAddedAndTakenAwayOneByOne) {
  Create(2);
  Write(0, {"a"});
  Write(1, {"b"});
  const Client client = Consumer();
  EXPECT_EQ(CodeOf(rd_kafka_incremental_assign(client.get(), ListOf({{0, 0}}).get())),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "a@0");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@1");
  EXPECT_EQ(CodeOf(rd_kafka_incremental_assign(client.get(), ListOf({{1, 0}}).get())),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "b@0");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@1");
  EXPECT_EQ(CodeOf(rd_kafka_incremental_unassign(client.get(), ListOf({{0, 0}}).get())),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  Write(0, {"c"});
  Write(1, {"d"});
  EXPECT_EQ(Next(client), "d@1");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@2");
  ExpectNothing(client);
}

TEST_F(ReadingContract, PartitionsAreNotAssignedTwiceNorTakenAwayUnassigned) {
  Create(1);
  const Client client = Consumer();
  EXPECT_NE(CodeOf(rd_kafka_incremental_unassign(client.get(), ListOf({{0, 0}}).get())),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(CodeOf(rd_kafka_incremental_assign(client.get(), ListOf({{0, 0}}).get())),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_NE(CodeOf(rd_kafka_incremental_assign(client.get(), ListOf({{0, 0}}).get())),
            RD_KAFKA_RESP_ERR_NO_ERROR);
}

TEST_F(ReadingContract, AConsumerWithoutAGroupAsksAndIsAssignedNothing) {
  Create(1);
  const Client client = MakeClient(RD_KAFKA_CONSUMER, subject::Bootstrap(), {});
  EXPECT_THAT(Span(client, 0), Pair(0, 0));
  EXPECT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()),
            RD_KAFKA_RESP_ERR__UNKNOWN_GROUP);
}

TEST_F(ReadingContract, AClientKnowsTheEndOfItsLastFetch) {
  Create(1);
  Write(0, {"a", "b"});
  const Client client = Consumer();
  int64_t low = -7, high = -7;
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "a@0");
  ASSERT_EQ(rd_kafka_get_watermark_offsets(client.get(), topic_.c_str(), 0, &low, &high),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(high, 2);
  ASSERT_EQ(rd_kafka_get_watermark_offsets(client.get(), topic_.c_str(), 9, &low, &high),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(high, RD_KAFKA_OFFSET_INVALID) << "it has fetched nothing there";
}

TEST_F(ReadingContract, ATopicMadeAnewBeginsAnew) {
  Create(1);
  Write(0, {"a", "b"});
  subject::DeleteTopic(topic_);
  EXPECT_EQ(TopicPartitions(subject::Bootstrap(), topic_), 0);
  Create(2);
  Write(0, {"c"});
  EXPECT_THAT(Shown(Read()), ElementsAre("0:c"));
}

TEST_F(ReadingContract, OffsetsAreFoundByTime) {
  Create(2);
  WriteTopic(subject::Bootstrap(), topic_,
             std::vector<TopicRecord>{{.partition = 0, .value = "a", .timestamp_ms = 1000},
                                      {.partition = 0, .value = "b", .timestamp_ms = 3000},
                                      {.partition = 0, .value = "c", .timestamp_ms = 2000},
                                      {.partition = 0, .value = "d", .timestamp_ms = 5000}});
  const Client client = Consumer();
  const std::map<int64_t, int64_t> expected = {{1, 0},
                                               {1000, 0},
                                               {1001, 1},
                                               {3000, 1},
                                               {3001, 3},
                                               {5001, -1},
                                               {RD_KAFKA_OFFSET_END, 4},
                                               {RD_KAFKA_OFFSET_BEGINNING, 0}};
  for (const auto& [time, offset] : expected) {
    const BareList list = ListOf({{0, time}, {1, time}});
    ASSERT_EQ(rd_kafka_offsets_for_times(client.get(), list.get(), kLongMs),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(list->elems[0].err, RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(list->elems[0].offset, offset) << time;
    EXPECT_EQ(list->elems[1].offset, time < 0 ? 0 : -1) << time;
  }
  const BareList later = ListOf({{0, 1000}});
  EXPECT_EQ(rd_kafka_offsets_for_times(client.get(), later.get(), 0), RD_KAFKA_RESP_ERR__TIMED_OUT);
}

TEST_F(ReadingContract, CompactionLeavesTheNewestOfEachKeyWhereItWas) {
  subject::CreateCompacted(topic_);
  std::vector<TopicRecord> records;
  for (int i = 0; i < 40; ++i)
    records.push_back(
        {.partition = 0, .key = "k" + std::to_string(i % 4), .value = std::to_string(i)});
  records.push_back({.partition = 0, .key = "k0"});
  WriteTopic(subject::Bootstrap(), topic_, records);
  subject::Compact(topic_);
  // Compact writes records of its own behind.
  std::vector<std::string> left;
  const std::vector<TopicRecord> all = Read();
  for (const std::string& one : Shown(all))
    if (one.find("filler") == std::string::npos) left.push_back(one);
  EXPECT_THAT(left, ElementsAre("37:37", "38:38", "39:39"));
  const Client client = Consumer();
  EXPECT_EQ(Span(client, 0).first, 0);
  EXPECT_EQ(Span(client, 0).second, all.back().offset + 1);
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 5}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "37@37") << "an offset in a gap is one that may be read from";
}

}  // namespace
}  // namespace tacit::test
