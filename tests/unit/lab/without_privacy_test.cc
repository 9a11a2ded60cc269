// `tacit evaluate --config X --without-privacy` with the product's noise: the second model has
// none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <random>

#include "lab/configured_run.h"
#include "support/process.h"
#include "support/scoped_variable.h"

namespace tacit::lab {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Clicks follow from one feature: nine in ten of its odd values, one in ten of the others.
void WriteClicks(const TempDir& dir, int day) {
  std::mt19937 random(static_cast<unsigned>(day));
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    const unsigned value = random() % 8;
    const bool likely = random() % 10 > 0;
    text += fmt::format(
        R"({{"label":{},"user":"u{}","timestamp_ms":{},"features":{{"x":1,"c":"v{}"}}}})"
        "\n",
        (value % 2 == 1) == likely ? 1 : 0, random() % 500, 10000 * day + i + 1, value);
  }
  test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
}

class WithoutPrivacyTest : public testing::Test {
 protected:
  WithoutPrivacyTest() {
    WriteClicks(dir_, 0);
    WriteClicks(dir_, 1);
    fs::create_directory(dir_ / "tmp");
  }

  // A run with so much noise that nothing can be learnt, and without it.
  ConfiguredRun Run(const std::string& store, const HeldOut& held_out = {.files = 1}) {
    test::WriteFile(
        dir_ / "ctr.yaml",
        fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                    "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, "
                    "buckets: 16}}]}}\n"
                    "store: {{path: unused}}\n"
                    "serve: {{listen: \"\"}}\n"
                    "training: {{idle_priority: false, workers: 1}}\n"
                    "memory: {{total_bytes: 900MiB}}\n"
                    "learners:\n"
                    "  - id: ctr\n"
                    "    model: {{kind: pctr, hidden: [8]}}\n"
                    "    mechanism: {{kind: dp-sgd}}\n"
                    "    participation: {{mode: once, batch: 60}}\n"
                    "    optimizer: {{kind: adam, learning_rate: 0.02}}\n"
                    "    privacy: {{unit: event, epsilon: 0.001, delta: 1.0e-6}}\n",
                    dir_ / "day-*.jsonl"));
    auto config = config::Load(dir_ / "ctr.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    ConfiguredRunOptions options;
    options.store = dir_ / store;
    options.held_out = held_out;
    options.without_privacy = true;
    auto run = RunConfigured(*std::move(config), options);
    EXPECT_TRUE(run) << run.error().message;
    return *std::move(run);
  }

  const TempDir dir_;
  const test::ScopedVariable tmp_{"TMPDIR", dir_ / "tmp"};
};

TEST_F(WithoutPrivacyTest, TheSecondModelHasNoNoiseAndIsGone) {
  const ConfiguredRun one = Run("one"), other = Run("other");
  ASSERT_EQ(one.learners.size(), 1u);
  const auto &noisy = one.learners[0].judged, &plain = one.learners[0].plain_judged;
  ASSERT_TRUE(noisy && plain);
  EXPECT_EQ(one.learners[0].id, "ctr");
  EXPECT_EQ(noisy->events, 6000u) << "the day that is held out";
  EXPECT_EQ(plain->events, 6000u);
  EXPECT_LT(train::EntropyOf(*plain), 0.9);
  EXPECT_EQ(one.learners[0].plain[0].steps, one.learners[0].days[0].steps);
  EXPECT_EQ(one.learners[0].plain[0].rows_written, one.learners[0].days[0].rows_written);
  // Noise is fresh in each run; without it the runs are one.
  EXPECT_EQ(other.learners[0].plain_judged->loss_sum, plain->loss_sum);
  EXPECT_NE(other.learners[0].judged->loss_sum, noisy->loss_sum);

  EXPECT_THAT(one.tables, AllOf(HasSubstr("\nwithout privacy "), HasSubstr("\nbest constant "),
                                HasSubstr("At epsilon 0.001 learner 'ctr' does ")));
  const auto json = ToJson(one).at("learners").at(0);
  EXPECT_EQ(json.at("days_without_privacy").as_array().size(), 2u);
  EXPECT_TRUE(fs::exists(dir_ / "one"));
  EXPECT_TRUE(fs::is_empty(dir_ / "tmp")) << "nothing is kept";
}

// Day 0 ends a period of 60 records, and 12 of day 1 are learnt from.
TEST_F(WithoutPrivacyTest, ALastPeriodThatTheShareCutsShortIsKnown) {
  const wiring::LearnerDays learner = Run("cut", {.percent = 49.9}).learners[0];
  EXPECT_EQ(learner.judged->events, 5988u);
  EXPECT_EQ(learner.last_period, 12u);
  EXPECT_EQ(learner.longest_period, 60u);
  const wiring::LearnerDays whole = Run("whole", {.percent = 50}).learners[0];
  EXPECT_EQ(whole.last_period, 60u);
}

}  // namespace
}  // namespace tacit::lab
