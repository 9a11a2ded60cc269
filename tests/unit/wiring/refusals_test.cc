#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "unit/config/sample.h"
#include "wiring/assembly.h"

namespace tacit::wiring {
namespace {

using ::testing::HasSubstr;

// A noise by which nothing can be learnt would be found out when it has been paid for.
TEST(ConfigurationRefusals, NameANoiseThatIsNone) {
  const auto refusal = [](const std::string& epsilon) {
    auto config =
        config::Parse(config::kSample, "c.yaml",
                      {"learners.0.privacy.delta=1e-300", "learners.0.privacy.epsilon=" + epsilon});
    EXPECT_TRUE(config) << config.error().message;
    const auto assembly = Assemble(*std::move(config));
    return assembly ? "" : assembly.error().message;
  };
  EXPECT_THAT(refusal("1e-300"), HasSubstr("and there is none above 1000000: raise epsilon"));
  EXPECT_THAT(refusal("1e6"), HasSubstr("and there is none below 0.001: lower epsilon"));
  EXPECT_EQ(refusal("0.001"), "");
}

TEST(ConfigurationRefusals, NameACountThatNoiseHides) {
  const auto config =
      config::Parse(config::kSample, "c.yaml",
                    {"learners.0.quality={steps: 100, epsilon: 1e-300, delta: 1e-300}"});
  ASSERT_TRUE(config) << config.error().message;
  const auto assembly = Assemble(*config);
  ASSERT_FALSE(assembly);
  EXPECT_THAT(assembly.error().message, HasSubstr("on each count, and 1000000 is the most"));
}

// Rows of a release are numbered; more would end the process where a machine has the memory.
TEST(ConfigurationRefusals, NameAReleaseOfTooManyRows) {
  const auto refusal = [](int columns) {
    std::string features = "{name: I1, kind: dense}";
    for (int i = 0; i < columns; ++i)
      features += fmt::format(", {{name: C{}, kind: categorical, buckets: 268435456}}", i);
    const auto config =
        config::Parse(config::kSample, "c.yaml",
                      {"learners.0.model={kind: linear}",
                       "learners.0.mechanism={kind: sums, whole_columns: 268435456}",
                       "memory.total_bytes=1000000GiB", "schema.features=[" + features + "]"});
    EXPECT_TRUE(config) << config.error().message;
    if (!config) return std::string();
    const auto assembly = Assemble(*config);
    return assembly ? "" : assembly.error().message;
  };
  EXPECT_EQ(refusal(3), "");
  EXPECT_THAT(refusal(4), HasSubstr("may release 1.07e+09 rows, and 1073741823 are the most"));
}

// Workers send no predictions that could be counted for the public, and the sums of one learner.
TEST(ConfigurationRefusals, NameQualityAndFurtherLearnersBesideWorkers) {
  const auto refusal = [](const std::string& quality, bool second = false) {
    std::vector<std::string> changes = {
        "source={kind: kafka, format: json, topic: clicks, periods: topic}",
        "kafka={bootstrap.servers: x}",
        "feed.topic=model",
        "workers={topic: sum, key_file: /k}",
        "learners.0.model={kind: linear}",
        "learners.0.mechanism={kind: sums}"};
    if (!quality.empty()) changes.push_back("learners.0.quality=" + quality);
    if (second) {
      const std::string rest =
          ", model: {kind: linear}, mechanism: {kind: sums}, participation: {mode: once, batch: "
          "2048}, privacy: {unit: event, epsilon: 1, delta: 1e-8}}";
      changes.push_back("learners=[{id: ctr" + rest + ", {id: other" + rest + "]");
    }
    auto config = config::Parse(config::kSample, "c.yaml", changes);
    EXPECT_TRUE(config) << config.error().message;
    if (!config) return std::string();
    const auto assembly = Assemble(*std::move(config));
    return assembly ? "" : assembly.error().message;
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_THAT(refusal("", true), HasSubstr("workers.topic is for one learner, and there are 2"));
  EXPECT_THAT(refusal("{steps: 20, epsilon: .5, delta: 1e-8}"),
              HasSubstr("workers.topic cannot go with quality of learner 'ctr'"));
}

}  // namespace
}  // namespace tacit::wiring
