// Groups' offsets, settings, and brokers that go away and come back.
#include <array>
#include <thread>

#include "contract/brokers/rig.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class GroupsContract : public BrokersContract {
 protected:
  static void Note(rd_kafka_t*, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t* list,
                   void* noted) {
    auto* const shown = static_cast<std::vector<std::string>*>(noted);
    for (int i = 0; i < list->cnt; ++i)
      shown->push_back(std::to_string(list->elems[i].partition) + "@" +
                       std::to_string(list->elems[i].offset) + ": " + rd_kafka_err2str(error));
  }
  static void SetText(const BareList& list, const std::string& text) {
    list->elems[0].metadata = strdup(text.c_str());
    list->elems[0].metadata_size = text.size();
  }
  std::optional<CommittedOffset> Committed(int32_t partition, const std::string& group) const {
    return ReadCommitted(subject::Bootstrap(), group, topic_, partition);
  }
};

TEST_F(GroupsContract, AnOffsetIsKeptWithItsTextForItsGroupAlone) {
  Create(2);
  const Client client = Consumer();
  EXPECT_FALSE(Committed(0, topic_));
  const BareList list = ListOf({{0, 17}});
  SetText(list, "text of the reader");
  std::vector<std::string> noted;
  const BareQueue queue(rd_kafka_queue_new(client.get()));
  ASSERT_EQ(rd_kafka_commit_queue(client.get(), list.get(), queue.get(), Note, &noted),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(rd_kafka_queue_poll_callback(queue.get(), kLongMs), 1);
  EXPECT_THAT(noted, ElementsAre("0@17: Success"));
  const auto found = Committed(0, topic_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, 17);
  EXPECT_EQ(found->metadata, "text of the reader");
  EXPECT_FALSE(Committed(1, topic_));
  EXPECT_FALSE(Committed(0, topic_ + "-another"));
}

TEST_F(GroupsContract, ACommitThatIsNotWaitedForIsToldToTheClient) {
  Create(1);
  std::vector<std::string> noted;
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, &noted);
  rd_kafka_conf_set_offset_commit_cb(conf, Note);
  const Client client =
      MakeClient(RD_KAFKA_CONSUMER, subject::Bootstrap(), {{"group.id", topic_}}, conf);
  rd_kafka_poll_set_consumer(client.get());
  ASSERT_EQ(rd_kafka_commit(client.get(), ListOf({{0, 5}}).get(), 1), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_TRUE(Eventually("it is told", [&] {
    const BareMessage none(rd_kafka_consumer_poll(client.get(), 100));
    return !noted.empty();
  }));
  EXPECT_THAT(noted, ElementsAre("0@5: Success"));
  EXPECT_EQ(Committed(0, topic_)->offset, 5);
  EXPECT_EQ(Committed(0, topic_)->metadata, "");
}

TEST_F(GroupsContract, OffsetsOfATopicGoWithIt) {
  Create(1);
  const Client client = Consumer();
  const BareQueue queue(rd_kafka_queue_new(client.get()));
  std::vector<std::string> noted;
  rd_kafka_commit_queue(client.get(), ListOf({{0, 5}}).get(), queue.get(), Note, &noted);
  ASSERT_EQ(rd_kafka_queue_poll_callback(queue.get(), kLongMs), 1);
  ASSERT_TRUE(Committed(0, topic_));
  subject::DeleteTopic(topic_);
  EXPECT_TRUE(Eventually("they are gone", [&] { return !Committed(0, topic_); }));
}

TEST_F(GroupsContract, SettingsOfATopicAreItsOwnOrTheBrokers) {
  Create(1, {{"retention.ms", "1234567"}});
  const std::array<std::string, 4> names = {"cleanup.policy", "retention.bytes", "retention.ms",
                                            "max.message.bytes"};
  const stream::KafkaProperties properties{{{"bootstrap.servers", subject::Bootstrap()}}};
  const auto settings = stream::ReadTopicSettings(properties, topic_, names, kPatience);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_THAT(*settings,
              ElementsAre(Pair("cleanup.policy", "delete"), Pair("max.message.bytes", "16777216"),
                          Pair("retention.bytes", "-1"), Pair("retention.ms", "1234567")));
  const auto unknown = stream::ReadTopicSettings(properties, topic_ + "x", names, kPatience);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound) << unknown.error().message;
}

