// Models of the next item: what they are made of, and what they cannot do without.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/tuned.h"
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
  std::string format = "format: json";
};

std::string Yaml(const Parts& parts) {
  return fmt::format(
      "source: {{kind: log, files: /dev/null, {}}}\n"
      "{}schema: {{features: [{{name: C1, kind: categorical, buckets: 1000}}]}}\n"
      "learners:\n"
      "  - id: next\n"
      "    model: {}\n"
      "    mechanism: {}\n"
      "    participation: {}\n"
      "    privacy: {}\n{}"
      "store: {{path: /tmp/tacit/store}}\n",
      parts.format, parts.catalogue, parts.model, parts.mechanism, parts.participation,
      parts.privacy, parts.more);
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

TEST(NextItem, SequencesMayHaveCarriersAndCountsNone) {
  for (const char* mechanism : {"{kind: dp-sgd, carriers: {from: history, rank: 3}}",
                                "{kind: none, carriers: {from: random}}"}) {
    const bool none = std::string_view(mechanism).find("none") != std::string_view::npos;
    const std::string privacy =
        fmt::format("{{unit: user, epsilon: {}, delta: 1e-7}}", none ? ".inf" : "8");
    const Result<Config> config =
        Parse(Yaml({.mechanism = mechanism, .privacy = privacy}), "c.yaml", {});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(config->learners[0].mechanism.carriers.on());
  }
  ExpectRefused({.mechanism = "{kind: dp-sgd, carriers: {from: history}}",
                 .more = "    optimizer: {kind: adam-bc}\n"},
                "learners[0].optimizer.kind: adam-bc takes");
  ExpectRefused({.model = "{kind: transitions}",
                 .mechanism = "{kind: none, carriers: {from: history}}",
                 .privacy = "{unit: user, epsilon: .inf, delta: 1e-7}"},
                "must be none for model.kind transitions: only the layers of pctr and sequence");
}

TEST(NextItem, SequencesBeginWithWhatWasTuned) {
  const auto parsed = [](const std::string& more) {
    const Result<Config> config =
        Parse(Yaml({.model = "{kind: sequence" + more + "}",
                    .participation = "{mode: poisson, batch: 10, period: 100, sampling_rate: 0.5, "
                                     "steps_per_period: 2, max_participations: 4}"}),
              "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->learners[0].model.sequence : Sequence();
  };
  const Sequence plain = parsed("");
  EXPECT_EQ(plain.length, tuned::kLength);
  EXPECT_EQ(plain.width, tuned::kWidth);
  EXPECT_TRUE(plain.item_bias && plain.mask_seen && plain.random_crops);
  // The share depends on the kind of start, and the mask on the loss.
  EXPECT_DOUBLE_EQ(parsed(", start: popularity").start_share,
                   std::pow(tuned::kHistogramShareOfStream, 2));
  EXPECT_EQ(parsed(", start: counts").start_share, tuned::kCountsShare);
  EXPECT_FALSE(parsed(", negatives: 5").mask_seen);
  EXPECT_FALSE(parsed(", label_smoothing: 0.1").mask_seen);
  EXPECT_TRUE(parsed(", negatives: 5, mask_seen: true").mask_seen) << "which wiring refuses";
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

// Users' allowances would be spent on records that name no item.
TEST(NextItem, NeedAPlaceOfItems) {
  ExpectRefused({.format = "format: csv, csv: {user: who}"},
                "learners[0].model.kind: a model of the next item needs source.csv.item, the place "
                "of a record's item");
  ExpectRefused({.format = "format: json, json: {item: ''}"}, "needs source.json.item");
  const Result<Config> config =
      Parse(Yaml({.format = "format: csv, csv: {user: who, item: seen}"}), "c.yaml", {});
  EXPECT_TRUE(config) << config.error().message;
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

const char kHeld[] =
    "{mode: poisson, batch: 10, sampling_rate: 0.1, steps_per_period: 5, period: 100, "
    "max_participations: 5}";

TEST(NextItem, StartsAreReadAndDumped) {
  const Result<Config> config =
      Parse(Yaml({.model = "{kind: sequence, mask_seen: true, crops: 3, random_crops: true, "
                           "warm_up_steps: 7, start: counts, start_share: 0.4, start_weight: 2, "
                           "described: false, cells: 99, forget: 0.5}",
                  .participation = kHeld}),
            "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const Model& model = config->learners[0].model;
  EXPECT_TRUE(model.sequence.mask_seen);
  EXPECT_EQ(model.sequence.crops, 3u);
  EXPECT_TRUE(model.sequence.random_crops);
  EXPECT_EQ(model.sequence.warm_up_steps, 7u);
  EXPECT_EQ(model.sequence.start, Sequence::Start::kCounts);
  EXPECT_EQ(model.sequence.start_share, 0.4);
  EXPECT_EQ(model.sequence.start_weight, 2);
  EXPECT_FALSE(model.transitions.described);
  EXPECT_EQ(model.transitions.cells, 99u);
  EXPECT_EQ(model.transitions.forget, 0.5);
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(Dump(*again), Dump(*config));
}

// A start uses the keys that it needs, and no others.
TEST(NextItem, KeysOfAnotherStartChangeNothing) {
  const auto dump = [](const std::string& more) {
    const Result<Config> config = Parse(
        Yaml({.model = "{kind: sequence" + more + "}", .participation = kHeld}), "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    return config ? Dump(*config) : "";
  };
  EXPECT_EQ(dump(", start_share: 0.4, start_weight: 2, cells: 9, forget: 0.5, described: false"),
            dump(""));
  const std::string popularity = ", start: popularity";
  EXPECT_EQ(dump(popularity + ", start_weight: 2, cells: 9, described: false"), dump(popularity));
  EXPECT_NE(dump(popularity + ", start_share: 0.4"), dump(popularity));
  EXPECT_NE(dump(popularity + ", forget: 0.4"), dump(popularity));
  const std::string counts = ", start: counts";
  for (const char* more :
       {", start_weight: 2", ", cells: 9", ", described: false", ", forget: 0.4"})
    EXPECT_NE(dump(counts + more), dump(counts)) << more;
}

TEST(NextItem, StartsNeedAHeldPeriodAndAShare) {
  ExpectRefused({.model = "{kind: sequence, start: counts}"},
                "learners[0].model.start: releases what a held period holds");
  ExpectRefused(
      {.model = "{kind: sequence, start: counts, start_share: 1}", .participation = kHeld},
      "model.start_share");
  ExpectRefused({.model = "{kind: sequence, start: all}", .participation = kHeld}, "model.start");
}

TEST(NextItem, ARankerIsReadAndDumped) {
  Parts parts = kCounts;
  parts.model =
      "{kind: transitions, ranker: true, ranker_users: 300, ranker_share: 0.1, ranker_steps: 50, "
      "seed: 9}";
  const Result<Config> config = Parse(Yaml(parts), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const Model& model = config->learners[0].model;
  EXPECT_TRUE(model.transitions.ranker);
  EXPECT_EQ(model.transitions.ranker_users, 300u);
  EXPECT_EQ(model.transitions.ranker_share, 0.1);
  EXPECT_EQ(model.transitions.ranker_steps, 50u);
  EXPECT_EQ(model.seed, 9u);
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(Dump(*again), Dump(*config));
  parts.model = "{kind: transitions, ranker: true}";
  ExpectRefused(parts, "model.ranker_users");
  parts.model = "{kind: transitions, ranker_users: 3, ranker_share: 0.1, ranker_steps: 5, seed: 9}";
  const Result<Config> unused = Parse(Yaml(parts), "c.yaml", {});
  ASSERT_TRUE(unused) << unused.error().message;
  const Result<Config> plain = Parse(Yaml(kCounts), "c.yaml", {});
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(Dump(*unused), Dump(*plain));
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
