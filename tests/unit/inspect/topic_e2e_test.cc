// From a topic to a learnt model by the real programs, and what is said of topics that are none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "store/store.h"
#include "support/json.h"
#include "support/process.h"
#include "unit/inspect/logs.h"
#include "unit/stream/mock_kafka.h"

namespace tacit {
namespace {

using test::Ended;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TopicE2e : public testing::Test {
 protected:
  Ended Inspect(const std::string& topic, std::vector<std::string> more,
                const std::string& bootstrap = "") const {
    std::vector<std::string> words = {
        TACIT, "inspect",     "--topic",
        topic, "--bootstrap", bootstrap.empty() ? kafka_.bootstrap() : bootstrap};
    words.insert(words.end(), more.begin(), more.end());
    return test::Run(words);
  }
  Ended Tacitd(const std::string& config, std::vector<std::string> more) const {
    std::vector<std::string> words = {TACITD,
                                      "--config",
                                      dir_ / config,
                                      "--set",
                                      "serve.listen=unix:" + (dir_ / "socket"),
                                      "--set",
                                      "training.idle_priority=false"};
    words.insert(words.end(), more.begin(), more.end());
    return test::Run(words);
  }
  void WriteShop(const std::string& topic, int32_t partitions, size_t rows,
                 const test::ShopNames& names) {
    kafka_.Create(topic, partitions);
    for (const test::ShopRecord& record : test::ShopAsJson(7, rows, names))
      kafka_.WriteKeyed(topic,
                        static_cast<int32_t>(std::hash<std::string>()(record.who) %
                                             static_cast<size_t>(partitions)),
                        record.who, record.json, record.when_ms);
    kafka_.Flush();
  }
  const std::vector<std::string> asked_ = {"--unit",  "event", "--epsilon", "8",
                                           "--delta", "1e-6",  "--mode",    "once"};
  std::vector<std::string> AskedInto(const std::string& output) const {
    std::vector<std::string> words = asked_;
    words.insert(words.end(), {"--output", dir_ / output});
    return words;
  }

  const test::TempDir dir_;
  stream::MockKafka kafka_;
};

// The numbers of a line of the table of days: events, steps, log loss, normalised entropy.
std::vector<double> EntropyOfDays(const std::string& table) {
  std::vector<double> entropy;
  for (const std::string& line : test::LinesOf(table)) {
    std::istringstream in(line);
    std::string name, events, steps, loss, ne;
    in >> name >> events >> steps >> loss >> ne;
    if (loss.find('.') != loss.npos && ne.find('.') != ne.npos)
      entropy.push_back(std::atof(ne.c_str()));
  }
  return entropy;
}

TEST_F(TopicE2e, AStreamOfNamesDrawnAtRandomIsForetoldBetterThanByAConstant) {
  const test::ShopNames names(31);
  WriteShop("offers", 3, 60'000, names);
  const Ended inspected = Inspect("offers", AskedInto("shop.yaml"));
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_TRUE(inspected.out.starts_with("tacit inspect looks at RAW records")) << inspected.out;
  EXPECT_THAT(inspected.out, HasSubstr("'offers': 3 partitions, 1 replica each"));
  EXPECT_THAT(inspected.out, HasSubstr("60,000, all of topic 'offers'"));
  EXPECT_THAT(inspected.out, HasSubstr("CreateTime, by the producers' clocks: from 2026-03-01"));
  EXPECT_THAT(inspected.out, HasSubstr("key        a field, '/" + names.who + "'"));
  const std::string yaml = test::ReadFile(dir_ / "shop.yaml");
  for (const char* line : {"kind: kafka", "topic: \"offers\"  # 3 partitions of 1 replica",
                           "group.id: \"tacit-offers\""})
    EXPECT_THAT(yaml, HasSubstr(line));
  const Ended checked = Tacitd("shop.yaml", {"--check-config"});
  ASSERT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("# topic offers: has 3 partitions of 1 replica and 60,000"));
  EXPECT_THAT(inspected.out, HasSubstr("say so (--user)"));
  const Ended of_users = Inspect("offers", {"--user", "/" + names.who});
  EXPECT_THAT(of_users.out, HasSubstr("key        the user, '/" + names.who + "'"));
  const Ended learnt = Tacitd("shop.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const std::vector<double> entropy = EntropyOfDays(learnt.out);
  ASSERT_FALSE(entropy.empty()) << learnt.out;
  EXPECT_LT(entropy.back(), 0.97) << learnt.out;
  EXPECT_GT(entropy.back(), 0.5) << "and not by a leak";
  EXPECT_THAT(test::ReadFile(dir_ / "shop-data/store.dead-letters.jsonl"), IsEmpty());
}

TEST_F(TopicE2e, WhatIsNoTopicIsRefusedByName) {
  kafka_.Create("empty", 2);
  const auto refusal = [&](const std::string& topic, std::vector<std::string> more = {},
                           const std::string& bootstrap = "") {
    const Ended ended = Inspect(topic, std::move(more), bootstrap);
    EXPECT_NE(ended.exit_code, 0) << topic;
    EXPECT_THAT(ended.out, IsEmpty()) << topic;
    return ended.err;
  };
  EXPECT_THAT(refusal("empty"), HasSubstr("topic 'empty': is empty"));
  EXPECT_THAT(refusal("a b"), HasSubstr("'a b' is no topic's name"));
  EXPECT_THAT(refusal("t", {"--wait", "1"}, "127.0.0.1:1"), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(refusal("empty", {dir_ / "file"}), HasSubstr("look at them apart"));
  EXPECT_THAT(test::Run({TACIT, "inspect"}).err, HasSubstr("--topic NAME"));
  EXPECT_THAT(test::Run({TACIT, "inspect", "--topic", "t"}).err,
              HasSubstr("--bootstrap HOST:PORT is missing"));
  EXPECT_THAT(refusal("empty", {"--rows", "5000000"}), HasSubstr("--rows: at most 4,000,000"));
  EXPECT_THAT(test::Run({TACIT, "inspect", dir_ / "f", "--evenly"}).err,
              HasSubstr("are for --topic NAME"));
  // --check-config goes on without brokers, and says what they would have told.
  const test::ShopNames names(3);
  WriteShop("shop", 1, 1000, names);
  ASSERT_EQ(Inspect("shop", AskedInto("shop.yaml")).exit_code, 0);
  const auto said = [&](const std::string& override) {
    const Ended checked = Tacitd("shop.yaml", {"--check-config", "--set", override});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    return checked.out;
  };
  EXPECT_THAT(said("kafka.bootstrap.servers=127.0.0.1:1"),
              HasSubstr("# topic shop: was not seen: topic 'shop'"));
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_THAT(said("source.topic=gone"), HasSubstr("# topic gone: is NOT THERE"));
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_THAT(refusal("gone"), HasSubstr("topic 'gone': its brokers know no such topic"));
  kafka_.Create("headless", 2);
  rd_kafka_mock_partition_set_leader(kafka_.cluster(), "headless", 1, -1);
  EXPECT_THAT(refusal("headless", {"--wait", "1"}), HasSubstr("partition 1 has no leader"));
  kafka_.Create("bytes", 1);
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 7 % 32);
  for (int i = 0; i < 5; ++i) kafka_.Write("bytes", 0, 'A' + bytes);
  kafka_.Flush();
  EXPECT_THAT(refusal("bytes"), HasSubstr("topic 'bytes': its values are binary"));
}

TEST_F(TopicE2e, OddRecordsAreToldWithTheirPlaces) {
  const test::ShopNames names(5);
  WriteShop("odd", 1, 3000, names);
  kafka_.Write("odd", 0, std::nullopt);
  kafka_.Write("odd", 0, "{\"broken\":");
  kafka_.Flush();
  const Ended inspected = Inspect("odd", AskedInto("odd.yaml"));
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("1 not, first odd[0]:3000: null value"));
  EXPECT_THAT(inspected.out, HasSubstr("odd[0]:3001"));
  EXPECT_THAT(inspected.out, HasSubstr("1 tombstone without a value"));
  const Ended json = Inspect("odd", {"--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto topic = test::ParseJson(json.out).at("topic").as_object();
  EXPECT_EQ(topic.at("topic"), "odd");
  EXPECT_EQ(topic.at("tombstones").to_number<int>(), 1);
  EXPECT_EQ(topic.at("looked_at").at(0).at("end").to_number<int>(), 3002);
}

// Another schema in the middle, by its id, and by its fields alone.
TEST_F(TopicE2e, AnotherSchemaInTheMiddleIsTold) {
  const test::ShopNames before(5), after(6);
  const std::string frame7("\0\0\0\0\7", 5), frame9("\0\0\0\0\11", 5);
  kafka_.Create("framed", 1);
  kafka_.Create("bare", 1);
  const auto first = test::ShopAsJson(7, 3000, before);
  test::ShopNames renamed = before;
  renamed.price = after.price;
  const auto second = test::ShopAsJson(8, 3000, renamed);
  for (const auto& [records, frame] : {std::pair(&first, &frame7), {&second, &frame9}})
    for (const test::ShopRecord& record : *records) {
      kafka_.WriteKeyed("framed", 0, record.who, *frame + record.json, record.when_ms);
      kafka_.WriteKeyed("bare", 0, record.who, record.json, record.when_ms);
    }
  kafka_.Flush();
  const Ended framed = Inspect("framed", AskedInto("framed.yaml"));
  ASSERT_EQ(framed.exit_code, 0) << framed.err;
  EXPECT_THAT(framed.out,
              HasSubstr("the records are of several schemas: id 7: 3,000 records, "
                        "first framed[0]:0; id 9: 3,000 records, first framed[0]:3000"));
  const std::string yaml = test::ReadFile(dir_ / "framed.yaml");
  EXPECT_THAT(yaml, HasSubstr("framing: confluent"));
  EXPECT_THAT(yaml, HasSubstr("      7: accept\n      9: accept\n"));
  EXPECT_EQ(Tacitd("framed.yaml", {"--check-config"}).exit_code, 0);
  const Ended bare = Inspect("bare", AskedInto("bare.yaml"));
  ASSERT_EQ(bare.exit_code, 0) << bare.err;
  EXPECT_THAT(bare.out, HasSubstr("'/" + before.price + "' is there last at bare[0]:2999"));
  EXPECT_THAT(bare.out, HasSubstr("was it renamed?"));
  EXPECT_THAT(test::ReadFile(dir_ / "bare.yaml"), Not(HasSubstr("framing")));
}

TEST_F(TopicE2e, APrivateLookIsChargedBeforeItTellsAndAgainWhenItIsRepeated) {
  const test::ShopNames names(9);
  WriteShop("offers", 2, 12'000, names);
  const std::string store = dir_ / "data/store";
  std::vector<std::string> words = AskedInto("shop.yaml");
  words.insert(words.end(), {"--private", "1", "--store", store, "--format", "json"});
  const Ended one = Inspect("offers", words);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_TRUE(one.out.starts_with("tacit inspect --private tells noised counts alone")) << one.out;
  EXPECT_THAT(one.out, HasSubstr("It counts the records at these offsets: partition 0: 0 to "));
  EXPECT_THAT(one.out, HasSubstr("A second look at them is paid for again."));
  for (const char* raw : {"\nkey ", "\nsent at", "tombstones", "shelf "})
    EXPECT_THAT(one.out, Not(HasSubstr(raw))) << "nothing raw is told";
  const auto epsilon = [&] {
    const auto read = store::OpenReadOnly(store, dir_ / "data-witness/store.witness", {});
    EXPECT_TRUE(read) << read.error().message;
    return read ? read->snapshot->total().epsilon : 0;
  };
  EXPECT_NEAR(epsilon(), 1, 1e-6);
  const Ended kept = Inspect("offers", words);
  EXPECT_EQ(kept.exit_code, 2);
  EXPECT_THAT(kept.err, HasSubstr("is there already"));
  EXPECT_NEAR(epsilon(), 1, 1e-6) << "a look that cannot be written down is not charged";
  const auto anew = [&] { std::filesystem::remove(dir_ / "shop.yaml"); };
  anew();
  const Ended two = Inspect("offers", words);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_GT(epsilon(), 1.3) << "the same records, looked at again, are charged again";
  const Ended learnt = Tacitd("shop.yaml", {"--until-end"});
  EXPECT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_GT(epsilon(), 8);

  anew();
  std::vector<std::string> csv = words;
  csv.back() = "csv";
  const Ended refused = Inspect("offers", csv);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("lines of values have no header"));
  const double before = epsilon();
  EXPECT_NE(Inspect("nowhere-at-all", words, "127.0.0.1:1").exit_code, 0);
  EXPECT_EQ(epsilon(), before) << "what cannot be looked at is not charged";
}

}  // namespace
}  // namespace tacit
