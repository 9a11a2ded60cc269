// The linear click model on logs whose truth is known: events are drawn from a logistic model of
// independent columns. What the learner shows of its weights' deviations holds there, and
// predictions are right in the mean, for frequent clicks as for rare ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "base/auc.h"
#include "model/linear/row.h"
#include "support/fixed_noise.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;

constexpr size_t kTruthColumns = 14, kTruthValues = 60, kTruthEvents = 20'000;
constexpr double kTruthDeviation = 0.3;

struct World {
  double noise_multiplier = 0, bias = 0;
};

// The log, and the learner that learns it.
class Truth {
 public:
  explicit Truth(const World& world)
      : world_(world),
        columns_(std::make_shared<const linear::Columns>(MakeColumns(),
                                                         std::vector<linear::NumberColumn>())),
        rows_(LinearRowLayout(*columns_)),
        learner_({.id = "sums",
                  .index = LearnerIndex(0),
                  .columns = columns_,
                  .update = {},
                  .noise_multiplier = world.noise_multiplier},
                 std::make_unique<noise::FixedNoise>(7), rows_, workers_) {
    std::normal_distribution<double> effect(0, kTruthDeviation);
    for (auto& column : effects_) {
      column.resize(kTruthValues);
      for (double& one : column) one = effect(random_);
    }
    double sum = 0;
    for (size_t v = 0; v < kTruthValues; ++v) sum += 1.0 / static_cast<double>(v + 1);
    for (size_t v = 0; v < kTruthValues; ++v)
      share_.push_back(1.0 / static_cast<double>(v + 1) / sum);
  }

