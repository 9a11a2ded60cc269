// The tables of one kind in several rooms, compared with each other.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/environment.h"
#include "event/codec.h"
#include "train/optimizer/optimizer.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/mechanism_factory.h"
#include "wiring/plans/mechanism_kinds.h"
#include "wiring/plans/source.h"

namespace tacit {
namespace {

// A key of a kind that no description asks for would be unused without a word.
TEST(Tables, KeysOfKindsAreKeysOfTheConfiguration) {
  const std::vector<std::string> patterns = config::KeyPatterns();
  const auto is_key = [&](const std::string& key) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
      return pattern == key || pattern.starts_with(key + ".");
    });
  };
  const auto check = [&](const auto& kinds, const std::string& section) {
    for (const auto& kind : kinds)
      for (const std::string_view key : kind.keys.names) {
        if (key.empty()) continue;
        const std::string path = key == "kafka" ? "kafka" : section + std::string(key);
        EXPECT_TRUE(is_key(path)) << kind.name << ": " << path;
      }
  };
  check(config::kSources, "source.");
  check(config::kModels, "learners.#.model.");
  check(config::kMechanisms, "learners.#.mechanism.");
  check(config::kOptimizers, "learners.#.optimizer.");
  EXPECT_FALSE(is_key("source.file"));
}

TEST(Tables, OptimisersHaveOneNameInEveryRoom) {
  for (const config::OptimizerTraits& traits : config::kOptimizers) {
    SCOPED_TRACE(traits.name);
    config::Optimizer optimizer;
    optimizer.kind = traits.kind;
    const train::OptimizerOptions options = wiring::MakeOptimizer(optimizer);
    EXPECT_EQ(options.kind->name, traits.name);
    EXPECT_EQ(options.kind->subtracts_noise, !traits.without_noise.empty());
  }
  EXPECT_EQ(train::AllOptimizers().size(), std::size(config::kOptimizers));
}

TEST(Tables, MechanismsHaveOneNameInEveryRoom) {
  for (const wiring::MechanismMaker& maker : wiring::AllMechanisms()) {
    const config::MechanismTraits& traits = RowOf(config::kMechanisms, maker.kind);
    EXPECT_EQ(privacy::Name(maker.charged_as), traits.name);
    // Without a selector a mechanism guards no click model, or there is nothing to guard.
    EXPECT_EQ(maker.select != nullptr, traits.clips_gradients) << traits.name;
    // One that noises representations says that no row is written.
    EXPECT_EQ(maker.rows != nullptr, traits.clips_gradients || traits.noises_representations)
        << traits.name;
    // Each release beside the steps has a key that can cost too much.
    const bool beside = traits.keys.has("vocabulary") || maker.asks == privacy::Query::kRowChoice;
    EXPECT_EQ(maker.too_dear != nullptr, beside) << traits.name;
  }
}

// The refusal of a source with these keys; empty: it is taken.
std::string RefusalOf(const std::string& source) {
  const auto config = config::Parse(
      fmt::format("source: {{{}, csv: {{columns: [label, n, user], user: user}}}}\n"
                  "kafka: {{bootstrap.servers: b}}\n"
                  "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                  "learners: [{{id: a, model: {{kind: pctr, hidden: [4]}}, mechanism: {{kind: "
                  "dp-sgd}}, participation: {{mode: once}}, privacy: {{unit: event, epsilon: 8, "
                  "delta: 1.0e-6}}}}]\n"
                  "store: {{path: s}}\n",
                  source),
      "c", {});
  return config ? "" : config.error().message;
}

TEST(Tables, FormatsAreReadByTheirNamesAndTakenWhereTheirRowsSay) {
  for (const config::FormatTraits& traits : config::kFormats) {
    SCOPED_TRACE(traits.name);
    std::string topic = fmt::format("kind: kafka, topic: t, format: {}", traits.name);
    if (traits.kind == config::FormatKind::kAvro) topic += ", avro: {schema_file: s}";
    EXPECT_EQ(RefusalOf(topic), "");
    const std::string framed =
        RefusalOf(topic + ", framing: confluent, registry: {url: 'http://r'}");
    EXPECT_EQ(framed.empty(), traits.may_be_framed) << framed;
    const std::string line =
        RefusalOf(fmt::format("kind: log, files: /dev/null, format: {}", traits.name));
    EXPECT_EQ(line.empty(), traits.is_line || traits.has_containers) << line;
    const std::string named = RefusalOf(topic + ", opt_out: /o");
    EXPECT_EQ(named.empty(), traits.is_named) << named;
  }
}

TEST(Tables, EachFormatHasACodecOfItsOwn) {
  const event::FeatureTransform transform({.dense = {{"n"}}, .categorical = {}});
  event::RawRecords records;
  records.bytes = "?";
  records.end = {1};
  std::set<std::string> reasons;
  for (const config::FormatTraits& traits : config::kFormats) {
    config::Source source;
    source.format = traits.kind;
    event::Batch batch;
    transform.StartBatch(&batch);
    std::vector<event::DeadLetter> dead;
    wiring::MakeCodec(source, transform)->Decode(records, &batch, &dead);
    ASSERT_EQ(dead.size(), 1u) << traits.name;
    reasons.insert(dead[0].reason);
  }
  EXPECT_EQ(reasons.size(), std::size(config::kFormats));
}

TEST(Tables, SourcesThatNeedLivePartsRefuseWithoutThem) {
  config::Source topic, generator;
  topic.kind = config::SourceKind::kKafka;
  topic.topic = "clicks";
  generator.kind = config::SourceKind::kGenerator;
  const auto opened = wiring::OpenSource(topic);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("topic 'clicks' is read by tacitd alone"));
  EXPECT_EQ((*wiring::OpenSource(generator))->topic(), "generator");
}

}  // namespace
}  // namespace tacit
