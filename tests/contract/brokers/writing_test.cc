// Records as producers write them, and what becomes of these.
#include <set>

#include "contract/brokers/rig.h"

namespace tacit::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class WritingContract : public BrokersContract {
 protected:
  // The fate of a message: its error, partition and offset.
  struct Fate {
    rd_kafka_resp_err_t error;
    int32_t partition;
    int64_t offset;
  };
  // A producer that notes the fates of its messages, by their tags.
  Client Noting(ClientProperties more = {}) {
    more.insert(more.begin(), {"linger.ms", "0"});
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    rd_kafka_conf_set_opaque(conf, &fates_);
    rd_kafka_conf_set_dr_msg_cb(
        conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void* fates) {
          (*static_cast<std::map<void*, Fate>*>(fates))[message->_private] = {
              message->err, message->partition, message->offset};
        });
    return MakeClient(RD_KAFKA_PRODUCER, subject::Bootstrap(), more, conf);
  }
  static void* Tag(intptr_t number) { return reinterpret_cast<void*>(number); }

  std::map<void*, Fate> fates_;
};

TEST_F(WritingContract, KeysValuesAndHeadersAreReadAsTheyWereWritten) {
  Create(1);
  const std::vector<TopicRecord> written = {
      {.partition = 0, .key = "k", .value = "v", .headers = {{"h", "1"}, {"h", "2"}, {"e", ""}}},
      {.partition = 0, .key = "", .value = ""},
      {.partition = 0, .key = "tombstone"},
      {.partition = 0, .value = std::string("\0\xff", 2)}};
  WriteTopic(subject::Bootstrap(), topic_, written);
  const std::vector<TopicRecord> read = Read();
  ASSERT_THAT(read, SizeIs(written.size()));
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].key, written[i].key) << i;
    EXPECT_EQ(read[i].value, written[i].value) << i;
    EXPECT_EQ(read[i].headers, written[i].headers) << i;
    EXPECT_EQ(read[i].offset, static_cast<int64_t>(i));
  }
}