  // One more period. Sets what was predicted of it before it was learnt.
  void Step() {
    std::discrete_distribution<uint64_t> value(share_.begin(), share_.end());
    std::uniform_real_distribution<double> coin;
    stream::StepBatch step;
    event::Batch& batch = step.examples;
    batch.slots = kTruthColumns;
    std::vector<float> best;
    for (size_t i = 0; i < kTruthEvents; ++i) {
      double logit = world_.bias;
      for (size_t j = 0; j < kTruthColumns; ++j) {
        const uint64_t v = value(random_);
        logit += effects_[j][v];
        batch.row.push_back(j * kTruthValues + v);
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
      best.push_back(static_cast<float>(logit));
      batch.label.push_back(coin(random_) < 1 / (1 + std::exp(-logit)) ? 1 : 0);
      step.unit_of.push_back(static_cast<uint32_t>(i));
    }
    step.units = kTruthEvents;
    StepReport report;
    const std::atomic<bool> go_on = false;
    const auto taken = learner_.TakeStep(step, go_on, &report);
    ASSERT_TRUE(taken && *taken);
    auc_ = ExactAuc(report.logits, batch.label);
    best_ = ExactAuc(best, batch.label);
    double clicks = 0, predicted = 0;
    for (size_t i = 0; i < kTruthEvents; ++i) {
      clicks += batch.label[i];
      predicted += 1 / (1 + std::exp(-static_cast<double>(report.logits[i])));
    }
    calibration_ = predicted / clicks;
  }

  // Errors of well-seen values' weights in deviations. A column's level is not told apart from the
  // bias, so each column is compared around its mean.
  std::vector<double> Errors(bool planted) {
    std::vector<double> errors;
    for (size_t j = 0; j < kTruthColumns; ++j) {
      std::vector<double> off(kTruthValues), deviation(kTruthValues);
      double level = 0;
      for (size_t v = 0; v < kTruthValues; ++v) {
        const float* row = Row(j * kTruthValues + v);
        off[v] = row[linear::kWeight] - effects_[j][v];
        level += share_[v] * off[v];
        deviation[v] = planted ? std::sqrt(row[linear::kVariance])
                               : linear::DeviationOf(row[linear::kWeight], row[linear::kError], {});
      }
      for (size_t v = 0; v < kTruthValues; ++v)
        if (share_[v] * kTruthEvents > 6 * WhatNoiseHides() && deviation[v] > 0)
          errors.push_back((off[v] - level) / deviation[v]);
    }
    return errors;
  }
  double auc() const { return auc_; }
  double best() const { return best_; }
  double calibration() const { return calibration_; }

 private:
  static std::vector<linear::CategoryColumn> MakeColumns() {
    std::vector<linear::CategoryColumn> columns;
    for (size_t j = 0; j < kTruthColumns; ++j)
      columns.push_back({.name = fmt::format("c{}", j), .rows = kTruthValues});
    return columns;
  }
  // The deviation of a count's noise, in events.
  double WhatNoiseHides() const {
    const linear::UpdateOptions update;
    return world_.noise_multiplier * linear::ContributionMost(kTruthColumns, update) /
           update.count_share;
  }
  const float* Row(uint64_t row) {
    float* floats = nullptr;
    EXPECT_TRUE(rows_.Gather({&row, 1}, {&floats, 1}));
    return floats;
  }

  const World world_;
  std::mt19937_64 random_{11};
  std::vector<std::vector<double>> effects_{kTruthColumns};
  std::vector<double> share_;
  const std::shared_ptr<const linear::Columns> columns_;
  MemoryRows rows_;
  WorkerPool workers_{{.workers = 2}};
  LinearLearner learner_;
  double auc_ = 0, best_ = 0, calibration_ = 0;
};

double Within(const std::vector<double>& errors, double deviations) {
  const auto inside =
      std::ranges::count_if(errors, [&](double error) { return std::abs(error) < deviations; });
  return static_cast<double>(inside) / static_cast<double>(errors.size());
}

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// The planted deviation is the filter's own variance P, which is what decides the next gain: it is
// too small before the weights have arrived, and too large after many periods.
TEST(LinearTruth, ShownDeviationsHold) {
  constexpr size_t kTruths = 5;
  double planted_early = 0, planted_late = 0;
  for (const World& world :
       {World{2.5, -1.1}, World{0.5, -1.1}, World{2.5, -3.5}, World{0.5, -3.5}}) {
    // Errors of one truth have its bias in common, so that the median truth is asked.
    std::vector<std::unique_ptr<Truth>> truths;
    for (size_t t = 0; t < kTruths; ++t) truths.push_back(std::make_unique<Truth>(world));
    for (int period = 1; period <= 18; ++period) {
      for (const auto& truth : truths) truth->Step();
      if (period != 2 && period != 4 && period != 8 && period != 18) continue;
      std::vector<double> ones, twos;
      for (const auto& truth : truths) {
        const auto errors = truth->Errors(false);
        EXPECT_GT(errors.size(), 60u);
        ones.push_back(Within(errors, 1));
        twos.push_back(Within(errors, 2));
      }
      SCOPED_TRACE(
          fmt::format("noise {}, bias {}, period {}", world.noise_multiplier, world.bias, period));
      const double one = Median(ones), two = Median(twos);
      fmt::print("noise {} bias {:.1f} period {:2}: {:.2f} and {:.2f}; AUC {:.4f} of {:.4f}\n",
                 world.noise_multiplier, world.bias, period, one, two, truths[0]->auc(),
                 truths[0]->best());
      EXPECT_GT(one, 0.55);
      if (world.bias > -2) {
        EXPECT_LT(one, 0.9);
      }
      EXPECT_GT(two, 0.89);
      if (world.noise_multiplier < 1 && world.bias > -2)
        (period == 2 ? planted_early : planted_late) = Within(truths[0]->Errors(true), 1);
    }
  }
  EXPECT_LT(planted_early, 0.68) << "too small before the weights have arrived";
  EXPECT_GT(planted_late, 0.95) << "too large after many periods";
}

// Clicks of three in a hundred are learnt as those of one in four are, and predicted at their rate.
TEST(LinearTruth, RareClicksAreLearntAtTheirRate) {
  Truth truth({.noise_multiplier = 0.5, .bias = -4});
  for (int period = 1; period <= 12; ++period) truth.Step();
  EXPECT_GT(truth.auc() - 0.5, 0.8 * (truth.best() - 0.5));
  EXPECT_NEAR(truth.calibration(), 1, 0.1);
}

}  // namespace
}  // namespace tacit::train
