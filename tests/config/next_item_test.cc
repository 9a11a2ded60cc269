// Models of the next item: what they are made of, and what they cannot do without.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace tacit::config {
namespace {

using ::testing::HasSubstr;

struct Parts {
  std::string model = "{kind: sequence, width: 16}";
  std::string mechanism = "{kind: dp-sgd}";
  std::string participation = "{mode: once, batch: 100, max_participations: 5}";
  std::string privacy = "{unit: user, epsilon: 8, delta: 1e-7}";
  std::string catalogue = "catalogue: {file: items.dat}\n";
  std::string more = "";
};

std::string Yaml(const Parts& parts) {
  return fmt::format(
      "source: {{kind: log, files: /dev/null, format: json}}\n"
      "{}schema: {{features: [{{name: C1, kind: categorical, buckets: 1000}}]}}\n"
      "learners:\n"
      "  - id: next\n"
      "    model: {}\n"
      "    mechanism: {}\n"
      "    participation: {}\n"
      "    privacy: {}\n{}"
      "store: {{path: /tmp/tacit/store}}\n",
      parts.catalogue, parts.model, parts.mechanism, parts.participation, parts.privacy,
      parts.more);
}

const Parts kCounts{.model = "{kind: transitions}", .mechanism = "{kind: counts}"};

void ExpectRefused(const Parts& parts, const std::string& message) {
  const Result<Config> config = Parse(Yaml(parts), "c.yaml", {});
  ASSERT_FALSE(config) << Yaml(parts);
  EXPECT_THAT(config.error().message, HasSubstr(message));
}

TEST(NextItem, AreReadAndDumped) {
  for (const Parts& parts :
       {Parts{.model = "{kind: sequence, encoder: gru, width: 16, length: 20, tied: false}",
       .more = "    history: {items: 30, days: 7, serve_users: true}\n"},
        Parts{.model = "{kind: transitions, described: false, forget: 0.5, cells: 1000}",
        .mechanism = "{kind: counts}"},
        Parts{.mechanism = "{kind: none}",
        .privacy = "{unit: user, epsilon: .inf, delta: 1e-7}"}}) {
    const Result<Config> config = Parse(Yaml(parts), "c.yaml", {});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(config->learners[0].model.recommends());
    const Result<Config> again = Parse(Dump(*config), "dump", {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(Dump(*again), Dump(*config));
  }
  const Result<Config> config =
      Parse(Yaml({.more = "    history: {items: 30, days: 7, serve_users: true}\n"}), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->catalogue.file, "items.dat");
  EXPECT_EQ(config->learners[0].history.items, 30u);
  EXPECT_EQ(config->learners[0].history.days, 7u);
  EXPECT_TRUE(config->learners[0].history.serve_users);
}

TEST(NextItem, SequencesAreComputedInEitherPrecision) {
  const Result<Config> config =
      Parse(Yaml({.model = "{kind: sequence, compute: bf16}"}), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learners[0].model.compute, "bf16");
  ExpectRefused({.model = "{kind: sequence, compute: f16}"}, "compute");
}

TEST(NextItem, NeedAPublicCatalogue) {
  Parts parts;
  parts.catalogue = "";
  ExpectRefused(parts, "learners[0].model.kind: a model of the next item needs catalogue.file");
}

TEST(NextItem, AreOfUsersAlone) {
  ExpectRefused(
      {.participation = "{mode: once}", .privacy = "{unit: event, epsilon: 8, delta: 1e-7}"},
      "learners[0].privacy.unit: must be user for a model of the next item");
}

TEST(NextItem, AreGuardedByWhatCanGuardThem) {
  ExpectRefused({.mechanism = "{kind: adafest, threshold: 1}"},
                "must be dp-sgd for model.kind sequence");
  ExpectRefused({.mechanism = "{kind: counts}"}, "counts is for model.kind transitions only");
  ExpectRefused({.mechanism = "{kind: dp-sgd, clipping: per-layer}"}, "flat or automatic");
  Parts counts = kCounts;
  counts.mechanism = "{kind: dp-sgd}";
  ExpectRefused(counts, "must be counts for model.kind transitions");
  Parts clicks{.model = "{kind: pctr}", .mechanism = "{kind: counts}"};
  ExpectRefused(clicks, "counts is for model.kind transitions only");
}

TEST(NextItem, TransitionsAreCountedOncePerPeriod) {
  Parts parts = kCounts;
  parts.participation =
      "{mode: poisson, batch: 10, sampling_rate: 0.1, steps_per_period: 1, period: 100, "
      "max_participations: 5}";
  ExpectRefused(parts, "participation.mode: must be once for model.kind transitions");
}

TEST(NextItem, ReadAStreamOnce) {
  const Result<Config> config =
      Parse(Yaml({.participation = "{mode: once, batch: 100, max_participations: 9}"}), "c.yaml",
            {"source.passes=2"});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("source.passes"));
}

}  // namespace
}  // namespace tacit::config
