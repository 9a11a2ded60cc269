#include "wiring/plans/mechanism_factory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "privacy/spending.h"
#include "support/small_run.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/vocabulary_file.h"

namespace tacit::wiring {
namespace {

using test::TempDir;
using testing::HasSubstr;
using testing::StartsWith;

// The most that one event has spent after everything the configuration allows.
double Spent(const mechanism::Mechanism& mechanism, const config::Learner& learner,
             uint64_t passes) {
  const bool once = learner.participation.mode == config::Participation::Mode::kOnce;
  const uint64_t steps = once ? learner.participation.max_participations
                              : learner.participation.steps_per_period * passes;
  privacy::Spending spending = privacy::Spending::Of(mechanism.charge(), steps);
  const bool running = learner.mechanism.vocabulary.source == config::Vocabulary::Source::kRunning;
  if (const auto opening = mechanism.opening_charge())
    spending.Add(privacy::Spending::Of(*opening, running ? passes : 1));
  return privacy::EpsilonMeter().Bounds(spending, Delta(learner.privacy.delta)).upper;
}

class Factory : public testing::Test {
 protected:
  Factory() { test::WriteSmallLog(dir_, 1, 10, 4); }

  config::Config Config(const std::string& mechanism, const std::string& participation,
                        uint32_t passes = 1) {
    test::SmallRun run;
    run.mechanism = mechanism;
    run.participation = participation;
    run.passes = passes;
    auto config = config::Load(run.WriteConfig(dir_), {});
    EXPECT_TRUE(config) << config.error().message;
    return *config;
  }
  std::string ErrorOf(const std::string& mechanism, const std::string& participation) {
    const config::Config config = Config(mechanism, participation);
    const RowSpace space = MakeSchema(config.features).MakeRowSpace();
    const auto made = MakeMechanism({.config = config}, space);
    return made ? "" : made.error().message;
  }

