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

}  // namespace
}  // namespace tacit::wiring
