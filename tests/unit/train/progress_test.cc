#include "train/progress.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <vector>

namespace tacit::train {
namespace {

TEST(ProgressTest, DaysEndAtTheirCuts) {
  Progress progress(2);
  const std::vector<float> logits{-1, 1}, labels{0, 1};
  progress.AddPredictions(1, logits, labels, 0.5);
  progress.AddStep(1, 10, 1.0);
  progress.AddPredictions(1, logits, labels, 0.25);
  progress.AddStep(1, 5, 2.0);
  progress.EndDay(1, "day-00");
  progress.AddPredictions(1, logits, labels, 0.25);
  progress.AddStep(1, 1, 3.0);
  const auto days = progress.days(1);
  ASSERT_EQ(days.size(), 2u);
  EXPECT_EQ(days[0].name, "day-00");
  EXPECT_EQ(days[0].events, 4u);
  EXPECT_EQ(days[0].steps, 2u);
  EXPECT_EQ(days[0].rows_written, 15u);
  EXPECT_DOUBLE_EQ(days[0].loss_sum, 0.75);
  EXPECT_EQ(days[0].epsilon, 2.0);
  EXPECT_NEAR(days[0].auc, 1.0, 1e-9);
  EXPECT_NEAR(days[1].auc_deviation, 0, 1e-9);
  EXPECT_EQ(days[1].events, 2u);
  EXPECT_TRUE(progress.days(0).empty());
  EXPECT_EQ(progress.view(1).events, 6u);
}

// Figures stand beside their baselines: a constant's log loss, and the clicks that came.
TEST(ProgressTest, ADayIsComparedWithTheBestConstant) {
  Progress progress(1);
  // A quarter is clicked; the model says .25 for all, then .5.
  const std::vector<float> labels{1, 0, 0, 0};
  const double constant = -(.25 * std::log(.25) + .75 * std::log(.75));
  progress.AddPredictions(0, std::vector<float>(4, std::log(1 / 3.f)), labels, 4 * constant);
  progress.AddStep(0, 0, 1.0);
  const auto first = progress.EndDay(0, "first");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->clicks, 1u);
  EXPECT_NEAR(EntropyOf(*first), 1, 1e-6);
  EXPECT_NEAR(Calibration(first->predicted, first->clicks), 1, 1e-6);
  progress.AddPredictions(0, std::vector<float>(4, 0.f), labels, 4 * std::log(2));
  progress.AddStep(0, 0, 1.0);
  const auto second = progress.EndDay(0, "second");
  EXPECT_NEAR(EntropyOf(*second), std::log(2) / constant, 1e-6);
  EXPECT_NEAR(Calibration(second->predicted, second->clicks), 2, 1e-6);
  EXPECT_NEAR(progress.view(0).entropy, (1 + std::log(2) / constant) / 2, 1e-6);
  EXPECT_NEAR(progress.view(0).calibration, 1.5, 1e-6);
}

// Without a click, or with nothing else, there is no baseline.
TEST(ProgressTest, ADayOfOneLabelHasNoEntropy) {
  Progress progress(1);
  progress.AddPredictions(0, std::vector<float>(2, 0.f), std::vector<float>(2, 0.f), 1.4);
  progress.AddStep(0, 0, 1.0);
  const auto day = progress.EndDay(0, "day");
  EXPECT_TRUE(std::isnan(EntropyOf(*day)));
  EXPECT_TRUE(std::isnan(Calibration(day->predicted, day->clicks)));
}

// A service that runs for years ends many days; only their figures stay.
TEST(ProgressTest, AFinishedDayTakesLittleMemory) {
  Progress progress(1);
  const std::vector<float> logits{-1, 1}, labels{0, 1};
  const auto end_days = [&](int days) {
    for (int day = 0; day < days; ++day) {
      progress.AddPredictions(0, logits, labels, 0.5);
      progress.AddStep(0, 1, 1.0);
      progress.EndDay(0, "day");
    }
  };
  const auto held = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  end_days(10);
  const size_t before = held();
  end_days(1000);
  EXPECT_LT(held(), before + 1000 * 1000);
  EXPECT_EQ(progress.days(0).size(), 1010u);
}

// A recommender's hits and gains are added up by day, and over the last units asked.
TEST(ProgressTest, RankingsAddUpBesideTheirBaselines) {
  Progress progress(1);
  const RankTotals step{.asked = 1000,
                        .model = {.hits = 100, .gain = 50},
                        .popular = {.hits = 60, .gain = 25},
                        .successor = {.hits = 80, .gain = 40}};
  for (int i = 0; i < 3; ++i) {
    progress.AddRankings(0, 5, step);
    progress.AddStep(0, 0, 1.0);
  }
  const auto day = progress.EndDay(0, "day");
  ASSERT_TRUE(day);
  EXPECT_EQ(day->events, 15u);
  EXPECT_EQ(day->ranked.asked, 3000u);
  EXPECT_EQ(day->ranked.model.hits, 300u);
  EXPECT_DOUBLE_EQ(day->ranked.Ndcg(day->ranked.successor), 0.04);
  EXPECT_DOUBLE_EQ(day->ranked.Hit(day->ranked.popular), 0.06);
  EXPECT_EQ(progress.view(0).ranked.asked, 3000u);
  const RankTotals worse{.asked = 2000, .model = {}, .popular = {}, .successor = {}};
  for (int i = 0; i < 2; ++i) progress.AddRankings(0, 5, worse);
  EXPECT_EQ(progress.view(0).ranked.model.hits, 0u) << "the running figures forget";
}

TEST(ProgressTest, ADayWithoutStepsLeavesNoRow) {
  Progress progress(1);
  progress.EndDay(0, "empty");
  EXPECT_TRUE(progress.days(0).empty());
}

TEST(ProgressTest, TheRunningAucForgets) {
  Progress progress(1);
  std::vector<float> logits(1000), right(1000), wrong(1000);
  for (size_t i = 0; i < 1000; ++i) {
    logits[i] = i % 2 == 0 ? -1.0f : 1.0f;
    right[i] = i % 2 == 0 ? 0.0f : 1.0f;
    wrong[i] = 1 - right[i];
  }
  for (int i = 0; i < 200; ++i) progress.AddPredictions(0, logits, wrong, 0);
  EXPECT_LT(progress.view(0).auc, 0.1);
  for (int i = 0; i < 200; ++i) progress.AddPredictions(0, logits, right, 0);
  EXPECT_GT(progress.view(0).auc, 0.9);
}

}  // namespace
}  // namespace tacit::train
