#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/config/sample.h"
#include "wiring/assembly.h"
#include "wiring/plan_text.h"

namespace tacit::wiring {
namespace {

std::vector<std::string> WarningsOf(const std::vector<std::string>& overrides) {
  const auto config = config::Parse(config::kSample, "c.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  const auto assembly = Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return assembly ? ConfigurationWarnings(*assembly) : std::vector<std::string>();
}

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConfigurationWarnings, NameAKafkaSectionThatNothingUses) {
  const auto unused = HasSubstr("kafka: is written, and nothing uses it");
  EXPECT_THAT(WarningsOf({}), Not(Contains(unused)));
  EXPECT_THAT(WarningsOf({"kafka.bootstrap.servers=broker:9092"}), Contains(unused));
  EXPECT_THAT(WarningsOf({"source.kind=kafka", "source.topic=clicks",
                          "kafka.bootstrap.servers=broker:9092"}),
              Not(Contains(unused)));
}

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

TEST(ConfigurationWarnings, NameARankerOfItemsThatNobodyDescribes) {
  const test::TempDir dir;
  test::WriteFile(dir / "log.jsonl", "");
  const auto warnings = [&](const std::string& items, const std::string& model) {
    test::WriteFile(dir / "items.dat", items);
    const auto config = config::Parse(
        fmt::format("source: {{kind: log, files: [\"{}\"], format: json}}\n"
                    "catalogue: {{file: {}}}\n"
                    "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                    "store: {{path: {}}}\n"
                    "learners:\n"
                    "  - id: next\n"
                    "    model: {{kind: transitions, {}}}\n"
                    "    mechanism: {{kind: counts}}\n"
                    "    participation: {{mode: once, batch: 1000, max_participations: 3}}\n"
                    "    history: {{items: 20}}\n"
                    "    privacy: {{unit: user, epsilon: 8, delta: 1.0e-6}}\n",
                    dir / "log.jsonl", dir / "items.dat", dir / "store", model),
        "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    const auto assembly = Assemble(*config);
    EXPECT_TRUE(assembly) << assembly.error().message;
    return ConfigurationWarnings(*assembly);
  };
  const std::string ranker = "ranker: true, ranker_users: 300",
                    described = "1::One (1999)::a|b\n2::Two (2000)::b\n";
  const auto warned = HasSubstr("learner 'next': a ranker has only counts to go by");
  EXPECT_THAT(warnings("one\ntwo\n", ranker), Contains(warned));
  EXPECT_THAT(warnings(described, ranker + ", described: false"), Contains(warned));
  EXPECT_THAT(warnings(described, ranker), Not(Contains(warned)));
  EXPECT_THAT(warnings("one\ntwo\n", "ranker: false"), Not(Contains(warned)));
}

TEST(ConfigurationWarnings, NameALearnerThatAddsNoNoise) {
  const auto warned = HasSubstr("mechanism: none adds no noise");
  const std::string schedule = "store.checkpoints={every: 1h, kinds: [release]}",
                    full = "store.checkpoints={every: 1h, kinds: [full]}";
  const std::vector<std::string> none = {"learners.0.mechanism={kind: none}",
                                         "learners.0.privacy.epsilon=.inf"};
  const auto with = [](std::vector<std::string> all, const std::string& one) {
    all.push_back(one);
    return all;
  };
  EXPECT_THAT(WarningsOf({schedule}), Not(Contains(warned)));
  EXPECT_THAT(WarningsOf(with(none, schedule)), Contains(warned));
  // Answers to those who ask are no reason: the configuration itself says that nothing is promised.
  EXPECT_THAT(WarningsOf(none), Not(Contains(warned)));
  EXPECT_THAT(WarningsOf(with(none, full)), Not(Contains(warned)));
}

}  // namespace
}  // namespace tacit::wiring
