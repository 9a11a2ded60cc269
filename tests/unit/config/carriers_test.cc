#include <gtest/gtest.h>

#include "config/config.h"
#include "sample.h"

namespace tacit::config {
namespace {

Result<Config> WithCarriers(const std::string& carriers, std::vector<std::string> more = {}) {
  more.push_back("learners.0.mechanism.carriers=" + carriers);
  return Parse(kSample, "c.yaml", more);
}

void ExpectRefusal(const Result<Config>& config, std::string_view words) {
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find(words), std::string::npos) << config.error().message;
}

TEST(CarriersConfig, KeysAndDefaults) {
  EXPECT_FALSE(Parse(kSample, "c.yaml", {})->learners[0].mechanism.carriers.on());
  const auto config = WithCarriers("{from: history, rank: 3, power_steps: 2, warm_up_steps: 70}");
  ASSERT_TRUE(config) << config.error().message;
  const Carriers& carriers = config->learners[0].mechanism.carriers;
  EXPECT_EQ(carriers.from, Carriers::From::kHistory);
  EXPECT_EQ(carriers.rank, 3u);
  EXPECT_EQ(carriers.power_steps, 2u);
  EXPECT_EQ(carriers.warm_up_steps, 70u);
  const auto random = WithCarriers("{from: random}");
  ASSERT_TRUE(random) << random.error().message;
  EXPECT_EQ(random->learners[0].mechanism.carriers.rank, 8u);
  const auto again = Parse(Dump(*config), "dumped.yaml", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->learners[0].mechanism.carriers.rank, 3u);
}

TEST(CarriersConfig, WhatTheyDoNotFitIsRefused) {
  ExpectRefusal(WithCarriers("{from: history, rank: 0}"), "carriers.rank");
  ExpectRefusal(WithCarriers("{from: weights}"), "carriers.from");
  ExpectRefusal(WithCarriers("{from: history}", {"learners.0.optimizer.kind=adam-bc"}),
                "learners[0].optimizer.kind: adam-bc takes");
  ExpectRefusal(WithCarriers("{from: history}",
                             {"learners.0.model.kind=linear", "learners.0.mechanism.kind=none",
                              "learners.0.privacy.epsilon=.inf"}),
                "learners[0].mechanism.carriers.from: must be none for model.kind linear");
  // A mechanism that sums no gradients has no use for them: that is said, and not passed over.
  ExpectRefusal(
      Parse(kSample, "c.yaml",
            {"learners.0.mechanism={kind: forward, representation_clip: 3, carriers: {from: "
             "random}}"}),
      "learners[0].mechanism.carriers.from: must be none for mechanism.kind forward");
  EXPECT_TRUE(Parse(kSample, "c.yaml",
                    {"learners.0.mechanism={kind: forward, representation_clip: 3, carriers: "
                     "{from: none}}"}));
}

Result<Config> Forward(std::vector<std::string> more) {
  more.push_back("learners.0.mechanism={kind: forward, representation_clip: 3}");
  return Parse(kSample, "c.yaml", more);
}

// Embeddings lie below the noise and are frozen, or the configuration is refused.
TEST(ForwardConfig, WhatWouldLearnBelowTheNoiseIsRefused) {
  const auto config = Forward({});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learners[0].mechanism.representation_clip, 3);
  ExpectRefusal(Forward({"learners.0.optimizer.row_learning_rate=0.1"}),
                "learners[0].optimizer.row_learning_rate: embeddings lie below the noise");
  ExpectRefusal(Forward({"learners.0.optimizer.kind=adam-bc"}),
                "learners[0].optimizer.kind: adam-bc");
  ExpectRefusal(Forward({"source={kind: log, files: [" TACIT_SOURCE_DIR
                         "/README.md], format: json, json: {weight: /w, "
                         "weight_most: 2}}"}),
                "learners[0].mechanism.kind: forward counts each record alike");
  ExpectRefusal(Forward({"learners.0.model.kind=linear"}),
                "learners[0].mechanism.kind: must be sums");
  ExpectRefusal(
      Forward({"learners.0.participation={mode: allocate, batch: 10, steps_per_period: 10, "
               "period: 100}"}),
      "learners[0].participation.mode: allocate earns nothing");
}

}  // namespace
}  // namespace tacit::config
