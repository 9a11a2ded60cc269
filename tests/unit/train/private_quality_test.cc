// Private quality: which predictions a window has, what its release costs and holds, and the
// trainer around it, which commits it with the steps it is of.
#include "train/quality/private_quality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "privacy/gaussian.h"
#include "privacy/ledger.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/learner/position.h"
#include "trainer_rig.h"

namespace tacit::train {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr double kQualitySigma = 3;

QualityOptions QualityOf(uint64_t steps) {
  return {.learner = "ctr",
          .index = LearnerIndex(1),
          .topic = "log",
          .steps = steps,
          .bins = 4,
          .noise_multiplier = kQualitySigma,
          .epsilon = 1,
          .delta = 1e-6};
}

// One without noise, whose counts can be looked at.
class SilentQuality {
 public:
  explicit SilentQuality(uint64_t steps, QualityOptions options = QualityOf(1))
      : quality_(
            [&] {
              options.steps = steps;
              return options;
            }(),
            std::make_unique<noise::SilentNoise>()) {}

  // A step of ten offsets with one click in the last bin and two misses in the first; returns what
  // a window then releases.
  std::optional<ReleasedScores> Step(uint64_t step, std::optional<uint64_t> first = std::nullopt) {
    const uint64_t begin = first.value_or(10 * step);
    const OffsetRange range{0, begin, begin + 10};
    quality_.See(step, std::span(&range, 1), std::vector<float>{9, -9, -9},
                 std::vector<float>{1, 0, 0});
    if (!quality_.due()) return std::nullopt;
    stream::Position after;
    after.step = step + 1;
    after.next = {{0, begin + 10, begin + 10}};
    quality_.Release(after);
    commit_ = quality_.TakePending();
    return *ReleasedScores::Decode(*commit_->released);
  }
  PrivateQuality& operator*() { return quality_; }
  const store::LearnerCommit& commit() const { return *commit_; }

