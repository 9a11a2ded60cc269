#include "train/progress.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <random>
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
  EXPECT_NEAR(days[0].auc_deviation, 0, 1e-9);
  EXPECT_TRUE(std::isnan(days[1].auc_deviation)) << "one event of each label";
  EXPECT_EQ(days[1].events, 2u);
  EXPECT_TRUE(progress.days(0).empty());
  EXPECT_EQ(progress.view(1).events, 6u);
}

// Predictions that another process has made count as those made here; in AUC, to the width of a
// bin.
TEST(ProgressTest, FiguresOfOthersCountAsPredictions) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> logit(-1, 2);
  Progress here(1), elsewhere(1), mixed(1);
  for (int part = 0; part < 8; ++part) {
    const ScoreBins bins(64);
    PartFigures figures;
    figures.bins.resize(size_t{2} * bins.size());
    std::vector<float> logits, labels;
    double loss = 0;
    for (int i = 0; i < 9000; ++i) {
      const float x = logits.emplace_back(logit(random));
      const double p = 1 / (1 + std::exp(-x));
      const float label = labels.emplace_back(random() % 1000 < 1000 * p ? 1.0f : 0.0f);
      const auto own = static_cast<float>(-std::log(label > 0 ? p : 1 - p));
      loss += own;
      ++figures.examples;
      figures.See(bins, x, p, own, label);
    }
    here.AddPredictions(0, logits, labels, loss);
    elsewhere.AddFigures(0, figures);
    part % 2 == 0 ? mixed.AddFigures(0, figures) : mixed.AddPredictions(0, logits, labels, loss);
  }
  const Progress::View due = here.view(0);
  for (Progress* one : {&elsewhere, &mixed}) {
    const Progress::View view = one->view(0);
    EXPECT_EQ(view.events, due.events);
    EXPECT_NEAR(view.entropy, due.entropy, 1e-5);
    EXPECT_NEAR(view.calibration, due.calibration, 1e-5);
    EXPECT_NEAR(view.auc, due.auc, 2e-3);
    EXPECT_NEAR(view.auc_deviation, due.auc_deviation, 1e-4);
    one->AddStep(0, 0, 1);
    const auto quality = one->quality(0), expected = here.quality(0);
    ASSERT_EQ(quality.size(), expected.size());
    EXPECT_EQ(quality[0].clicks, expected[0].clicks);
    EXPECT_NEAR(quality[0].loss_sum, expected[0].loss_sum, 1);
  }
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

// The first period is predicted by a model that knows nothing; the rest of its day is not.
TEST(ProgressTest, ADayTellsWhatWasPredictedAfterTheFirstRelease) {
  const std::vector<float> wrong{1, 1, -1, -1}, right{-1, -1, 1, 1}, labels{0, 0, 1, 1};
  Progress progress(2);
  progress.AddPredictions(0, wrong, labels, 4);
  progress.AddStep(0, 0, 1.0);
  progress.AddPredictions(0, right, labels, 1);
  progress.AddStep(0, 0, 1.0);
  const auto first = progress.days(0).at(0);
  EXPECT_EQ(first.events, 8u);
  EXPECT_EQ(first.loss_sum, 5);
  EXPECT_EQ(first.auc, .5);
  ASSERT_TRUE(first.after_release);
  EXPECT_EQ(first.after_release->events, 4u);
  EXPECT_EQ(first.after_release->clicks, 2u);
  EXPECT_EQ(first.after_release->loss_sum, 1);
  EXPECT_EQ(first.after_release->auc, 1);
  EXPECT_EQ(first.Judged()->loss_sum, 1);
  EXPECT_EQ(progress.EndDay(0, "first")->loss_sum, 5);
  progress.AddPredictions(0, right, labels, 1);
  progress.AddStep(0, 0, 1.0);
  const auto second = progress.EndDay(0, "second");
  EXPECT_FALSE(second->after_release);
  EXPECT_FALSE(second->blind);
  EXPECT_EQ(second->Judged()->loss_sum, 1);
  EXPECT_EQ(progress.view(0).events, 12u);
}

