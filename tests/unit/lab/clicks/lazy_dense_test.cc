// Dense noise that is settled when a row is looked at has the law of noise drawn at every step.
#include "lab/clicks/lazy_dense.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "support/fixed_noise.h"
#include "support/statistics.h"
#include "train/click/click_learner.h"
#include "train/click/memory_rows.h"
#include "unit/train/every_row.h"

namespace tacit::train {
namespace {

constexpr double kStepDeviation = kRate * kSigma * kClip / kBatch;
constexpr uint64_t kRows = 40000;
constexpr size_t kDim = 4;

// Remembers what every Gather found.
class RecordingRows final : public store::WorkingRows {
 public:
  explicit RecordingRows(store::WorkingRows& rows) : rows_(rows) {}
  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override {
    TACIT_RETURN_IF_ERROR(rows_.Gather(rows, out));
    found.emplace_back();
    for (const float* row : out) found.back().insert(found.back().end(), row, row + kDim);
    return {};
  }
  void MarkChanged(std::span<const uint64_t> rows) override { rows_.MarkChanged(rows); }
  std::shared_ptr<const store::RowDelta> TakeDelta() override { return rows_.TakeDelta(); }
  Stats stats() const override { return rows_.stats(); }

  std::vector<std::vector<double>> found;

 private:
  store::WorkingRows& rows_;
};

// A learner on eager or lazy rows. No event has any pull: the output weights are zero except for
// their noise, so that what moves a row is noise, to well below what the tests can see.
class Trained {
 public:
  explicit Trained(bool lazy) {
    options_.id = "dense";
    options_.index = LearnerIndex(0);
    options_.model.space.AddTable("a", kRows, kDim);
    options_.model.hidden.clear();
    options_.optimizer.kind = OptimizerNamed("sgd");
    options_.optimizer.learning_rate = 1e-12f;
    options_.optimizer.row_learning_rate = kRate;
    layout_ = MakeRowLayout(options_, model::Pctr(options_.model, *backend_));
    layout_.initial_scale = {0};
    auto mechanism = DpSgd(options_.model.space);
    rows_ = std::make_unique<MemoryRows>(layout_);
    if (lazy) {
      lab::LazyDense pair = lab::MakeLazyDense(std::move(mechanism), std::move(rows_), layout_,
                                               kRate, std::make_unique<noise::FixedNoise>(1));
      mechanism = std::move(pair.mechanism);
      rows_ = std::move(pair.rows);
    }
    recording_ = std::make_unique<RecordingRows>(*rows_);
    store::DenseState dense;
    dense.parameters.assign(kDim + 1, 0.0f);
    learner_ = std::make_unique<ClickLearner>(options_, std::move(mechanism),
                                              std::make_unique<noise::FixedNoise>(2), *backend_,
                                              *recording_, &dense);
  }

  // One event a row.
  void Step(const std::vector<uint64_t>& rows) {
    stream::StepBatch step;
    step.examples.slots = 1;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      step.examples.offset.push_back(i);
      step.examples.timestamp_ms.push_back(0);
      step.examples.label.push_back(1);
      step.examples.row.push_back(rows[i]);
      step.examples.slot_end.push_back(i + 1);
      step.unit_of.push_back(i);
    }
    step.units = static_cast<uint32_t>(rows.size());
    StepReport report;
    const auto taken = learner_->TakeStep(step, kGoOn, &report);
    ASSERT_TRUE(taken && *taken);
  }

  // In units of this many steps' deviation.
  std::vector<double> Read(uint64_t first, uint64_t end, double steps) {
    std::vector<uint64_t> ids(end - first);
    std::iota(ids.begin(), ids.end(), first);
    std::vector<float*> values(ids.size());
    EXPECT_TRUE(rows_->Gather(ids, values));
    std::vector<double> z;
    for (const float* row : values)
      for (size_t c = 0; c < kDim; ++c) z.push_back(row[c] / (kStepDeviation * std::sqrt(steps)));
    return z;
  }

