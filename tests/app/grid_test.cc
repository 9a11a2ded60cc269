#include "app/evaluate/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/vocabulary_file.h"
#include "support/small_run.h"

namespace tacit::app {
namespace {

using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(ParseGridAxis, SplitsAtCommasOutsideOfBrackets) {
  const auto axis = ParseGridAxis("mechanism.threshold=5,10,inf");
  ASSERT_TRUE(axis) << axis.error().message;
  EXPECT_EQ(axis->key, "mechanism.threshold");
  EXPECT_THAT(axis->values, ElementsAre("5", "10", ".inf"));
  EXPECT_THAT(ParseGridAxis("model.hidden=[64,64],[8]")->values, ElementsAre("[64,64]", "[8]"));
  EXPECT_THAT(ParseGridAxis("mechanism.vocabulary={source: file, file: \"a,b\"}")->values,
              testing::SizeIs(1));
}

TEST(ParseGridAxis, RefusesWhatIsNoKeyOfALearner) {
  const auto message = [](const std::string& text) {
    const auto axis = ParseGridAxis(text);
    return axis ? "" : axis.error().message;
  };
  EXPECT_EQ(message("mechanism.treshold=5"),
            "--grid mechanism.treshold=5: no key of a learner (did you mean "
            "'mechanism.threshold'?)");
  EXPECT_THAT(message("store.path=x"), HasSubstr("no key of a learner"));
  EXPECT_THAT(message("id=x"), HasSubstr("a learner's name is no setting"));
  EXPECT_THAT(message("mechanism.kind"), HasSubstr("must be key=value"));
  EXPECT_THAT(message("mechanism.kind=fest,"), HasSubstr("empty value"));
  EXPECT_THAT(message("mechanism.kind=fest,fest"), HasSubstr("fest twice"));
}

class Grid : public testing::Test {
 protected:
  Grid() {
    test::WriteSmallLog(dir_, 3, 400, 4);
    test::SmallRun run;
    run.participation =
        "{mode: poisson, batch: 50, sampling_rate: 0.1, steps_per_period: 3, period_files: 1}";
    options_.config = run.WriteConfig(dir_);
    const config::Config base = *config::Load(options_.config, {});
    transform_ = std::make_unique<event::FeatureTransform>(MakeSchema(base.features));
    log_ = *EventLog::Open(base.source, *transform_, 1 << 30);
  }

  std::vector<GridPoint> Make(const std::vector<std::string>& axes, uint64_t train_to = 1200) {
    options_.axes.clear();
    for (const std::string& axis : axes) options_.axes.push_back(*ParseGridAxis(axis));
    auto points = MakeGrid(options_, *log_, train_to);
    EXPECT_TRUE(points) << points.error().message;
    return points ? *points : std::vector<GridPoint>();
  }

  TempDir dir_;
  GridOptions options_;
  std::unique_ptr<event::FeatureTransform> transform_;
  std::unique_ptr<EventLog> log_;
};

TEST_F(Grid, IsTheCrossProduct) {
  const auto points = Make({"mechanism.threshold=5,9", "privacy.epsilon=1,3,8"});
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[4].config.learners[0].mechanism.threshold, 9);
  EXPECT_EQ(points[4].config.learners[0].privacy.epsilon, 3);
  EXPECT_THAT(points[4].settings,
              UnorderedElementsAre(Pair("mechanism.threshold", "9"), Pair("privacy.epsilon", "3")));
}

// A threshold is nothing to dp-sgd: there is one experiment of it, said to be of no threshold.
TEST_F(Grid, WhatMakesNoDifferenceIsOneExperiment) {
  const auto points = Make({"mechanism.kind=adafest,dp-sgd", "mechanism.threshold=5,9,inf"});
  ASSERT_EQ(points.size(), 4u);
  EXPECT_THAT(points[3].settings, UnorderedElementsAre(Pair("mechanism.kind", "dp-sgd")));
}

TEST_F(Grid, ARefusedCombinationHasItsReason) {
  const auto points = Make({"mechanism.kind=adafest,fest", "privacy.epsilon=1"});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].refusal, "");
  EXPECT_THAT(points[1].refusal, HasSubstr("mechanism.vocabulary.source: required"));
}

TEST_F(Grid, EpochsGiveRateAndSteps) {
  const auto points = Make(
      {"participation.epochs=0.5,2", "participation.batch=20", "participation.period_files=1,3"});
  ASSERT_EQ(points.size(), 4u);
  const auto& one = points[0].config.learners[0].participation;
  EXPECT_DOUBLE_EQ(one.sampling_rate, 20.0 / 400);
  EXPECT_EQ(one.steps_per_period, 10u);
  const auto& three = points[3].config.learners[0].participation;
  EXPECT_NEAR(three.sampling_rate, 20.0 / 1200, 1e-7);
  EXPECT_EQ(three.steps_per_period, 120u);
  EXPECT_EQ(points[3].settings.at("participation.steps_per_period"), "120");
  const auto once = Make({"participation.epochs=1", "participation.mode=once"});
  EXPECT_THAT(once[0].refusal, HasSubstr("goes with participation.mode poisson"));
}

TEST_F(Grid, LargestPeriodIsTheParticipations) {
  const auto largest = [&](uint64_t period, uint32_t files, uint64_t train_to) {
    config::Participation p;
    p.period = period;
    p.period_files = files;
    return LargestPeriod(*log_, train_to, p);
  };
  EXPECT_EQ(largest(0, 1, 1200), 400u);
  EXPECT_EQ(largest(0, 2, 1200), 800u);
  EXPECT_EQ(largest(0, 5, 1200), 1200u);
  EXPECT_EQ(largest(0, 5, 900), 900u);
  EXPECT_EQ(largest(300, 1, 1200), 300u);
  EXPECT_EQ(largest(500, 2, 1200), 500u);
  EXPECT_EQ(largest(5000, 1, 1200), 400u);
}

TEST_F(Grid, AnUnknownLearnerIsNamed) {
  options_.learners = {"cdr"};
  const auto points = MakeGrid(options_, *log_, 1200);
  ASSERT_FALSE(points);
  EXPECT_THAT(points.error().message, HasSubstr("--learner cdr: no learner has this id"));
}

}  // namespace
}  // namespace tacit::app