TEST(ProgressTest, ADayBeforeTheFirstReleaseIsBlind) {
  const RankTotals asked{.asked = 10, .model = {.hits = 1}};
  Progress progress(3);
  progress.AddRankings(0, 5, asked);
  progress.AddStep(0, 0, 1.0);
  const auto blind = progress.EndDay(0, "one period");
  EXPECT_TRUE(blind->blind);
  EXPECT_FALSE(blind->after_release);
  EXPECT_EQ(blind->Judged(), nullptr);
  EXPECT_EQ(blind->ranked.asked, 10u);
  progress.AddRankings(0, 5, asked);
  progress.EndHeldOutDay(0, "held out");
  EXPECT_EQ(progress.days(0).at(1).Judged()->ranked.asked, 10u);
  // Nothing was learnt at all.
  progress.AddRankings(1, 5, asked);
  progress.EndHeldOutDay(1, "held out");
  EXPECT_TRUE(progress.days(1).at(0).blind);
  // It was learnt before.
  progress.Resume(2);
  progress.AddRankings(2, 5, asked);
  progress.AddStep(2, 0, 1.0);
  EXPECT_EQ(progress.EndDay(2, "next")->Judged()->ranked.asked, 10u);
}

TEST(ProgressTest, AStretchIsTakenOnceItIsLongEnough) {
  Progress progress(2);
  const std::vector<float> logits(4000), labels(4000);
  progress.AddPredictions(0, logits, labels, 1);
  progress.AddStep(0, 0, 1.0);
  for (int i = 0; i < 2; ++i) progress.AddPredictions(0, logits, labels, 2);
  EXPECT_FALSE(progress.TakeStretch(0)) << "nothing from before the first release counts";
  progress.AddPredictions(0, logits, labels, 2);
  const auto stretch = progress.TakeStretch(0);
  ASSERT_TRUE(stretch);
  EXPECT_EQ(stretch->events, 12'000u);
  EXPECT_EQ(stretch->loss_sum, 6);
  EXPECT_FALSE(progress.TakeStretch(0));
  // If units are asked, their number decides.
  progress.Resume(1);
  progress.AddRankings(1, 20'000, {.asked = 499});
  EXPECT_FALSE(progress.TakeStretch(1));
  progress.AddRankings(1, 1, {.asked = 1});
  EXPECT_EQ(progress.TakeStretch(1)->ranked.asked, 500u);
}

TEST(ProgressTest, ADayWithoutStepsAndPredictionsLeavesNoRow) {
  Progress progress(1);
  progress.EndDay(0, "empty");
  EXPECT_TRUE(progress.days(0).empty());
  progress.AddPredictions(0, std::vector<float>(2), std::vector<float>(2), 1);
  const auto unlearnt = progress.EndDay(0, "");
  ASSERT_TRUE(unlearnt) << "a period that no budget had room for";
  EXPECT_EQ(unlearnt->events, 2u);
}

// Predictions of random records, about half of them right.
struct Drawn {
  std::vector<float> logits, labels;
  double loss_sum = 0;
};

Drawn Draw(std::mt19937* random) {
  Drawn drawn;
  for (int i = 0; i < 200; ++i) {
    drawn.logits.push_back(static_cast<float>((*random)() % 1000) / 250 - 2.5f);
    drawn.labels.push_back((*random)() % 3 == 0 ? 1 : 0);
    const double logit = static_cast<double>(drawn.logits.back());
    drawn.loss_sum += std::log(1 + std::exp(drawn.labels.back() > 0 ? -logit : logit));
  }
  return drawn;
}

// Days since the first release are judged as if they were one day; days held out are, and alone.
TEST(ProgressTest, AllDaysThatTellHowGoodALearnerIsAreJudgedAsOne) {
  std::mt19937 random(7);
  Progress parts(1), learnt(1), held_out(1);
  const auto predict = [&](Progress* whole) {
    const Drawn drawn = Draw(&random);
    parts.AddPredictions(0, drawn.logits, drawn.labels, drawn.loss_sum);
    if (whole != nullptr) whole->AddPredictions(0, drawn.logits, drawn.labels, drawn.loss_sum);
  };
  const auto expect_judged_as = [&](Progress* whole) {
    const auto judged = parts.judged(0);
    const auto one = whole->EndDay(0, "");
    ASSERT_TRUE(judged && one);
    EXPECT_EQ(judged->events, one->events);
    EXPECT_NEAR(judged->loss_sum, one->loss_sum, 1e-9);
    EXPECT_EQ(judged->auc, one->auc);
    EXPECT_EQ(judged->auc_deviation, one->auc_deviation);
    EXPECT_NEAR(judged->entropy_deviation, one->entropy_deviation, 1e-12);
  };
  predict(nullptr);
  parts.AddStep(0, 0, 1);
  EXPECT_FALSE(parts.judged(0)) << "before the first release";
  learnt.Resume(0);
  predict(&learnt);
  parts.EndDay(0, "a");
  predict(&learnt);
  EXPECT_EQ(parts.judged(0)->events, 200u) << "days() has no row of the second day";
  parts.AddStep(0, 0, 1);
  parts.EndDay(0, "b");
  expect_judged_as(&learnt);
  for (const char* const day : {"c", "d"}) {
    predict(&held_out);
    parts.EndHeldOutDay(0, day);
  }
  expect_judged_as(&held_out);
  EXPECT_EQ(parts.days(0).size(), 4u);
}

// The deviation of NE by the records one by one, from its definition.
TEST(ProgressTest, AnEntropyHasTheDeviationOfItsRecords) {
  std::mt19937 random(11);
  const Drawn drawn = Draw(&random);
  Progress progress(1);
  progress.Resume(0);
  progress.AddPredictions(0, drawn.logits, drawn.labels, drawn.loss_sum);
  const auto day = progress.EndDay(0, "day");
  const double rate = static_cast<double>(day->clicks) / 200, entropy = EntropyOf(*day);
  const double constant = -rate * std::log(rate) - (1 - rate) * std::log(1 - rate);
  double squares = 0;
  for (size_t i = 0; i < 200; ++i) {
    const double logit = static_cast<double>(drawn.logits[i]);
    const bool click = drawn.labels[i] > 0;
    const double own = std::log(1 + std::exp(click ? -logit : logit));
    const double away = own + entropy * std::log(click ? rate : 1 - rate);
    squares += away * away;
  }
  const double deviation = std::sqrt(squares / 200 / 199) / constant;
  EXPECT_NEAR(day->entropy_deviation, deviation, 1e-9);
  EXPECT_NEAR(day->EntropyInterval().high, entropy + 1.959964 * deviation, 1e-9);
  EXPECT_NEAR(day->EntropyInterval().low, entropy - 1.959964 * deviation, 1e-9);
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
// A step may end with several files, which are one day then.
TEST(ProgressTest, TheFilesOfAStepAreOneDay) {
  using event::PublicCut;
  Progress progress(1);
  const auto end = [&](const std::vector<PublicCut>& cuts) {
    progress.AddStep(0, 1, 0.5);
    return progress.EndDay(0, cuts);
  };
  EXPECT_FALSE(end({{PublicCut::Kind::kClockTick, 5, ""}}));
  const auto one = end({{PublicCut::Kind::kFileEnd, 9, "a"}});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->name, "a");
  EXPECT_EQ(one->end.offset, 9u);
  EXPECT_EQ(one->end.files, 1u);
  EXPECT_EQ(one->steps, 2u) << "the step before it ended no day";
  const auto more = end({{PublicCut::Kind::kFileEnd, 11, "b"},
                         {PublicCut::Kind::kClockTick, 12, ""},
                         {PublicCut::Kind::kFileEnd, 14, "c"},
                         {PublicCut::Kind::kFileEnd, 20, "d"}});
  ASSERT_TRUE(more);
  EXPECT_EQ(more->name, "b..d");
  EXPECT_EQ(more->end.offset, 20u);
  EXPECT_EQ(more->end.files, 3u);
}

}  // namespace tacit::train
