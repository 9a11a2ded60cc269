#include "train/progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacit::train {
namespace {

TEST(ProgressTest, DaysEndAtTheirMarks) {
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
  EXPECT_NEAR(days[0].auc.Auc(), 1.0, 1e-9);
  EXPECT_EQ(days[1].events, 2u);
  EXPECT_TRUE(progress.days(0).empty());
  EXPECT_EQ(progress.view(1).events, 6u);
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
