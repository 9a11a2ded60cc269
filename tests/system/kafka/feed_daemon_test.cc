// tacitd publishes what it commits, and tacit reads it, with a real broker between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/eventually.h"
#include "support/metrics_page.h"
#include "support/process.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"
#include "system/kafka/topic_config.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;

class FeedDaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(kDefaultVersion);
    topic_ = FreshName("events");
    model_ = FreshName("model");
    SharedBroker().CreateTopic(topic_, 1);
    SharedBroker().CreateTopic(model_, 2, {{"cleanup.policy", "compact"}});
    config_ = WriteTopicConfig(dir_, topic_, SharedBroker().bootstrap());
  }
  void WriteEvents(int count) const {
    std::vector<TopicRecord> records;
    for (int i = 0; i < count; ++i)
      records.push_back({.partition = 0,
                         .value = "{\"label\": " + std::to_string(i % 2) +
                                  ", \"features\": {\"n\": " + std::to_string(i) + ", \"c\": \"v" +
                                  std::to_string(i % 7) + "\"}}"});
    WriteTopic(SharedBroker().bootstrap(), topic_, records);
  }
  Ended Learn(std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {TACITD,        "--config", config_,
                                        "--until-end", "--set",    "feed.topic=" + model_};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  Ended Feed(const std::string& what, std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {
        TACIT, "feed", what, "--config", config_, "--set", "feed.topic=" + model_};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }

  TempDir dir_;
  std::string topic_, model_, config_;
};

TEST_F(FeedDaemonTest, WhatIsCommittedIsPublishedWhole) {
  const Ended none = Feed("verify");
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr("no version is published"));
  WriteEvents(100);
  const Ended first = Learn();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Ended verified = Feed("verify");
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("is whole, and its ledger of 1 entry leads to head"));
  WriteEvents(100);
  ASSERT_EQ(Learn().exit_code, 0);
  const Ended shown = Feed("show", {"--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("\"faults\":[]"));
  EXPECT_THAT(shown.out, HasSubstr("\"partitions\":2"));
  const Ended table = Feed("show");
  EXPECT_THAT(table.out, HasSubstr("whole"));
}

// Another store, with the same configuration: training goes on, the feed does not.
TEST_F(FeedDaemonTest, TheDocumentedTableHasTheMetricsOfAFeed) {
  WriteEvents(100);
  const std::string socket = dir_ / "socket";
  Process daemon({TACITD, "--config", config_, "--set", "feed.topic=" + model_, "--set",
                  "serve.listen=unix:" + socket});
  std::string page;
  ASSERT_TRUE(Eventually("the daemon shows the feed's metrics", [&] {
    page = test::Run(
               {"/usr/bin/env", "curl", "-s", "--unix-socket", socket, "http://localhost/metrics"})
               .out;
    return page.find("tacit_feed_") != std::string::npos;
  })) << daemon.Err();
  const MetricShapes shown = ShapesOf(page);
  const auto promised = DocumentedMetrics();
  size_t rows = 0;
  for (const auto& [name, row] : promised) {
    if (!name.starts_with("tacit_feed_")) continue;
    ++rows;
    EXPECT_TRUE(row.is_public && row.of == metrics::kFeed) << name;
    ASSERT_TRUE(shown.contains(name)) << name;
    EXPECT_EQ(shown.at(name), row.shape) << name;
  }
  EXPECT_EQ(rows, 8u);
  for (const auto& [name, shape] : shown)
    EXPECT_TRUE(promised.contains(name)) << name << " is not in metrics/families.h";
}

TEST_F(FeedDaemonTest, AnotherStoreIsRefusedUntilItTakesOver) {
  WriteEvents(100);
  ASSERT_EQ(Learn().exit_code, 0);
  const std::vector<std::string> other = {"--set", "store.path=" + (dir_ / "other"), "--set",
                                          "kafka.group.id=other"};
  const Ended refused = Learn(other);
  EXPECT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("the feed is not published any more, and training goes on"));
  EXPECT_THAT(refused.err, HasSubstr("--take-over-feed"));
  WriteEvents(100);
  std::vector<std::string> takes = other;
  takes.emplace_back("--take-over-feed");
  const Ended taken = Learn(takes);
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("has all of version"));
  EXPECT_EQ(Feed("verify").exit_code, 0);
  const Ended back = Learn();
  EXPECT_THAT(back.err, HasSubstr("is of the store of lineage"));
}

}  // namespace
}  // namespace tacit::test