TEST_F(WritingContract, AHeaderMayHaveNoValueAndARecordNoHeader) {
  Create(1);
  const Client producer = Producer();
  rd_kafka_headers_t* const headers = rd_kafka_headers_new(1);
  rd_kafka_header_add(headers, "none", -1, nullptr, 0);
  rd_kafka_header_add(headers, "text", -1, "value", -1);
  ASSERT_EQ(rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic_.c_str()),
                              RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  ProduceNow(producer, 0, "plain");
  const Client client = Consumer();
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  const BareMessage first(rd_kafka_consumer_poll(client.get(), kLongMs));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->payload, nullptr);
  rd_kafka_headers_t* read = nullptr;
  ASSERT_EQ(rd_kafka_message_headers(first.get(), &read), RD_KAFKA_RESP_ERR_NO_ERROR);
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  ASSERT_EQ(rd_kafka_header_get_all(read, 0, &name, &value, &size), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_STREQ(name, "none");
  EXPECT_EQ(value, nullptr);
  ASSERT_EQ(rd_kafka_header_get_all(read, 1, &name, &value, &size), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(std::string(static_cast<const char*>(value), size), "value");
  EXPECT_EQ(rd_kafka_header_get_all(read, 2, &name, &value, &size), RD_KAFKA_RESP_ERR__NOENT);
  const BareMessage second(rd_kafka_consumer_poll(client.get(), kLongMs));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(rd_kafka_message_headers(second.get(), &read), RD_KAFKA_RESP_ERR__NOENT);
}

TEST_F(WritingContract, ARecordHasTheTimeThatItWasGivenOrThatOfItsWriting) {
  Create(1);
  const auto now_ms = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const int64_t before = now_ms();
  WriteTopic(subject::Bootstrap(), topic_,
             std::vector<TopicRecord>{{.partition = 0, .value = "a", .timestamp_ms = 1234},
                                      {.partition = 0, .value = "b"}});
  const std::vector<TopicRecord> read = Read();
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(read[0].timestamp_ms, 1234);
  EXPECT_GE(read[1].timestamp_ms, before);
  EXPECT_LE(read[1].timestamp_ms, now_ms());
}

TEST_F(WritingContract, ABrokerMaySetTheTimeItself) {
  Create(1, {{"message.timestamp.type", "LogAppendTime"}});
  WriteTopic(subject::Bootstrap(), topic_,
             std::vector<TopicRecord>{{.partition = 0, .value = "a", .timestamp_ms = 1234}});
  const Client client = Consumer();
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  const BareMessage message(rd_kafka_consumer_poll(client.get(), kLongMs));
  ASSERT_NE(message, nullptr);
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  EXPECT_GT(rd_kafka_message_timestamp(message.get(), &type), 1234);
  EXPECT_EQ(type, RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME);
}

TEST_F(WritingContract, AKeyChoosesItsPartition) {
  Create(5);
  std::vector<TopicRecord> records;
  for (int i = 0; i < 60; ++i)
    records.push_back(
        {.key = std::string(static_cast<size_t>(i % 9), 'x') + std::to_string(i), .value = "v"});
  WriteTopic(subject::Bootstrap(), topic_, records);
  std::set<int32_t> used;
  for (const TopicRecord& record : Read()) {
    used.insert(record.partition);
    EXPECT_EQ(record.partition,
              rd_kafka_msg_partitioner_murmur2(nullptr, record.key->data(), record.key->size(), 5,
                                               nullptr, nullptr))
        << *record.key;
  }
  EXPECT_THAT(used, SizeIs(5));
}

TEST_F(WritingContract, EachMessageIsReportedWithItsPlace) {
  Create(2);
  const Client producer = Noting({{"enable.idempotence", "true"}});
  for (int i = 0; i < 6; ++i)
    ASSERT_EQ(Produce(producer, i % 2, "v", Tag(i)), RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(rd_kafka_flush(producer.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_THAT(fates_, SizeIs(6));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(fates_[Tag(i)].error, RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(fates_[Tag(i)].partition, i % 2);
    EXPECT_EQ(fates_[Tag(i)].offset, i / 2);
  }
}

TEST_F(WritingContract, AMessageThatTheClientFindsTooLargeIsNotTaken) {
  Create(1);
  const Client producer = Producer({{"message.max.bytes", "1000"}});
  EXPECT_EQ(Produce(producer, 0, std::string(2000, 'x')), RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  ProduceNow(producer, 0, "small");
  EXPECT_THAT(Shown(Read()), ElementsAre("0:small"));
}

TEST_F(WritingContract, AMessageThatTheBrokerFindsTooLargeFailsAndTheOthersGo) {
  Create(1, {{"max.message.bytes", "1000"}});
  const Client producer = Noting({{"enable.idempotence", "true"}});
  for (const auto& [tag, size] : {std::pair(1, 10), {2, 5000}, {3, 10}}) {
    ASSERT_EQ(Produce(producer, 0, std::string(static_cast<size_t>(size), 'x'), Tag(tag)),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    ASSERT_EQ(rd_kafka_flush(producer.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  EXPECT_EQ(fates_[Tag(1)].error, RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(fates_[Tag(2)].error, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  EXPECT_EQ(fates_[Tag(3)].error, RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_THAT(Read(), SizeIs(2));
}

TEST_F(WritingContract, APartitionThatIsNotThereFailsItsMessage) {
  Create(1);
  const Client producer = Noting();
  const auto taken = Produce(producer, 3, "v", Tag(1));
  ASSERT_EQ(rd_kafka_flush(producer.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  const auto error = taken == RD_KAFKA_RESP_ERR_NO_ERROR ? fates_[Tag(1)].error : taken;
  EXPECT_EQ(error, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
}

TEST_F(WritingContract, ATopicThatDoesNotComeFailsItsMessages) {
  const Client producer = Noting({{"topic.metadata.propagation.max.ms", "100"}});
  ASSERT_EQ(Produce(producer, 0, "v", Tag(1)), RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(rd_kafka_flush(producer.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(fates_[Tag(1)].error, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
}

TEST_F(WritingContract, AQueueThatIsFullTakesNoMore) {
  const Client producer =
      MakeClient(RD_KAFKA_PRODUCER, "127.0.0.1:1", {{"queue.buffering.max.messages", "3"}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Produce(producer, 0, "v"), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Produce(producer, 0, "v"), RD_KAFKA_RESP_ERR__QUEUE_FULL);
}

TEST_F(WritingContract, LingeringMessagesGoWithAFlush) {
  Create(1);
  const Client producer = Producer({{"linger.ms", "30000"}});
  ASSERT_EQ(Produce(producer, 0, "a"), RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(Produce(producer, 0, "b"), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(rd_kafka_flush(producer.get(), 0), RD_KAFKA_RESP_ERR__TIMED_OUT);
  EXPECT_EQ(rd_kafka_flush(producer.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_THAT(Shown(Read()), ElementsAre("0:a", "1:b"));
}

}  // namespace
}  // namespace tacit::test
