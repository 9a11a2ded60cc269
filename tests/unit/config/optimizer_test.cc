#include <gtest/gtest.h>

#include "config/config.h"
#include "sample.h"

namespace tacit::config {
namespace {

Result<Config> With(const std::vector<std::string>& settings) {
  std::vector<std::string> overrides;
  for (const std::string& setting : settings)
    overrides.push_back("learners.0.optimizer." + setting);
  return Parse(kSample, "c.yaml", overrides);
}

Optimizer Read(const std::vector<std::string>& settings) {
  const Result<Config> config = With(settings);
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->learners[0].optimizer : Optimizer();
}

TEST(OptimizerConfig, EveryKindAndItsKeys) {
  EXPECT_EQ(Read({}).kind, Optimizer::Kind::kAdam);
  EXPECT_EQ(Read({}).ema, 0);
  const Optimizer lazy = Read({"moments=lazy", "ema=0.999"});
  EXPECT_EQ(lazy.moments, Optimizer::Moments::kLazy);
  EXPECT_EQ(lazy.ema, 0.999);
  const Optimizer sgd = Read({"kind=sgd", "momentum=0.9"});
  EXPECT_EQ(sgd.kind, Optimizer::Kind::kSgd);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(Read({"kind=adagrad", "epsilon=0.1"}).kind, Optimizer::Kind::kAdagrad);
  const Optimizer corrected = Read({"kind=adam-bc", "variance_floor=1e-6"});
  EXPECT_EQ(corrected.kind, Optimizer::Kind::kAdamBc);
  EXPECT_EQ(corrected.variance_floor, 1e-6);
}

TEST(OptimizerConfig, NoiseIsNotSubtractedWhereThereIsNone) {
  const Result<Config> config =
      Parse(kSample, "c.yaml",
            {"learners.0.optimizer.kind=adam-bc", "learners.0.mechanism.kind=none",
             "learners.0.privacy.epsilon=.inf"});
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("learners[0].optimizer.kind: adam-bc takes"),
            std::string::npos)
      << config.error().message;
}

}  // namespace
}  // namespace tacit::config