  TempDir dir_;
};

constexpr char kPoisson[] =
    "{mode: poisson, batch: 100, sampling_rate: 0.01, steps_per_period: 50, period_files: 1}";
constexpr char kOnce[] = "{mode: once, batch: 100, max_participations: 3}";

struct Case {
  const char* mechanism;
  const char* participation;
  privacy::MechanismKind kind;
};

// For all that a mechanism asks and releases, its noise is as small as epsilon allows, all in all,
// and no smaller.
TEST_F(Factory, EveryMechanismSpendsItsEpsilonAndNoMore) {
  using K = privacy::MechanismKind;
  test::WriteFile(dir_ / "v.tsv", "C1\tx\nC26\t\n");
  const std::string file =
      "{kind: fest, vocabulary: {source: file, file: " + (dir_ / "v.tsv") + "}}";
  for (const Case& c : std::vector<Case>{
           {"{kind: adafest, threshold: 1}", kOnce, K::kAdaFest},
           {"{kind: adafest, threshold: .inf, clipping: automatic}", kPoisson, K::kAdaFest},
           {"{kind: dp-sgd, clipping: per-layer}", kOnce, K::kDpSgd},
           {"{kind: dp-sgd, clipping: quantile, quantile: {noise_multiplier: 20}}", kPoisson,
            K::kDpSgd},
           {file.c_str(), kOnce, K::kFest},
           {"{kind: fest, vocabulary: {source: running, keep: 9, noise_multiplier: 5}}", kPoisson,
            K::kFest},
           {"{kind: fest, vocabulary: {source: first-period, keep: 9, query: gumbel, "
            "noise_multiplier: 5}}",
            kPoisson, K::kFest},
           {"{kind: adafest+, threshold: 1, clipping: quantile, quantile: {noise_multiplier: 9}, "
            "vocabulary: {source: running, keep: 9, noise_multiplier: 5}}",
            kPoisson, K::kAdaFestPlus},
           {"{kind: exponential, rows: 20, row_epsilon: 0.02}", kOnce, K::kExponential},
           {"{kind: exponential, rows: 20, row_epsilon: 0.02}", kPoisson, K::kExponential}}) {
    SCOPED_TRACE(c.mechanism);
    const uint32_t passes = c.participation == kPoisson ? 2 : 1;
    const config::Config config = Config(c.mechanism, c.participation, passes);
    const RowSpace space = MakeSchema(config.features).MakeRowSpace();
    const auto made = MakeMechanism({.config = config}, space);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ((*made)->charge().mechanism, c.kind);
    const double spent = Spent(**made, config.learners[0], passes);
    EXPECT_LE(spent, 8);
    EXPECT_GT(spent, 8 * 0.97);
  }
}

// The noise that was found once is taken as it is: that of another promise shows in the charge.
TEST_F(Factory, NoiseIsFoundOnce) {
  for (const char* mechanism :
       {"{kind: adafest, threshold: 1}",
        "{kind: fest, vocabulary: {source: running, keep: 9, noise_multiplier: 5}}",
        "{kind: dp-sgd, clipping: quantile, quantile: {noise_multiplier: 20}}"}) {
    SCOPED_TRACE(mechanism);
    const config::Config config = Config(mechanism, kPoisson);
    const RowSpace space = MakeSchema(config.features).MakeRowSpace();
    FoundNoise found;
    const auto made = MakeMechanism({.config = config}, space, &found);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(found.of_step.has_value());
    const auto again = MakeMechanism({.config = config}, space, &found);
    EXPECT_EQ((*again)->charge(), (*made)->charge());
    EXPECT_EQ((*MakeMechanism({.config = config}, space))->charge(), (*made)->charge());
    found.of_step = 2 * *found.of_step;
    const auto other = MakeMechanism({.config = config}, space, &found);
    EXPECT_NE((*other)->charge(), (*made)->charge());
  }
}

TEST_F(Factory, RefusesWhatLeavesNothingForTheGradient) {
  EXPECT_THAT(
      ErrorOf("{kind: dp-sgd, clipping: quantile, quantile: {noise_multiplier: 0.1}}", kOnce),
      HasSubstr("learner 'ctr': mechanism.quantile.noise_multiplier: 0.1 leaves nothing for the "
                "gradient"));
  // The histogram alone costs more than epsilon.
  const std::string histogram = ErrorOf(
      "{kind: fest, vocabulary: {source: running, keep: 9, noise_multiplier: 0.1}}", kPoisson);
  EXPECT_THAT(histogram, StartsWith("learner 'ctr': mechanism.vocabulary.noise_multiplier: "));
  EXPECT_THAT(histogram, HasSubstr("of privacy.epsilon 8 "));
  for (const char* row_epsilon : {"0.15", "0.3", "40"}) {
    const std::string rows = ErrorOf(
        fmt::format("{{kind: exponential, rows: 20, row_epsilon: {}}}", row_epsilon), kPoisson);
    EXPECT_THAT(rows, StartsWith("learner 'ctr': mechanism.row_epsilon: "));
    EXPECT_THAT(rows, HasSubstr(fmt::format("20 * {}^2 / 8", row_epsilon)));
    EXPECT_THAT(rows, HasSubstr("of privacy.epsilon 8 "));
  }
  EXPECT_THAT(ErrorOf("{kind: dp-sgd, noise_multiplier: 0.1}", kOnce),
              StartsWith("learner 'ctr': mechanism.noise_multiplier: 0.1 gives epsilon"));
  EXPECT_THAT(
      ErrorOf("{kind: fest, vocabulary: {source: file, file: /nowhere/v}}", kOnce),
      StartsWith(
          "learner 'ctr': mechanism.vocabulary.file: /nowhere/v: No such file or directory"));
  EXPECT_THAT(ErrorOf("{kind: exponential, rows: 2000, row_epsilon: 0.02}", kOnce),
              HasSubstr("mechanism.rows: 2000 are more than the 1664 that there are"));
}

TEST_F(Factory, AVocabularyFileIsReadAndItsErrorsNamed) {
  const config::Config config = Config("{kind: dp-sgd}", kOnce);
  const auto& features = config.features;
  const event::FeatureTransform transform(MakeSchema(features));
  const std::string path = dir_ / "v.tsv";
  test::WriteFile(path, "# comment\n\nC2\tabc\r\nC1\tx y\nC2\tabc\nC3\t\n");
  std::vector<uint64_t> expected = {transform.Row(1, "abc"), transform.Row(0, "x y"),
                                    transform.Row(2, "")};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(*ReadVocabularyFile(path, features, 0), expected);
  EXPECT_EQ(ReadVocabularyFile(path, features, 1)->size(), 1u);
  EXPECT_EQ(ReadVocabularyFile(path, features, 1)->at(0), transform.Row(1, "abc"));

  test::WriteFile(path, "C1\tx\nC2 y\n");
  EXPECT_EQ(ReadVocabularyFile(path, features, 0).error().message,
            path + ":2: expected feature<TAB>value, found no tab");
  test::WriteFile(path, "C1\tx\nC27\ty\n");
  EXPECT_THAT(ReadVocabularyFile(path, features, 0).error().message,
              HasSubstr(path + ":2: no table 'C27'"));
  test::WriteFile(path, "\n");
  EXPECT_THAT(ReadVocabularyFile(path, features, 0).error().message,
              HasSubstr("a vocabulary without a single value"));
  EXPECT_EQ(ReadVocabularyFile(dir_ / "none", features, 0).error().code, ErrorCode::kNotFound);
  // A pipe that nobody writes to is not waited for.
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadVocabularyFile(dir_ / "pipe", features, 0).error().message,
            (dir_ / "pipe") + ": is not a regular file");
}

}  // namespace
}  // namespace tacit::wiring
