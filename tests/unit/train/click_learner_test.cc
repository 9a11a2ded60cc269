// One private step through the learner: what reaches the model when no event, or one loud event, is
// in it.
#include "train/click/click_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/sum_blocks.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/click/memory_rows.h"

namespace tacit::train {
namespace {

constexpr double kClip = 0.5, kSigma = 2, kBatch = 8;
const std::atomic<bool> kGoOn = false;

// Rows in memory that remember which were marked as changed.
class MarkedRows final : public store::WorkingRows {
 public:
  explicit MarkedRows(store::RowLayout layout) : rows_(std::move(layout)) {}
  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override {
    return rows_.Gather(rows, out);
  }
  void MarkChanged(std::span<const uint64_t> rows) override {
    changed.insert(changed.end(), rows.begin(), rows.end());
  }
  std::shared_ptr<const store::RowDelta> TakeDelta() override { return rows_.TakeDelta(); }
  Stats stats() const override { return rows_.stats(); }

  std::vector<uint64_t> changed;

 private:
  MemoryRows rows_;
};

// A learner whose update is what the model moves by: SGD at rate 1.
class LearnerTest : public testing::Test {
 protected:
  void Make(std::unique_ptr<noise::NoiseSource> noise) {
    options_.id = "ctr";
    options_.index = LearnerIndex(0);
    options_.model.space.AddTable("a", 300, 3);
    options_.model.space.AddTable("b", 100, 2);
    options_.model.dense_width = 2;
    options_.model.hidden = {32, 16};
    options_.optimizer = {
        .kind = OptimizerNamed("sgd"), .learning_rate = 1, .row_learning_rate = 1};
    const RowSpace& space = options_.model.space;
    rows_ = std::make_unique<MarkedRows>(
        MakeRowLayout(options_, model::Pctr(options_.model, *backend_)));
    auto mechanism = mechanism::MakeAdaFest(space, {.sigma_selection = 1,
                                                    .sigma_gradient = kSigma,
                                                    .clip_selection = 1,
                                                    .clip_gradient = kClip,
                                                    .threshold = 0.01,
                                                    .expected_batch = kBatch});
    learner_ = std::make_unique<ClickLearner>(options_, std::move(mechanism), std::move(noise),
                                              *backend_, *rows_, nullptr);
    before_ = learner_->CopyDense();
  }

  static stream::StepBatch EmptyStep() {
    stream::StepBatch step;
    step.examples.dense_width = 2;
    step.examples.slots = 2;
    step.ranges = {{0, 0, 8}};
    return step;
  }

  // The distance that every number of these rows has moved by.
  std::vector<double> RowChanges(const std::vector<uint64_t>& ids) {
    std::vector<double> changes;
    MemoryRows initial(MakeRowLayout(options_, model::Pctr(options_.model, *backend_)));
    std::vector<float*> now(ids.size()), then(ids.size());
    EXPECT_TRUE(rows_->Gather(ids, now));
    EXPECT_TRUE(initial.Gather(ids, then));
    for (size_t i = 0; i < ids.size(); ++i) {
      const RowSpace& space = options_.model.space;
      for (size_t c = 0; c < space.tables()[space.TableOf(ids[i])].dim; ++c)
        changes.push_back(now[i][c] - then[i][c]);
    }
    return changes;
  }
  std::vector<double> DenseChanges() const {
    std::vector<double> changes;
    const auto after = learner_->CopyDense();
    for (size_t i = 0; i < after->parameters.size(); ++i)
      changes.push_back(after->parameters[i] - before_->parameters[i]);
    return changes;
  }

  WorkerPool workers_{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  ClickOptions options_;
  std::unique_ptr<MarkedRows> rows_;
  std::unique_ptr<ClickLearner> learner_;
  std::shared_ptr<const store::DenseState> before_;
};

double SquaredLength(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return sum;
}

TEST_F(LearnerTest, AnEmptyStepIsNoiseOnDenseAndOnRowsNobodyTouched) {
  Make(std::make_unique<noise::FixedNoise>(1));
  StepReport report;
  const auto taken = learner_->TakeStep(EmptyStep(), kGoOn, &report);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ(report.rows_touched, 0u);
  EXPECT_EQ(report.rows_written, rows_->changed.size());
  // A row passes with probability just below one half: 400 of them are within 8 deviations.
  EXPECT_NEAR(static_cast<double>(rows_->changed.size()), 200, 80);
  const double variance = std::pow(kClip * kSigma / kBatch, 2);
  for (const auto& changes : {DenseChanges(), RowChanges(rows_->changed)}) {
    EXPECT_EQ(std::count(changes.begin(), changes.end(), 0.0), 0) << "a number without noise";
    const double n = static_cast<double>(changes.size());
    EXPECT_NEAR(SquaredLength(changes) / n / variance, 1, 8 * std::sqrt(2 / n));
  }
}

TEST_F(LearnerTest, OneLoudEventMovesTheModelByItsClipOverThePublicBatch) {
  Make(std::make_unique<noise::SilentNoise>());
  stream::StepBatch step = EmptyStep();
  step.examples.offset = {0};
  step.examples.timestamp_ms = {0};
  step.examples.label = {1};
  step.examples.dense = {-4000, 3000};
  step.examples.row = {17, 320};
  step.examples.slot_end = {1, 2};
  step.unit_of = {0};
  step.units = 1;
  StepReport report;
  const auto taken = learner_->TakeStep(step, kGoOn, &report);
  ASSERT_TRUE(taken && *taken);
  ASSERT_EQ(report.units_clipped, 1u) << "the event is not loud";
  EXPECT_EQ(rows_->changed, (std::vector<uint64_t>{17, 320}));
  const double squared = SquaredLength(DenseChanges()) + SquaredLength(RowChanges(rows_->changed));
  EXPECT_NEAR(std::sqrt(squared), kClip * (1 - model::kSumError) / kBatch, 1e-4 * kClip / kBatch);
}

}  // namespace
}  // namespace tacit::train
