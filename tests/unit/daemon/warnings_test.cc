#include <fmt/format.h>
#include <gmock/gmock.h>

#include "daemon/plan_text.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/config/sample.h"
#include "wiring/assembly.h"

namespace tacit::daemon {
namespace {

std::vector<std::string> WarningsOf(const std::vector<std::string>& overrides) {
  const auto config = config::Parse(config::kSample, "c.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  const auto assembly = wiring::Assemble(*config);
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
    const auto assembly = wiring::Assemble(*config);
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
}  // namespace tacit::daemon