// The values of a client that was given nothing.
TEST_F(GroupsContract, SettingsOfAClientHaveTheirDefaultsAndLimits) {
  const std::map<std::string, std::string> defaults = {{"batch.num.messages", "10000"},
                                                       {"check.crcs", "false"},
                                                       {"enable.auto.commit", "true"},
                                                       {"enable.idempotence", "false"},
                                                       {"enable.partition.eof", "false"},
                                                       {"fetch.message.max.bytes", "1048576"},
                                                       {"fetch.wait.max.ms", "500"},
                                                       {"isolation.level", "read_committed"},
                                                       {"linger.ms", "5"},
                                                       {"max.partition.fetch.bytes", "1048576"},
                                                       {"message.max.bytes", "1000000"},
                                                       {"queue.buffering.max.kbytes", "1048576"},
                                                       {"queue.buffering.max.messages", "100000"},
                                                       {"queued.max.messages.kbytes", "65536"},
                                                       {"queued.min.messages", "100000"},
                                                       {"socket.timeout.ms", "60000"},
                                                       {"transaction.timeout.ms", "60000"}};
  const std::unique_ptr<rd_kafka_conf_t, Freed<rd_kafka_conf_destroy>> conf(rd_kafka_conf_new());
  const auto set = [&](const char* name, const char* value) {
    char why[200];
    return rd_kafka_conf_set(conf.get(), name, value, why, sizeof(why));
  };
  const auto get = [&](const std::string& name) {
    char value[200];
    size_t size = sizeof(value);
    EXPECT_EQ(rd_kafka_conf_get(conf.get(), name.c_str(), value, &size), RD_KAFKA_CONF_OK) << name;
    return std::string(value);
  };
  for (const auto& [name, value] : defaults) EXPECT_EQ(get(name), value) << name;
  EXPECT_EQ(set("acks", "all"), RD_KAFKA_CONF_OK);
  EXPECT_EQ(set("linger.ms", "17"), RD_KAFKA_CONF_OK);
  EXPECT_EQ(get("queue.buffering.max.ms"), "17");
  EXPECT_EQ(set("check.crcs", "1"), RD_KAFKA_CONF_OK);
  EXPECT_EQ(get("check.crcs"), "true");
  EXPECT_EQ(set("no.such.setting", "1"), RD_KAFKA_CONF_UNKNOWN);
  EXPECT_EQ(set("queued.min.messages", "0"), RD_KAFKA_CONF_INVALID);
  EXPECT_EQ(set("queued.min.messages", "many"), RD_KAFKA_CONF_INVALID);
  EXPECT_EQ(set("isolation.level", "none"), RD_KAFKA_CONF_INVALID);
  EXPECT_EQ(set("check.crcs", "maybe"), RD_KAFKA_CONF_INVALID);
}

class LinesContract : public BrokersContract {};

