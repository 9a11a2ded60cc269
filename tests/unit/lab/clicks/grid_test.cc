#include "lab/clicks/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/small_run.h"
#include "wiring/plans/codec.h"

namespace tacit::lab {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(ParseGridAxis, SplitsAtCommasOutsideOfBrackets) {
  const auto axis = ParseGridAxis("mechanism.threshold=5,10,inf");
  ASSERT_TRUE(axis) << axis.error().message;
  EXPECT_EQ(axis->key, "mechanism.threshold");
  EXPECT_THAT(axis->values, ElementsAre("5", "10", ".inf"));
  EXPECT_THAT(ParseGridAxis("model.hidden=[64,64],[8]")->values, ElementsAre("[64,64]", "[8]"));
  EXPECT_THAT(ParseGridAxis("mechanism.vocabulary={source: file, file: \"a,b\"}")->values,
              ::testing::SizeIs(1));
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

TEST(CheckAxes, AKeyIsSetOnce) {
  const auto message = [](const std::vector<std::string>& texts) {
    std::vector<GridAxis> axes;
    for (const std::string& text : texts) axes.push_back(*ParseGridAxis(text));
    const Status checked = CheckAxes(axes);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(message({"privacy.epsilon=1", "mechanism.threshold=1"}), "");
  EXPECT_THAT(message({"privacy.epsilon=1", "privacy.epsilon=3"}),
              HasSubstr("--grid privacy.epsilon: given twice"));
  EXPECT_THAT(message({"participation.epochs=1", "participation.sampling_rate=0.1"}),
              HasSubstr("participation.sampling_rate: follows from participation.epochs"));
  EXPECT_THAT(message({"participation.steps_per_period=3", "participation.epochs=1"}),
              HasSubstr("participation.steps_per_period: follows from participation.epochs"));
}

TEST(ShortKey, IsAsLongAsItMustBe) {
  EXPECT_EQ(ShortKey("mechanism.threshold"), "threshold");
  EXPECT_EQ(ShortKey("optimizer.kind"), "optimizer.kind");
  EXPECT_EQ(ShortKey("mechanism.quantile.noise_multiplier"), "quantile.noise_multiplier");
  EXPECT_EQ(ShortKey("mechanism.noise_multiplier"), "mechanism.noise_multiplier");
  EXPECT_EQ(ShortKey("participation.epochs"), "epochs");
  EXPECT_EQ(ShortKey("mechanism"), "mechanism");
}

class Grid : public ::testing::Test {
 protected:
  Grid() {
    test::WriteSmallLog(dir_, 3, 400, 4);
    test::SmallRun run;
    run.participation =
        "{mode: poisson, batch: 50, sampling_rate: 0.1, steps_per_period: 3, period_files: 1}";
    options_.config = run.WriteConfig(dir_);
    const config::Config base = *config::Load(options_.config, {});
    transform_ = std::make_unique<event::FeatureTransform>(wiring::MakeSchema(base.features));
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

// No combination makes such a value right; one that lacks something else is a line of the table.
TEST_F(Grid, AValueThatIsNoneOfItsKeyIsRefusedAtOnce) {
  const auto message = [&](const std::vector<std::string>& axes) {
    options_.axes.clear();
    for (const std::string& axis : axes) options_.axes.push_back(*ParseGridAxis(axis));
    const auto points = MakeGrid(options_, *log_, 1200);
    return points ? "" : points.error().message;
  };
  EXPECT_THAT(
      message({"privacy.epsilon=1,3", "mechanism.kind=adafest,adafast"}),
      AllOf(HasSubstr("--grid mechanism.kind=adafast: "), HasSubstr("must be one of none")));
  EXPECT_THAT(message({"mechanism={kind: fast},{kind: dp-sgd}"}), HasSubstr("must be one of none"));
  EXPECT_THAT(message({"privacy.epsilon=1,-1"}), HasSubstr("--grid privacy.epsilon=-1: "));
  EXPECT_THAT(message({"participation.epochs=1,x"}), HasSubstr("--grid participation.epochs=x: "));
  EXPECT_EQ(message({"mechanism.kind=adafest,fest,none", "privacy.epsilon=1,.inf"}), "");
  EXPECT_EQ(message({"participation.period=0,50", "participation.period_files=0,1"}), "");
}

TEST_F(Grid, WarnsWhereAStepHoldsAnotherNumberThanBatch) {
  const auto warnings = [&](const std::vector<std::string>& axes) {
    return BatchWarnings(Make(axes), *log_, 1200);
  };
  // 400 records a day, a tenth of them a step.
  EXPECT_THAT(warnings({"participation.batch=37,40,43"}), ::testing::IsEmpty());
  EXPECT_THAT(
      warnings({"participation.batch=36,45"}),
      ElementsAre(AllOf(HasSubstr("holds 40 events"), HasSubstr("is 36")), HasSubstr("is 45")));
  EXPECT_THAT(warnings({"participation.batch=45", "privacy.epsilon=1,2"}), ::testing::SizeIs(1));
  EXPECT_THAT(warnings({"participation.batch=5,30", "participation.period=50"}),
              ElementsAre(HasSubstr("period of 50")));
  EXPECT_THAT(warnings({"participation.batch=300", "participation.epochs=1"}),
              ::testing::IsEmpty());
  EXPECT_THAT(warnings({"participation.batch=300", "participation.mode=once"}),
              ::testing::IsEmpty());
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
}  // namespace tacit::lab
