// A step that writes every row: who gets the gradient, who gets noise, and that no row is left out.
#include "every_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "store/store.h"
#include "support/silent_noise.h"
#include "support/statistics.h"
#include "support/temp_dir.h"
#include "train/click/click_learner.h"
#include "train/click/every_row_update.h"
#include "train/click/flat_rows.h"
#include "train/click/memory_rows.h"
#include "train/learner/position.h"

namespace tacit::train {
namespace {

using noise::NoiseSource;

// Cuts into parts of odd sizes, each on the one source.
class CuttingNoise final : public noise::SilentNoise {
 public:
  void FillGridGaussian(double, double, std::span<float> out) override {
    std::fill(out.begin(), out.end(), 0.0f);
  }
  void ForParts(size_t n, const Part& part) override {
    for (size_t begin = 0; begin < n;) {
      const size_t end = std::min(n, begin + 1 + begin % 37);
      part(begin, end, *this);
      begin = end;
    }
  }
};

// Noise that can be recognised: 1, 2, 3, ... in the order of the numbers asked for.
class CountingMechanism final : public mechanism::Mechanism {
 public:
  void Select(const mechanism::StepRows&, NoiseSource&, model::RowSelection*) override {}
  const model::ScaleRule& scale_rule() const override { std::abort(); }
  void Finalize(NoiseSource&, const model::GroupNorms&, model::StepGradient*) override {}
  void FillUntouched(NoiseSource&, std::span<float> out) override {
    for (float& value : out) value = next_++;
  }
  const privacy::Charge& charge() const override { return charge_; }
  double ExpectedExtraRows() const override { return 0; }
  float next() const { return next_; }