TEST_F(LinesContract, WithoutBrokersNothingIsAnsweredAndTheClientIsTold) {
  bool told = false;
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, &told);
  rd_kafka_conf_set_error_cb(conf, [](rd_kafka_t*, int error, const char*, void* told) {
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) *static_cast<bool*>(told) = true;
  });
  const Client client = MakeClient(RD_KAFKA_CONSUMER, "127.0.0.1:1", {{"group.id", "g"}}, conf);
  rd_kafka_poll_set_consumer(client.get());
  rd_kafka_topic_t* const handle = rd_kafka_topic_new(client.get(), "t", nullptr);
  const rd_kafka_metadata_t* metadata = nullptr;
  EXPECT_EQ(rd_kafka_metadata(client.get(), 0, handle, &metadata, 300),
            RD_KAFKA_RESP_ERR__TRANSPORT);
  rd_kafka_topic_destroy(handle);
  int64_t low = 0, high = 0;
  EXPECT_EQ(rd_kafka_query_watermark_offsets(client.get(), "t", 0, &low, &high, 300),
            RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
  const BareList list = ListOf({{0, 1}});
  EXPECT_EQ(rd_kafka_offsets_for_times(client.get(), list.get(), 300),
            RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
  EXPECT_EQ(rd_kafka_committed(client.get(), list.get(), 300), RD_KAFKA_RESP_ERR__TIMED_OUT);
  EXPECT_TRUE(Eventually("it is told", [&] {
    const BareMessage none(rd_kafka_consumer_poll(client.get(), 100));
    return told;
  }));
  const Client producer = MakeClient(RD_KAFKA_PRODUCER, "127.0.0.1:1", {{"transactional.id", "t"}});
  rd_kafka_error_t* const error = rd_kafka_init_transactions(producer.get(), 300);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(rd_kafka_error_code(error), RD_KAFKA_RESP_ERR__TIMED_OUT);
  EXPECT_TRUE(rd_kafka_error_is_retriable(error));
  rd_kafka_error_destroy(error);
}

TEST_F(LinesContract, WhatIsWrittenMeanwhileArrivesOnceAndInOrder) {
  Create(1);
  Write(0, {"0"});
  const Client producer = Producer({{"enable.idempotence", "true"},
                                    {"message.timeout.ms", "0"},
                                    {"reconnect.backoff.max.ms", "500"}}),
               client = Consumer({{"reconnect.backoff.max.ms", "500"}});
  ProduceNow(producer, 0, "1");
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "0@0");
  for (const bool stands_still : {false, true}) {
    stands_still ? subject::StandStill() : subject::GoAway();
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(Produce(producer, 0, std::to_string(i)), RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(rd_kafka_flush(producer.get(), 300), RD_KAFKA_RESP_ERR__TIMED_OUT);
    stands_still ? subject::GoOn() : subject::ComeBack();
    ASSERT_EQ(rd_kafka_flush(producer.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  std::vector<std::string> read;
  while (read.size() < 7) {
    const std::string next = Next(client);
    if (next.empty()) break;
    if (next.find(')') == std::string::npos) read.push_back(next);
  }
  EXPECT_THAT(read, ElementsAre("1@1", "0@2", "1@3", "2@4", "0@5", "1@6", "2@7"));
}

TEST_F(LinesContract, ATransactionGoesOnWhenItsBrokersAreBack) {
  Create(1);
  const Client producer = Transactional(topic_, {{"reconnect.backoff.max.ms", "500"}});
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  ProduceNow(producer, 0, "a");
  subject::GoAway();
  rd_kafka_error_t* const error = rd_kafka_commit_transaction(producer.get(), 300);
  ASSERT_NE(error, nullptr);
  EXPECT_TRUE(rd_kafka_error_is_retriable(error)) << rd_kafka_error_string(error);
  rd_kafka_error_destroy(error);
  EXPECT_EQ(Produce(producer, 0, "b"), RD_KAFKA_RESP_ERR__STATE) << "it is being committed";
  subject::ComeBack();
  bool decided = false;
  EXPECT_TRUE(Eventually("it is committed", [&] {
    rd_kafka_error_t* const again = rd_kafka_commit_transaction(producer.get(), 1000);
    decided = again == nullptr;
    if (!decided) {
      EXPECT_TRUE(rd_kafka_error_is_retriable(again)) << rd_kafka_error_string(again);
      rd_kafka_error_destroy(again);
    }
    return decided;
  }));
  AwaitEnd(Consumer(), 0, 2);
  EXPECT_THAT(Shown(Read()), ElementsAre("0:a"));
}

}  // namespace
}  // namespace tacit::test