  RecordingRows& recording() { return *recording_; }
  const store::WorkingRows& rows() const { return *rows_; }

 private:
  WorkerPool workers_{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  ClickOptions options_;
  store::RowLayout layout_;
  std::unique_ptr<store::WorkingRows> rows_;
  std::unique_ptr<RecordingRows> recording_;
  std::unique_ptr<ClickLearner> learner_;
};

void ExpectStandardNormal(const std::vector<double>& z) {
  EXPECT_EQ(testing::CheckMoments(z), "");
  EXPECT_EQ(testing::CheckDistribution(z, testing::NormalCdf), "");
  EXPECT_EQ(testing::CheckTails(z), "");
}

TEST(LazyDenseTest, TheTableAtTheEndHasTheEagerLaw) {
  for (const bool lazy : {false, true}) {
    SCOPED_TRACE(lazy ? "lazy" : "eager");
    Trained trained(lazy);
    for (uint64_t step = 0; step < 5; ++step) trained.Step({step, 7, 20000 + step});
    ExpectStandardNormal(trained.Read(0, kRows, 5));
    // Once settled, a row stays as it is.
    EXPECT_EQ(trained.Read(0, kRows, 5), trained.Read(0, kRows, 5));
  }
}

TEST(LazyDenseTest, ARowReadOnTheWayGoesOnFromWhatWasSeen) {
  for (const bool lazy : {false, true}) {
    SCOPED_TRACE(lazy ? "lazy" : "eager");
    Trained trained(lazy);
    for (int step = 0; step < 3; ++step) trained.Step({1});
    const std::vector<double> then = trained.Read(0, kRows, 1);
    for (int step = 0; step < 4; ++step) trained.Step({2});
    const std::vector<double> now = trained.Read(0, kRows, 1);
    std::vector<double> first, second;
    for (size_t i = 0; i < now.size(); ++i) {
      first.push_back(then[i] / std::sqrt(3));
      second.push_back((now[i] - then[i]) / std::sqrt(4));
    }
    ExpectStandardNormal(first);
    ExpectStandardNormal(second);
    EXPECT_EQ(testing::CheckUncorrelated(first, second), "");
  }
}

TEST(LazyDenseTest, APredictionSeesARowThatOwesNothing) {
  for (const bool lazy : {false, true}) {
    SCOPED_TRACE(lazy ? "lazy" : "eager");
    Trained trained(lazy);
    for (int step = 0; step < 4; ++step) trained.Step({});
    std::vector<uint64_t> all(kRows);
    std::iota(all.begin(), all.end(), 0);
    trained.recording().found.clear();
    trained.Step(all);
    // Forward's rows, then the update's.
    std::vector<double> seen = trained.recording().found.front();
    for (double& value : seen) value /= kStepDeviation * std::sqrt(4);
    ExpectStandardNormal(seen);
    ExpectStandardNormal(trained.Read(0, kRows, 5));
  }
}

TEST(LazyDenseTest, CostsWhatTheBatchCosts) {
  Trained trained(true);
  for (uint64_t step = 0; step < 5; ++step) trained.Step({step, 7});
  EXPECT_EQ(trained.rows().stats().misses, 6u) << "rows that nobody looked at are held";
}

TEST(LazyDenseDeathTest, IsNeverCommittedAndNeverUnderAnOptimizerWithState) {
  Trained trained(true);
  EXPECT_DEATH(trained.recording().TakeDelta(), "never committed");
  RowSpace space;
  space.AddTable("a", 10, kDim);
  store::RowLayout layout;
  layout.space = space;
  layout.state_floats = {2 * kDim + 1};
  layout.initial_scale = {0};
  EXPECT_DEATH(lab::MakeLazyDense(DpSgd(space), std::make_unique<MemoryRows>(layout), layout, kRate,
                                  std::make_unique<noise::FixedNoise>(3)),
               "plain SGD");
}

}  // namespace
}  // namespace tacit::train