 private:
  float next_ = 1;
  privacy::Charge charge_;
};

RowSpace SmallSpace() {
  RowSpace space;
  space.AddTable("a", 300, 3);
  space.AddTable("b", 1, 7);
  space.AddTable("c", 2000, 2);
  return space;
}

store::RowLayout ZeroLayout(const RowSpace& space, const Optimizer& optimizer) {
  store::RowLayout layout;
  layout.space = space;
  for (const RowSpace::Table& table : space.tables()) {
    layout.state_floats.push_back(static_cast<uint32_t>(optimizer.RowStateFloats(table.dim)));
    layout.initial_scale.push_back(0);
  }
  return layout;
}

// Against the definition: rows of the gradient move by it, the others by the next noise.
TEST(EveryRowUpdateTest, EachRowMovesOnceByItsGradientOrByItsOwnNoise) {
  const RowSpace space = SmallSpace();
  const Optimizer optimizer({.kind = OptimizerNamed("sgd"), .row_learning_rate = 1});
  std::mt19937 random(7);
  for (const int touched_percent : {0, 5, 100}) {
    model::StepGradient gradient;
    for (uint64_t row = 0; row < space.rows(); ++row) {
      if (static_cast<int>(random() % 100) >= touched_percent) continue;
      gradient.rows.push_back(row);
      const size_t dim = space.tables()[space.TableOf(row)].dim;
      for (size_t c = 0; c < dim; ++c) gradient.row_values.push_back(-static_cast<float>(row) - 1);
      gradient.row_end.push_back(gradient.row_values.size());
    }
    MemoryRows rows(ZeroLayout(space, optimizer));
    CuttingNoise noise;
    CountingMechanism mechanism;
    EveryRowUpdate update(space, optimizer);
    ASSERT_TRUE(update.Apply(mechanism, noise, gradient, rows));

    float expected_noise = 1;
    for (uint64_t row = 0; row < space.rows(); ++row) {
      float* values = nullptr;
      ASSERT_TRUE(rows.Gather({&row, 1}, {&values, 1}));
      const bool touched = std::ranges::binary_search(gradient.rows, row);
      for (size_t c = 0; c < space.tables()[space.TableOf(row)].dim; ++c)
        ASSERT_EQ(values[c], touched ? static_cast<float>(row) + 1 : -expected_noise++)
            << "row " << row << " of " << touched_percent << " % touched";
    }
    EXPECT_EQ(mechanism.next(), expected_noise) << "noise was drawn for nobody";
  }
}

ClickOptions DenseLearner(const OptimizerKind* kind, uint64_t rows) {
  ClickOptions options;
  options.id = "dense";
  options.index = LearnerIndex(0);
  options.model.space.AddTable("a", rows, 5);
  options.model.space.AddTable("b", 40, 3);
  options.model.dense_width = 1;
  options.model.hidden = {4};
  options.optimizer.kind = kind;
  options.optimizer.learning_rate = options.optimizer.row_learning_rate = kRate;
  return options;
}

stream::StepBatch OneEvent() {
  stream::StepBatch step;
  step.examples.dense_width = 1;
  step.examples.slots = 2;
  step.examples.offset = {0};
  step.examples.timestamp_ms = {0};
  step.examples.label = {1};
  step.examples.dense = {0.5};
  step.examples.row = {17, 20010};
  step.examples.slot_end = {1, 2};
  step.unit_of = {0};
  step.units = 1;
  step.ranges = {{0, 0, 8}};
  return step;
}

std::vector<double> Changes(const ClickOptions& options, ops::Backend& backend,
                            store::WorkingRows& rows) {
  const auto layout = MakeRowLayout(options, model::Pctr(options.model, backend));
  std::vector<double> changes;
  for (uint64_t row = 0; row < layout.space.rows(); ++row) {
    float* values = nullptr;
    EXPECT_TRUE(rows.Gather({&row, 1}, {&values, 1}));
    const uint32_t table = layout.space.TableOf(row);
    std::vector<float> before(layout.space.tables()[table].dim);
    InitialRow(layout.seed, row, layout.initial_scale[table], before);
    for (size_t c = 0; c < before.size(); ++c) changes.push_back(values[c] - before[c]);
  }
  return changes;
}

// Enough rows that the work is cut over both workers.
TEST(DenseDpSgdTest, ARowThatNobodyTouchedMovesByNoiseOfTheStatedDeviation) {
  WorkerPool workers({.workers = 2});
  const auto backend = ops::MakeCpuBackend(workers);
  const ClickOptions options = DenseLearner(OptimizerNamed("sgd"), 20000);
  auto rows = FlatRows::Make(MakeRowLayout(options, model::Pctr(options.model, *backend)),
                             uint64_t{1} << 30, workers);
  ASSERT_TRUE(rows);
  ClickLearner learner(options, DpSgd(options.model.space), noise::MakeNoiseSource(workers),
                       *backend, **rows, nullptr);
  StepReport report;
  const auto taken = learner.TakeStep(OneEvent(), kGoOn, &report);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ(report.rows_written, options.model.space.rows());
  std::vector<double> z = Changes(options, *backend, **rows);
  for (double& change : z) change /= kRate * kSigma * kClip / kBatch;
  EXPECT_EQ(testing::CheckMoments(z), "");
  EXPECT_EQ(testing::CheckDistribution(z, testing::NormalCdf), "");
  const size_t half = z.size() / 2;
  EXPECT_EQ(testing::CheckUncorrelated(std::span(z).first(half), std::span(z).last(half)), "");
  for (double& change : z) change *= 1.05;  // the variance is 23 deviations off
  EXPECT_NE(testing::CheckMoments(z), "") << "the test is blind";
}

// Over every row, on a store's cache that is much too small for them.
TEST(DenseDpSgdTest, AStoreCommitsEveryRow) {
  const test::TempDir folder;
  {
    WorkerPool workers({.workers = 2});
    const auto backend = ops::MakeCpuBackend(workers);
    const ClickOptions options = DenseLearner(OptimizerNamed("adam"), 2000);
    const model::Pctr shape(options.model, *backend);
    store::StoreOptions store_options;
    store_options.path = folder / "store";
    store_options.witness = folder / "witness";
    store_options.memory_bytes = uint64_t{64} << 20;
    store_options.row_cache_bytes = 1 << 16;
    store_options.learners.push_back({.name = options.id,
                                      .rows = MakeRowLayout(options, shape),
                                      .promise = {.learner = options.id,
                                                  .epsilon = 1e6,
                                                  .delta = 1e-6,
                                                  .model_fingerprint = shape.Fingerprint()}});
    auto store = store::Store::Open(std::move(store_options));
    ASSERT_TRUE(store) << store.error().message;
    auto& rows = (*store)->working_rows(options.index);
    ClickLearner learner(options, DpSgd(options.model.space), noise::MakeNoiseSource(workers),
                         *backend, rows, nullptr);
    stream::StepBatch step = OneEvent();
    step.examples.row[1] = 2010;
    for (uint64_t s = 0; s < 3; ++s) {
      StepReport report;
      const auto taken = learner.TakeStep(step, kGoOn, &report);
      ASSERT_TRUE(taken && *taken);
      auto delta = rows.TakeDelta();
      EXPECT_EQ(delta->size(), options.model.space.rows()) << "a row without this step's noise";
      store::CommitRequest request;
      request.learners.push_back({.learner = options.index,
                                  .rows = delta,
                                  .dense = learner.CopyDense(),
                                  .position = EncodePosition({}),
                                  .charges = {{.learner = options.id,
                                               .charge = learner.mechanism().charge(),
                                               .steps = 1,
                                               .topic = "test",
                                               .ranges = {{0, s * 8, s * 8 + 8}}}}});
      ASSERT_TRUE((*store)->Commit(std::move(request), [](Status) {}));
    }
    ASSERT_TRUE((*store)->Flush());
    const std::vector<double> changes = Changes(options, *backend, rows);
    // Noise below half an ulp leaves a number as it was, once in thousands of runs; a row that is
    // left out leaves three or more.
    EXPECT_LT(std::count(changes.begin(), changes.end(), 0.0), 3);
  }
}

TEST(FlatRowsTest, StartsAtTheInitialValuesAndKeepsWhatIsWritten) {
  WorkerPool workers({.workers = 2});
  const RowSpace space = SmallSpace();
  store::RowLayout layout;
  layout.space = space;
  layout.state_floats = {4, 0, 1};
  layout.seed = 9;
  layout.initial_scale = {1, 2, 0.5f};
  auto flat = FlatRows::Make(layout, FlatRows::BytesNeeded(layout), workers);
  ASSERT_TRUE(flat);
  MemoryRows expected(layout);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> rows;
    for (uint64_t row = 0; row < space.rows(); ++row)
      if (random() % 10 == 0) rows.push_back(row);
    std::vector<float*> a(rows.size()), b(rows.size());
    ASSERT_TRUE((*flat)->Gather(rows, a));
    ASSERT_TRUE(expected.Gather(rows, b));
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t table = space.TableOf(rows[i]);
      for (size_t c = 0; c < layout.RowFloats(table); ++c) {
        ASSERT_EQ(a[i][c], b[i][c]) << "row " << rows[i];
        a[i][c] = b[i][c] = static_cast<float>(random() % 1000);
      }
    }
  }
}

TEST(FlatRowsTest, RefusesWhatDoesNotFitAndSaysHowMuchItNeeds) {
  WorkerPool workers({.workers = 1});
  store::RowLayout layout;
  layout.state_floats = {0};
  layout.initial_scale = {1};
  layout.space.AddTable("wide", 1 << 20, 256);
  const auto rows = FlatRows::Make(layout, (uint64_t{1} << 30) - 1, workers);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::kRefused);
  EXPECT_NE(rows.error().message.find("1.00 GiB"), std::string::npos) << rows.error().message;
}

}  // namespace
}  // namespace tacit::train