 private:
  PrivateQuality quality_;
  std::optional<store::LearnerCommit> commit_;
};

// Predictions that another process has counted are as good as those made here.
TEST(PrivateQualityTest, AWindowHasThePredictionsOfOthers) {
  SilentQuality here(2), there(2);
  const std::vector<float> logits{1, -7, 2, 9}, labels{0, 1, 1, 0};
  (*here).SeePart(logits, labels);
  PartFigures figures{.examples = 4, .bins = std::vector<uint64_t>(8)};
  const ScoreBins bins(4);
  for (size_t i = 0; i < logits.size(); ++i) figures.See(bins, logits[i], 0.5, 1, labels[i]);
  (*there).SeePart(figures);
  EXPECT_FALSE(here.Step(0));
  EXPECT_FALSE(there.Step(0));
  const auto due = here.Step(1), released = there.Step(1);
  ASSERT_TRUE(due && released);
  EXPECT_EQ(released->all.misses, due->all.misses);
  EXPECT_EQ(released->all.clicks, due->all.clicks);
}

TEST(PrivateQualityTest, AWindowHasThePredictionsOfItsSteps) {
  SilentQuality quality(3);
  EXPECT_FALSE(quality.Step(0));
  (*quality).SeePart(std::vector<float>{1, 1}, std::vector<float>{0, 1});
  EXPECT_FALSE(quality.Step(1));
  const auto released = quality.Step(2);
  ASSERT_TRUE(released);
  EXPECT_EQ(released->step_begin, 0u);
  EXPECT_EQ(released->step_end, 3u);
  EXPECT_THAT(released->last.misses, ElementsAre(6, 0, 1, 0));
  EXPECT_THAT(released->last.clicks, ElementsAre(0, 0, 1, 3));
  EXPECT_EQ(released->last.variance, kQualitySigma * kQualitySigma);
  EXPECT_EQ(quality.commit().learner, LearnerIndex(1));
  ASSERT_EQ(quality.commit().charges.size(), 1u);
  EXPECT_EQ(quality.commit().charges[0].learner, "ctr.quality");
  EXPECT_EQ(quality.commit().charges[0].steps, 1u);
  EXPECT_EQ(quality.commit().charges[0].ranges, (std::vector<OffsetRange>{{0, 0, 30}}));
  EXPECT_FALSE((*quality).TakePending()) << "once";
  EXPECT_EQ(DecodePosition(quality.commit().position)->step, 1u);
  EXPECT_FALSE(quality.Step(3));
  EXPECT_FALSE(quality.Step(4));
  const auto next = quality.Step(5);
  ASSERT_TRUE(next);
  EXPECT_THAT(next->last.misses, ElementsAre(6, 0, 0, 0));
  EXPECT_THAT(next->all.misses, ElementsAre(12, 0, 1, 0));
  EXPECT_EQ(next->all.windows, 2u);
  EXPECT_EQ(next->all.variance, 2 * kQualitySigma * kQualitySigma);
  EXPECT_EQ(DecodePosition(quality.commit().position)->step, 2u);
}

TEST(PrivateQualityTest, AWindowThatARestartCutsIsLeftOut) {
  SilentQuality before(3);
  before.Step(0);
  before.Step(1);
  const auto first = before.Step(2);
  ASSERT_TRUE(first);
  before.Step(3);
  QualityOptions resumed = QualityOf(3);
  resumed.position = *DecodePosition(before.commit().position);
  resumed.released = first;
  SilentQuality after(3, resumed);
  EXPECT_FALSE(after.Step(4));
  EXPECT_FALSE(after.Step(5)) << "its first step was counted in another life";
  EXPECT_FALSE(after.Step(6));
  EXPECT_FALSE(after.Step(7));
  const auto released = after.Step(8);
  ASSERT_TRUE(released);
  EXPECT_EQ(released->step_begin, 6u);
  EXPECT_EQ(released->all.windows, 2u) << "what was released before is known";
  EXPECT_EQ(DecodePosition(after.commit().position)->step, 2u);
}

// A step of a topic's periods has ranges of several partitions, and most of it came as parts. The
// oracle counts records one by one.
TEST(PrivateQualityTest, AWindowOfPeriodsHasTheRecordsOfAllPartitions) {
  std::mt19937_64 random(5);
  PrivateQuality quality(QualityOf(2), std::make_unique<noise::SilentNoise>());
  const ScoreBins bins(4);
  std::vector<float> misses(4), clicks(4);
  std::map<int32_t, uint64_t> next;
  for (uint64_t step = 0; step < 6; ++step) {
    std::vector<OffsetRange> ranges;
    for (int32_t p = 0; p < 3; ++p) {
      const uint64_t records = 1 + random() % 20;
      std::vector<float> logits, labels;
      for (uint64_t i = 0; i < records; ++i) {
        logits.push_back(static_cast<float>(random() % 100) / 10 - 5);
        labels.push_back(static_cast<float>(random() % 2));
        ++(labels.back() > 0 ? clicks : misses)[bins.Of(logits.back())];
      }
      quality.SeePart(logits, labels);
      ranges.push_back({p, next[p], next[p] + records});
      next[p] += records;
    }
    quality.See(step, ranges, {}, {});
    ASSERT_EQ(quality.due(), step % 2 == 1);
    if (!quality.due()) continue;
    quality.Release({});
    const auto commit = quality.TakePending();
    const auto released = *ReleasedScores::Decode(*commit->released);
    EXPECT_THAT(released.last.misses, ElementsAreArray(misses));
    EXPECT_THAT(released.last.clicks, ElementsAreArray(clicks));
    ASSERT_EQ(commit->charges[0].ranges.size(), 3u) << "a range a partition";
    for (const OffsetRange& range : commit->charges[0].ranges)
      EXPECT_EQ(range.end, next[range.partition]);
    misses.assign(4, 0);
    clicks.assign(4, 0);
  }
}

// A record of two passes would be in two counts of one window.
TEST(PrivateQualityTest, AWindowNeverHasARecordTwice) {
  SilentQuality quality(4);
  for (uint64_t step = 0; step < 3; ++step) EXPECT_FALSE(quality.Step(step));
  EXPECT_FALSE(quality.Step(3, 5)) << "offsets 5 to 15 once more";
  EXPECT_FALSE(quality.Step(4, 15));
  EXPECT_FALSE(quality.Step(5, 25));
  EXPECT_FALSE(quality.Step(6, 35));
  EXPECT_TRUE(quality.Step(7, 45));
}

TEST(PrivateQualityTest, AWindowCostsEachOfItsRecordsOneGaussian) {
  privacy::Ledger ledger;
  ASSERT_TRUE(ledger.Declare({.learner = "ctr.quality", .epsilon = 100, .delta = 1e-6}));
  SilentQuality quality(1);
  const auto charge = [&](uint64_t step, uint64_t first) {
    quality.Step(step, first);
    ledger.Append(CommitSeq(step + 1), 1, quality.commit().charges, {}, "test");
    return ledger.Learners()[0].epsilon;
  };
  const double one = privacy::GaussianEpsilon(1 / kQualitySigma, Delta(1e-6)).value;
  EXPECT_NEAR(charge(0, 0), one, 1e-6);
  EXPECT_NEAR(charge(1, 10), one, 1e-6) << "other records";
  EXPECT_NEAR(charge(2, 0),
              privacy::GaussianEpsilon(std::sqrt(2.) / kQualitySigma, Delta(1e-6)).value, 1e-6)
      << "another pass";
}

// Each count has noise of its own, of the deviation that is charged; and with less it is seen.
TEST(PrivateQualityTest, EveryCountHasTheNoiseThatIsCharged) {
  constexpr int kWindows = 2000;
  const auto spread = [](double sigma) {
    QualityOptions options = QualityOf(1);
    options.noise_multiplier = sigma;
    PrivateQuality quality(options, std::make_unique<noise::FixedNoise>(5));
    std::vector<double> squares(8), products(7);
    for (uint64_t step = 0; step < kWindows; ++step) {
      const OffsetRange range{0, step, step + 1};
      quality.See(step, std::span(&range, 1), {}, {});
      quality.Release({});
      const auto scores = *ReleasedScores::Decode(*quality.TakePending()->released);
      std::vector<double> counts = scores.last.misses;
      counts.insert(counts.end(), scores.last.clicks.begin(), scores.last.clicks.end());
      for (size_t i = 0; i < 8; ++i) squares[i] += counts[i] * counts[i] / kWindows;
      for (size_t i = 0; i < 7; ++i) products[i] += counts[i] * counts[i + 1] / kWindows;
    }
    double furthest = 0;
    const double variance = kQualitySigma * kQualitySigma, root = std::sqrt(double{kWindows});
    for (const double square : squares)
      furthest = std::max(furthest, std::abs(square / variance - 1) / std::sqrt(2.) * root);
    for (const double product : products)
      furthest = std::max(furthest, std::abs(product / variance) * root);
    return furthest;  // in deviations of each
  };
  EXPECT_LT(spread(kQualitySigma), 5);
  EXPECT_GT(spread(.8 * kQualitySigma), 5) << "planted: too little of it";
}

class QualityTrainerTest : public TrainerTest {
 protected:
  void MakeWith(double epsilon, std::optional<privacy::TotalBudget> total,
                std::chrono::milliseconds interval) {
    QualityOptions quality = QualityOf(2);
    quality.epsilon = epsilon;
    quality_ = quality;
    Make({{"ctr", 1.0, 100}}, interval, total);
  }
  // The windows of each commit.
  std::vector<uint64_t> Windows() const {
    std::vector<uint64_t> windows;
    for (const auto& commit : store_->commits) {
      windows.push_back(0);
      for (const auto& learner : commit.learners)
        if (learner.learner == LearnerIndex(1)) windows.back() = learner.charges.at(0).steps;
    }
    return windows;
  }
};

TEST_F(QualityTrainerTest, AWindowIsInTheCommitOfItsLastStep) {
  MakeWith(100, std::nullopt, std::chrono::milliseconds(0));
  ASSERT_TRUE(RunSteps(5));
  EXPECT_THAT(Windows(), ElementsAre(0, 1, 0, 1, 0));
  const auto& account = store_->commits[1].learners.at(1);
  const auto scores = ReleasedScores::Decode(*account.released);
  ASSERT_TRUE(scores);
  // 64 predictions, and the noise of eight counts.
  EXPECT_NEAR(scores->last.Figures().events, 64, 6 * kQualitySigma * std::sqrt(8.0));
  EXPECT_EQ(account.charges[0].ranges, (std::vector<OffsetRange>{{0, 0, 64}}));
}

TEST_F(QualityTrainerTest, WindowsThatTheBudgetsHaveNoRoomForArePassedOver) {
  const double one = privacy::GaussianEpsilon(1 / kQualitySigma, Delta(1e-6)).value;
  MakeWith(.99 * one, std::nullopt, std::chrono::milliseconds(0));
  ASSERT_TRUE(RunSteps(4));
  EXPECT_THAT(Windows(), ElementsAre(0, 0, 0, 0)) << "its own";
  // A step of mu 1, and a window of mu 1/3, on one record: all together.
  const double both =
      privacy::GaussianEpsilon(std::sqrt(1 + 1 / kQualitySigma / kQualitySigma), Delta(1e-6)).value;
  MakeWith(100, privacy::TotalBudget{1.001 * both, 1e-6}, std::chrono::milliseconds(0));
  ASSERT_TRUE(RunSteps(4));
  EXPECT_THAT(Windows(), ElementsAre(0, 1, 0, 1));
  for (const auto interval : {std::chrono::milliseconds(0), std::chrono::milliseconds(100'000)}) {
    MakeWith(100, privacy::TotalBudget{.999 * both, 1e-6}, interval);
    ASSERT_TRUE(RunSteps(4));
    for (const uint64_t windows : Windows()) EXPECT_EQ(windows, 0u) << "pending or not";
    EXPECT_LE(store_->Latest()->total().epsilon, both);
  }
}

}  // namespace
}  // namespace tacit::train
