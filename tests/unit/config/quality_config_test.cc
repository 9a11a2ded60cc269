// learners.quality: what has to be said of it, and where it is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace tacit::config {
namespace {

using ::testing::HasSubstr;

struct QualitySample {
  std::string quality = "{steps: 20, epsilon: .5, delta: 1e-8}";
  std::string model = "{kind: pctr}", mechanism = "{kind: adafest, threshold: 10}";
  std::string participation = "{mode: once, max_participations: 3}";
  std::string privacy = "{unit: event, epsilon: 8, delta: 1e-7}";
};

Result<Config> ParseQuality(const QualitySample& sample) {
  return Parse(fmt::format("source: {{kind: log, files: /dev/null, format: json}}\n"
                           "schema: {{features: [{{name: C1, kind: categorical, buckets: 100}}]}}\n"
                           "learners:\n"
                           "  - id: ctr\n    model: {}\n    mechanism: {}\n"
                           "    participation: {}\n    privacy: {}\n    quality: {}\n"
                           "store: {{path: /tmp/tacit/store}}\n",
                           sample.model, sample.mechanism, sample.participation, sample.privacy,
                           sample.quality),
               "c.yaml", {});
}

std::string QualityRefusal(const QualitySample& sample) {
  const Result<Config> config = ParseQuality(sample);
  return config ? "" : config.error().message;
}

TEST(QualityConfigTest, APriceForNothingIsRefused) {
  for (const char* key : {"epsilon: .5", "delta: 1e-8", "bins: 8"})
    for (const char* steps : {"", "steps: 0, "})
      EXPECT_THAT(QualityRefusal({.quality = fmt::format("{{{}{}}}", steps, key)}),
                  HasSubstr("learners[0].quality.steps: is 0, so that nothing is shown"));
  EXPECT_EQ(QualityRefusal({.quality = "{steps: 0}"}), "");
}

TEST(QualityConfigTest, IsReadAndWritten) {
  const Result<Config> config = ParseQuality({});
  ASSERT_TRUE(config) << config.error().message;
  const Quality& quality = config->learners[0].quality;
  EXPECT_TRUE(quality.given());
  EXPECT_EQ(quality.steps, 20u);
  EXPECT_EQ(quality.bins, 64u);
  EXPECT_EQ(quality.epsilon, .5);
  EXPECT_EQ(quality.delta, 1e-8);
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->learners[0].quality.epsilon, .5);
  const Result<Config> off = ParseQuality({.quality = "{}"});
  ASSERT_TRUE(off) << off.error().message;
  EXPECT_FALSE(off->learners[0].quality.given());
}

TEST(QualityConfigTest, HasNoDefaultsForPrivacy) {
  EXPECT_THAT(QualityRefusal({.quality = "{steps: 20, delta: 1e-8}"}),
              HasSubstr("learners[0].quality.epsilon: required where quality is shown"));
  EXPECT_THAT(QualityRefusal({.quality = "{steps: 20, epsilon: 1}"}),
              HasSubstr("learners[0].quality.delta: required where quality is shown"));
  EXPECT_THAT(QualityRefusal({.quality = "{steps: 20, epsilon: 0, delta: 1e-8}"}),
              HasSubstr("quality.epsilon"));
  EXPECT_THAT(QualityRefusal({.quality = "{steps: 20, bins: 1, epsilon: 1, delta: 1e-8}"}),
              HasSubstr("quality.bins"));
}

TEST(QualityConfigTest, IsRefusedWhereItsNoiseDoesNotCoverARecord) {
  EXPECT_THAT(QualityRefusal({.participation = "{mode: once, max_participations: 3}",
                              .privacy = "{unit: user, epsilon: 8, delta: 1e-7}"}),
              HasSubstr("learners[0].quality: is for unit event"));
  EXPECT_THAT(QualityRefusal({.participation = "{mode: poisson, sampling_rate: 0.1, "
                                               "steps_per_period: 5, period: 400, batch: 40}"}),
              HasSubstr("learners[0].quality: is for participation once"));
  EXPECT_THAT(QualityRefusal({.mechanism = "{kind: none}",
                              .privacy = "{unit: event, epsilon: .inf, delta: 1e-7}"}),
              HasSubstr("learners[0].quality: is for learners with privacy"));
  EXPECT_THAT(QualityRefusal({.mechanism = "{kind: forward}"}),
              HasSubstr("learners[0].quality: is not for mechanism forward"));
}

}  // namespace
}  // namespace tacit::config
