// The tables of one kind in several rooms, compared with each other.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/environment.h"
#include "train/optimizer/optimizer.h"
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
