// Unit user: what must be said of it, and what it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace tacit::config {
namespace {

using ::testing::HasSubstr;

std::string Yaml(const std::string& participation, const std::string& source = "format: json") {
  return "source: {kind: log, files: /dev/null, " + source +
         "}\n"
         "schema: {features: [{name: C1, kind: categorical, buckets: 1000}]}\n"
         "learners:\n"
         "  - id: ctr\n"
         "    model: {kind: pctr}\n"
         "    mechanism: {kind: adafest, threshold: 10}\n"
         "    participation: " +
         participation +
         "\n"
         "    privacy: {unit: user, epsilon: 8, delta: 1e-7}\n"
         "store: {path: /tmp/tacit/store}\n";
}

void ExpectRefused(const std::string& yaml, const std::string& message) {
  const Result<Config> config = Parse(yaml, "c.yaml", {});
  ASSERT_FALSE(config) << yaml;
  EXPECT_THAT(config.error().message, HasSubstr(message));
}

TEST(UnitUser, IsReadWithItsBounds) {
  const Result<Config> config =
      Parse(Yaml("{mode: once, max_participations: 5, per_period: 2, period: 9000, "
                 "user_records_max: 7}",
                 "format: json, dedupe: {window: 1000}"),
            "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const Participation& p = config->learners[0].participation;
  EXPECT_TRUE(config->learners[0].privacy.of_users());
  EXPECT_EQ(p.max_participations, 5u);
  EXPECT_EQ(p.per_period, 2u);
  EXPECT_EQ(p.period, 9000u);
  EXPECT_EQ(p.user_records_max, 7u);
  EXPECT_EQ(config->source.dedupe_window, 1000u);
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(Dump(*again), Dump(*config));
}

// Without one record the next with its id would be learnt from: two parts change where one is
// charged.
TEST(UnitEvent, GoesWithNoDeduplication) {
  const auto yaml = [](const std::string& mechanism, const std::string& epsilon,
                       const std::string& window) {
    std::string text = Yaml("{mode: once}", "format: json, dedupe: {window: " + window + "}");
    const auto replace = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace("{kind: adafest, threshold: 10}", mechanism);
    replace("unit: user, epsilon: 8", "unit: event, epsilon: " + epsilon);
    return text;
  };
  ExpectRefused(yaml("{kind: dp-sgd}", "8", "1000"),
                "learners[0].privacy.unit: event cannot be combined with source.dedupe.window");
  EXPECT_TRUE(Parse(yaml("{kind: dp-sgd}", "8", "0"), "c.yaml", {}));
  EXPECT_TRUE(Parse(yaml("{kind: none}", ".inf", "1000"), "c.yaml", {}));
}

TEST(UnitUser, NeedsRecordsThatNameTheirUser) {
  const std::string once = "{mode: once, max_participations: 5}";
  ExpectRefused(Yaml(once, "format: criteo_tsv"),
                "learners[0].privacy.unit: unit user needs records that name their user");
  ExpectRefused(
      Yaml(once, "format: csv"),
      "learners[0].privacy.unit: unit user needs source.csv.user, the place of a record's user");
  ExpectRefused(Yaml(once, "format: json, json: {user: ''}"),
                "learners[0].privacy.unit: unit user needs source.json.user");
  EXPECT_TRUE(Parse(Yaml(once, "format: csv, csv: {user: who}"), "c.yaml", {}));
  EXPECT_TRUE(Parse(Yaml(once, "format: json, json: {user: /who}"), "c.yaml", {}));
}

TEST(UnitUser, TheAllowanceHasNoDefault) {
  ExpectRefused(Yaml("{mode: once}"), "max_participations: required, and has no default");
  ExpectRefused(Yaml("{mode: poisson, batch: 10, sampling_rate: 0.1, steps_per_period: 9, "
                     "period: 100}"),
                "max_participations: required, and has no default");
}

TEST(UnitUser, AnAllowanceOfLessThanAPeriodIsRefused) {
  ExpectRefused(Yaml("{mode: poisson, batch: 10, sampling_rate: 0.1, steps_per_period: 9, "
                     "period: 100, max_participations: 8}"),
                "8 steps are less than a period has (9): no user could ever be in one");
}

TEST(UnitUser, ABoundPerPeriodNeedsAPeriod) {
  ExpectRefused(Yaml("{mode: once, max_participations: 5, per_period: 2}"),
                "participation.period: nothing closes a period");
}

TEST(UnitUser, RecordsMustNameTheirUser) {
  ExpectRefused(Yaml("{mode: once, max_participations: 5}", "format: criteo_tsv"),
                "learners[0].privacy.unit: unit user needs records that name their user");
}

// A user whose allowance is used is left out of a later pass: more passes than steps are no fault.
TEST(UnitUser, PassesNeedNotFitTheAllowance) {
  EXPECT_TRUE(
      Parse(Yaml("{mode: once, max_participations: 1}", "format: json, passes: 3"), "c.yaml", {}));
}

}  // namespace
}  // namespace tacit::config
