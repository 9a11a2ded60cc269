#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "sample.h"

namespace tacit::config {
namespace {

using ::testing::HasSubstr;

// A configuration of workers, with one change.
Result<Config> ParseWith(std::string_view from = "", std::string_view to = "") {
  std::string head =
      "source: {kind: kafka, format: json, topic: clicks, periods: topic}\n"
      "feed: {topic: model}\n"
      "workers: {topic: sum, key_file: /k}\n"
      "kafka: {bootstrap.servers: x, errors.deadletterqueue.topic.name: dead}\n";
  const size_t at = head.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  head.replace(at, from.size(), to);
  return Parse(Sample("source:\n  kind: generator\n", head), "c.yaml", {});
}

TEST(WorkersConfig, HasTwoTopicsAndDefaults) {
  const auto config = ParseWith();
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->workers.plan_topic(), "sum.plan");
  EXPECT_EQ(config->workers.sums_topic(), "sum.sums");
  EXPECT_EQ(config->workers.key_file, "/k");
  EXPECT_EQ(config->workers.patience_ms, 5000u);
  const auto without = ParseWith("workers: {topic: sum, key_file: /k}\n", "");
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->workers.topic, "");
}

TEST(WorkersConfig, IsRefusedByName) {
  const struct {
    std::string from, to, why;
  } cases[] = {
      {", key_file: /k", "", "workers.key_file: required, and has no default"},
      {"key_file: /k", "key_file: \"\"", "c.yaml:3: workers.key_file: is empty"},
      {", periods: topic", "",
       "c.yaml:3: workers.topic: needs source.periods: topic, with source.kind kafka"},
      {"feed: {topic: model}\n", "", "workers.topic: needs feed.topic"},
      {"topic: sum", "topic: a b", "c.yaml:3: workers.topic: 'a b.plan' is no topic's name"},
      {"topic: clicks", "topic: sum.sums", "workers.topic: 'sum.sums' is source.topic itself"},
      {"topic: model", "topic: sum.plan", "workers.topic: 'sum.plan' is feed.topic itself"},
      {"name: dead", "name: sum.sums", "workers.topic: 'sum.sums' is the topic of dead letters"},
      {"key_file: /k", "key_file: /k, patience_ms: 99", "c.yaml:3: workers.patience_ms: must be"},
  };
  for (const auto& one : cases) {
    const auto config = ParseWith(one.from, one.to);
    ASSERT_FALSE(config) << one.why;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(config.error().message, HasSubstr(one.why));
  }
}

}  // namespace
}  // namespace tacit::config
