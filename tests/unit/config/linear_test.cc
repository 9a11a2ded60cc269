// The configuration of the linear click model.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace tacit::config {
namespace {

using testing::HasSubstr;
using testing::Not;

struct LinearParts {
  std::string model = "{kind: linear}";
  std::string mechanism = "{kind: sums}";
  std::string participation = "{mode: once, batch: 10000}";
  std::string privacy = "{unit: event, epsilon: 1, delta: 1e-7}";
  std::string more = "";
};

Result<Config> ReadLinear(const LinearParts& parts) {
  return Parse(
      fmt::format("source: {{kind: log, files: /dev/null, format: json}}\n"
                  "schema: {{features: [{{name: C1, kind: categorical, buckets: 1000}}]}}\n"
                  "learners:\n"
                  "  - id: sums\n"
                  "    model: {}\n"
                  "    mechanism: {}\n"
                  "    participation: {}\n"
                  "    privacy: {}\n{}"
                  "store: {{path: /tmp/tacit/store}}\n",
                  parts.model, parts.mechanism, parts.participation, parts.privacy, parts.more),
      "c.yaml", {});
}

void ExpectLinearRefused(const LinearParts& parts, const std::string& message) {
  const Result<Config> config = ReadLinear(parts);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr(message));
}

TEST(LinearConfig, IsReadAndDumped) {
  for (const LinearParts& parts :
       {LinearParts{}, LinearParts{.mechanism = "{kind: sums, deviations: 4, whole_columns: 1000}"},
        LinearParts{.participation = "{mode: once, batch: 10000, max_participations: 20}",
        .privacy = "{unit: user, epsilon: 1, delta: 1e-7}"},
        LinearParts{.mechanism = "{kind: none}",
        .privacy = "{unit: event, epsilon: .inf, delta: 1e-7}"}}) {
    const Result<Config> config = ReadLinear(parts);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_FALSE(config->learners[0].model.recommends());
    const Result<Config> again = Parse(Dump(*config), "dump", {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(Dump(*again), Dump(*config));
    EXPECT_THAT(Dump(*config), Not(HasSubstr("learning_rate"))) << "nothing descends";
  }
  const Result<Config> config =
      ReadLinear({.mechanism = "{kind: sums, deviations: 4, whole_columns: 1000}"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learners[0].mechanism.deviations, 4);
  EXPECT_EQ(config->learners[0].mechanism.whole_columns, 1000u);
}

TEST(LinearConfig, CrossesAreReadAndDumpedAsTheyAre) {
  for (const auto& [written, read] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"[C1*C2, 'C[*]*n']", {"C1*C2", "C[*]*n"}}, {"C1*C2", {"C1*C2"}}}) {
    const Result<Config> config = ReadLinear({.model = "{kind: linear, crosses: " + written + "}"});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->learners[0].model.crosses, read);
    const Result<Config> again = Parse(Dump(*config), "dump", {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->learners[0].model.crosses, read);
  }
  ExpectLinearRefused({.model = "{kind: linear, crosses: [[C1, C2]]}"},
                      "learners[0].model.crosses[0]");
  ExpectLinearRefused({.model = "{kind: linear, crosses: []}"},
                      "learners[0].model.crosses: must be a list of texts, not empty");
}

TEST(LinearConfig, IsGuardedBySumsAlone) {
  ExpectLinearRefused({.mechanism = "{kind: adafest, threshold: 3}"},
                      "learners[0].mechanism.kind: must be sums for model.kind linear");
  ExpectLinearRefused({.mechanism = "{kind: counts}"}, "counts is for model.kind transitions only");
  ExpectLinearRefused({.mechanism = "{kind: sums, deviations: 1}"}, "deviations");
}

TEST(LinearConfig, EachEventIsInOneRelease) {
  ExpectLinearRefused({.participation = "{mode: poisson, batch: 10, sampling_rate: 0.1, "
                                        "steps_per_period: 1, period: 100}"},
                      "participation.mode: must be once for model.kind linear: each step adds up a "
                      "period of `batch` offsets");
}

}  // namespace
}  // namespace tacit::config
