// source.halt_above: what has to be said of it, and where it is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace tacit::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string HaltYaml(const std::string& halt, const std::string& unit = "event") {
  return fmt::format(
      "source: {{kind: log, files: /dev/null, format: json{}}}\n"
      "schema: {{features: [{{name: C1, kind: categorical, buckets: 1000}}]}}\n"
      "learners:\n"
      "  - id: ctr\n"
      "    model: {{kind: pctr}}\n"
      "    mechanism: {{kind: adafest, threshold: 10}}\n"
      "    participation: {{mode: once, max_participations: 3}}\n"
      "    privacy: {{unit: {}, epsilon: 8, delta: 1e-7}}\n"
      "store: {{path: /tmp/tacit/store}}\n",
      halt.empty() ? "" : ", halt_above: " + halt, unit);
}

std::string HaltRefusal(const std::string& halt, const std::string& unit = "event") {
  const Result<Config> config = Parse(HaltYaml(halt, unit), "c.yaml", {});
  return config ? "" : config.error().message;
}

TEST(HaltAboveTest, IsOffUntilItIsAskedFor) {
  const Result<Config> config = Parse(HaltYaml(""), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->source.halt_above.given());
  EXPECT_THAT(Dump(*config), Not(HasSubstr("halt_above")));
}

TEST(HaltAboveTest, IsReadAndWritten) {
  const Result<Config> config =
      Parse(HaltYaml("{share: .25, window: 2000, epsilon: .1, delta: 1e-8}"), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const HaltAbove& halt = config->source.halt_above;
  EXPECT_EQ(halt.share, .25);
  EXPECT_EQ(halt.window, 2000u);
  EXPECT_EQ(halt.epsilon, .1);
  EXPECT_EQ(halt.delta, 1e-8);
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(Dump(*again), Dump(*config));
}

TEST(HaltAboveTest, PrivacyHasNoDefaults) {
  EXPECT_THAT(HaltRefusal("{share: .5, delta: 1e-6}"),
              AllOf(HasSubstr("source.halt_above.epsilon"), HasSubstr("no default")));
  EXPECT_THAT(HaltRefusal("{share: .5, epsilon: 1}"), HasSubstr("source.halt_above.delta"));
  EXPECT_THAT(HaltRefusal("{epsilon: 1, delta: 1e-6}"), HasSubstr("source.halt_above.share"));
}

TEST(HaltAboveTest, NumbersAreInTheirRanges) {
  for (const char* halt :
       {"{share: 0, epsilon: 1, delta: 1e-6}", "{share: 1, epsilon: 1, delta: 1e-6}",
        "{share: .5, epsilon: 0, delta: 1e-6}", "{share: .5, epsilon: 1, delta: 1}",
        "{share: .5, window: 99, epsilon: 1, delta: 1e-6}",
        "{share: .5, epsilon: .inf, delta: 1e-6}"})
    EXPECT_THAT(HaltRefusal(halt), HasSubstr("source.halt_above.")) << halt;
}

// With periods over all partitions of a topic, each is a window.
TEST(HaltAboveTest, HasNoWindowOfItsOwnWithPeriodsOfATopic) {
  const auto parse = [](const std::string& window) {
    return Parse(fmt::format("source: {{kind: kafka, topic: t, format: json, periods: topic,\n"
                             "  halt_above: {{share: .5, epsilon: 1, delta: 1e-6{}}}}}\n"
                             "kafka: {{bootstrap.servers: b, group.id: g}}\n"
                             "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                             "learners: [{{id: ctr, model: {{kind: linear}}, mechanism: {{kind: "
                             "sums}},\n"
                             "  participation: {{mode: once}},\n"
                             "  privacy: {{unit: event, epsilon: 8, delta: 1e-7}}}}]\n"
                             "store: {{path: /tmp/tacit/store}}\n",
                             window),
                 "c.yaml", {});
  };
  const Result<Config> refused = parse(", window: 10000");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("source.halt_above.window"), HasSubstr("source.periods: topic")));
  const Result<Config> config = parse("");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->source.halt_above.given());
  EXPECT_THAT(Dump(*config), Not(HasSubstr("window: 10000"))) << "it would be refused";
}

// A record that cannot be read names no user: what one of them adds to the count has no bound.
TEST(HaltAboveTest, IsRefusedWhereUsersArePromised) {
  EXPECT_THAT(HaltRefusal("{share: .5, epsilon: 1, delta: 1e-6}", "user"),
              AllOf(HasSubstr("source.halt_above: is for unit event"), HasSubstr("learner 'ctr'")));
}

}  // namespace
}  // namespace tacit::config
