// The formula for feeds of more rows and replicas is held against sums by hand, and programs read
// what `tacit bench feed` prints. No figure of time is held to anything.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <string>

#include "bench/feed_model.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using Bound = bench::FeedOutlook::Bound;

bench::FeedRates RoundRates() {
  return {.row_bytes = 100,
          .version_bytes = 1000,
          .publish_rows_s = 400'000,
          .apply_rows_s = 200'000,
          .first_rows_s = 500'000,
          .version_s = 0.01};
}

TEST(FeedModelTest, IsWhatOneReckonsByHand) {
  // 50,000 rows every two seconds: 5,001,000 bytes to each of 4 replicas.
  const bench::FeedLoad load{.rows = 1e6,
                             .replicas = 4,
                             .changed_rows_s = 25'000,
                             .interval_s = 2,
                             .broker_bytes_s = 100e6,
                             .topic_factor = 1.5};
  const bench::FeedOutlook outlook = LookAhead(RoundRates(), load);
  EXPECT_DOUBLE_EQ(outlook.version_rows, 50'000);
  EXPECT_DOUBLE_EQ(outlook.broker_in_bytes_s, 2'500'500);
  EXPECT_DOUBLE_EQ(outlook.broker_out_bytes_s, 10'002'000);
  // 2 s of waiting, .125 s of publishing; .26 s of applying are longer than .20004 s of sending.
  EXPECT_DOUBLE_EQ(outlook.lag_s, 2 + 0.125 + 0.26);
  EXPECT_DOUBLE_EQ(outlook.topic_bytes, 150e6);
  EXPECT_DOUBLE_EQ(outlook.catch_up_s, 3);   // 1,500,000 rows; they are sent in 1.5 s
  EXPECT_DOUBLE_EQ(outlook.all_begin_s, 6);  // 600 MB
  EXPECT_DOUBLE_EQ(outlook.changed_rows_s_most, 200'000);
  EXPECT_EQ(outlook.bound, Bound::kReplica);
  EXPECT_TRUE(outlook.follows);
}

TEST(FeedModelTest, NamesWhatCannotFollow) {
  bench::FeedLoad load{.rows = 1e9,
                       .replicas = 100,
                       .changed_rows_s = 1e5,
                       .interval_s = 1,
                       .broker_bytes_s = 1e9,
                       .topic_factor = 1};
  bench::FeedOutlook outlook = LookAhead(RoundRates(), load);
  EXPECT_EQ(outlook.bound, Bound::kBroker);
  EXPECT_DOUBLE_EQ(outlook.changed_rows_s_most, 1e5);
  EXPECT_TRUE(outlook.follows);  // just so
  load.changed_rows_s = 1.1e5;
  EXPECT_FALSE(LookAhead(RoundRates(), load).follows);
  load.replicas = 1;
  EXPECT_TRUE(LookAhead(RoundRates(), load).follows);
  bench::FeedRates slow = RoundRates();
  slow.publish_rows_s = 1e5;
  outlook = LookAhead(slow, load);
  EXPECT_EQ(outlook.bound, Bound::kTrainer);
  EXPECT_FALSE(outlook.follows);
  // A version has each row once, however often it changed.
  load.rows = 1000;
  outlook = LookAhead(slow, load);
  EXPECT_DOUBLE_EQ(outlook.version_rows, 1000);
  EXPECT_TRUE(outlook.follows);
}

TEST(FeedBenchTest, SaysWhatWasMeasuredAndWhatFollows) {
  const test::Ended ended =
      test::Run({TACIT, "bench", "feed", "--quick", "--json"}, {}, std::chrono::seconds(280));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, json::object> rows;
  const json::value output = json::parse(ended.out);
  for (const json::value& row : output.at("rows").as_array())
    rows[std::string(row.at("name").as_string())] = row.as_object();
  for (const char* name : {"feed-encode", "feed-assemble", "feed-apply", "feed-replica"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    EXPECT_GT(rows[name].at("value").to_number<double>(), 0) << name;
    EXPECT_GT(rows[name].at("limit").to_number<double>(), 0) << name;
    EXPECT_GT(rows[name].at("processor_rows_s").to_number<double>(), 0) << name;
  }
  // A record of 16 numbers: 13 bytes of key, 44 around the payload of 64.
  EXPECT_EQ(rows["feed-version-bytes"].at("row_bytes").to_number<double>(), 13 + 44 + 64);
  const json::object& first = rows["feed-first-version"];
  EXPECT_GT(first.at("memory_bytes").to_number<double>(), 0);
  EXPECT_GT(first.at("disk_bytes").to_number<double>(), first.at("rows").to_number<double>() * 64);
  int ahead = 0;
  for (const auto& [name, row] : rows) {
    if (!name.starts_with("feed-ahead-")) continue;
    ++ahead;
    EXPECT_GE(row.at("value").to_number<double>(), row.at("interval_s").to_number<double>());
    EXPECT_GT(row.at("catch_up_s").to_number<double>(), 0) << name;
  }
  EXPECT_EQ(ahead, 12);
}

TEST(FeedBenchTest, ATopicWithoutBrokersIsRefused) {
  const test::Ended ended = test::Run({TACIT, "bench", "feed", "--topic", "model"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("--brokers"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace tacit
