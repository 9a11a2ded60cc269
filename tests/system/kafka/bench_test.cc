// Programs read what `tacit bench kafka` prints.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "stream/generator/criteo_generator.h"
#include "support/process.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"

namespace tacit {
namespace {

namespace json = boost::json;

TEST(KafkaBenchTest, TellsWhatShareOfABareLoopIngestHas) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  const std::string topic = test::FreshName("bench");
  test::SharedBroker().CreateTopic(topic, 2);
  constexpr uint64_t kRows = 20000;
  std::string lines;
  stream::CriteoGenerator({.days = 1, .rows_per_day = kRows, .seed = 1})
      .Generate(0, 0, kRows, &lines, nullptr);
  std::vector<test::TopicRecord> records;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin);
    records.push_back({.partition = static_cast<int32_t>(records.size() % 2),
                       .value = lines.substr(begin, end - begin)});
    begin = end + 1;
  }
  test::WriteTopic(test::SharedBroker().bootstrap(), topic, records);
  const test::Ended ended = test::Run({TACIT, "bench", "kafka", "--quick", "--json", "--brokers",
                                       test::SharedBroker().bootstrap(), "--topic", topic});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::array rows = json::parse(ended.out).at("rows").as_array();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].at("name"), "kafka-bare-poll");
  EXPECT_EQ(rows[1].at("name"), "kafka-bare-batches");
  EXPECT_EQ(rows[2].at("name"), "kafka-ingest");
  const double limit = rows[2].at("limit").to_number<double>();
  EXPECT_EQ(limit, std::max(rows[0].at("value").to_number<double>(),
                            rows[1].at("value").to_number<double>()));
  EXPECT_GT(rows[2].at("share").to_number<double>(), 0);
  for (const json::value& row : rows)
    EXPECT_GT(row.at("cpu_s_per_million").to_number<double>(), 0) << row.at("name");
}

// The feed's benchmark through a real broker; afterwards its topic is not empty any more.
TEST(FeedBenchTest, GoesThroughBrokers) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  const std::string topic = test::FreshName("bench");
  test::SharedBroker().CreateTopic(topic, 4, {{"cleanup.policy", "compact"}});
  const std::vector<std::string> command = {TACIT,
                                            "bench",
                                            "feed",
                                            "--quick",
                                            "--json",
                                            "--brokers",
                                            test::SharedBroker().bootstrap(),
                                            "--topic",
                                            topic};
  const test::Ended ended = test::Run(command, {}, std::chrono::seconds(120));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  int found = 0;
  const json::value output = json::parse(ended.out);
  for (const json::value& row : output.at("rows").as_array()) {
    if (!row.at("name").as_string().starts_with("feed-broker-")) continue;
    ++found;
    EXPECT_GT(row.at("value").to_number<double>(), 0) << row.at("name");
  }
  EXPECT_EQ(found, 5);
  const test::Ended again = test::Run(command, {}, std::chrono::seconds(120));
  EXPECT_NE(again.exit_code, 0);
  EXPECT_NE(again.err.find("has records"), std::string::npos) << again.err;
}

TEST(KafkaBenchTest, SaysWhatItNeeds) {
  const test::Ended ended = test::Run({TACIT, "bench", "kafka"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("--brokers"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace tacit
