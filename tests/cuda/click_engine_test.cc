// The device's step against the CPU's, step by step and with the same noise: which rows are written
// and what noise alone moves, bit for bit; sums within the contract's tolerance.
#include "cuda/learn/click_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cuda/device/emulated.h"
#include "cuda/step_trial.h"
#include "cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

// The device's side of a trial.
class DeviceTrial {
 public:
  DeviceTrial(Device& device, const TrialOptions& options, uint32_t chunk_examples)
      : click_(TrialLearner(options)),
        backend_(ops::MakeReferenceBackend()),
        rows_(click_, *backend_, workers_),
        mechanism_(MakeTrialMechanism(click_.model.space, options)) {
    store::DenseState dense;
    dense.parameters = model::Pctr(click_.model, *backend_).InitialDense(click_.seed);
    dense.optimizer.assign(
        train::Optimizer(click_.optimizer).DenseStateFloats(dense.parameters.size()), 0.0f);
    auto engine = DeviceClickEngine::Make(
        device,
        {.model = click_.model, .optimizer = click_.optimizer, .chunk_examples = chunk_examples},
        *mechanism_, noise_, rows_.rows(), dense);
    EXPECT_TRUE(engine) << engine.error().message;
    if (engine) engine_ = std::move(*engine);
  }

  train::StepReport Step(const stream::StepBatch& step) {
    train::StepReport report;
    const Status begun = engine_->Begin(step);
    EXPECT_TRUE(begun) << begun.error().message;
    const Status released = engine_->Release(&report);
    EXPECT_TRUE(released) << released.error().message;
    const Status settled = engine_->Settle();
    EXPECT_TRUE(settled) << settled.error().message;
    return report;
  }
  DeviceClickEngine& engine() { return *engine_; }
  TrialRows& rows() { return rows_; }
  const RowSpace& space() const { return click_.model.space; }

 private:
  train::ClickOptions click_;
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_;
  TrialRows rows_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  EngineNoise noise_{9};
  std::unique_ptr<DeviceClickEngine> engine_;
};

std::set<uint64_t> Changed(const std::vector<std::vector<float>>& before,
                           const std::vector<std::vector<float>>& after) {
  std::set<uint64_t> changed;
  for (uint64_t row = 0; row < before.size(); ++row)
    if (before[row] != after[row]) changed.insert(row);
  return changed;
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    // Counts are stored as the bits of a float.
    if (got[i] == want[i] || (std::abs(want[i]) < 1e-30 && std::abs(got[i]) < 1e-30)) continue;
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << ", number " << i;
  }
}

class ClickEngineTest : public OnDevice {
 protected:
  // Takes steps on both sides and compares after each.
  void Compare(const TrialOptions& options, uint32_t examples_max = 1,
               uint32_t chunk_examples = 64) {
    if (device_ == nullptr) return;
    HostTrial host(options);
    DeviceTrial device(*device_, options, chunk_examples);
    std::mt19937_64 random(11);
    const bool bf16 = options.precision == ops::Precision::kBf16;
    // bf16's sums depend on the order in their last bits, and a rounding may then go the other way.
    const double tolerance = bf16 ? 4e-3 : 2e-5;
    size_t written_extra = 0, left_out = 0;
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(::testing::Message() << "step " << step);
      const uint32_t units = step == 2 ? 0 : 11;
      const auto batch = RandomStep(device.space(), 2, units, examples_max, random);
      const auto before = device.rows().All();
      const auto before_host = host.rows().All();
      const auto written = host.Step(batch);
      const auto report = device.Step(batch);
      const auto after = device.rows().All();
      ExpectNear({report.logits.begin(), report.logits.end()}, host.logits(), tolerance, "logits");
      const bool every = options.rows == TrialOptions::Rows::kEvery;
      const std::set<uint64_t> touched(batch.examples.row.begin(), batch.examples.row.end());
      EXPECT_EQ(report.rows_touched, touched.size());
      EXPECT_EQ(report.units_clipped, host.units_clipped());
      if (every) {
        EXPECT_EQ(Changed(before, after).size(), device.space().rows());
      } else {
        // Which rows were kept or passed by noise alone: to the row.
        EXPECT_EQ(Changed(before, after), written);
        EXPECT_EQ(Changed(before_host, host.rows().All()), written);
        EXPECT_EQ(report.rows_written, written.size());
        for (const uint64_t row : written) written_extra += !touched.contains(row);
        for (const uint64_t row : touched) left_out += !written.contains(row);
      }
      const auto want = host.rows().All();
      for (uint64_t row = 0; row < want.size(); ++row)
        ExpectNear(after[row], want[row], tolerance, "row " + std::to_string(row));
      ExpectNear(device.engine().dense().parameters, host.dense().parameters, tolerance, "dense");
      ExpectNear(device.engine().dense().optimizer, host.dense().optimizer, tolerance, "state");
    }
    if (options.rows != TrialOptions::Rows::kEvery) {
      EXPECT_GT(written_extra, 0u);
      EXPECT_GT(left_out, 0u);
    }
  }
};

using Rows = TrialOptions::Rows;
using Clip = TrialOptions::Clip;

TEST_F(ClickEngineTest, ThresholdRows) { Compare({}); }
TEST_F(ClickEngineTest, EveryRow) { Compare({.rows = Rows::kEvery}); }
TEST_F(ClickEngineTest, VocabularyRows) { Compare({.rows = Rows::kVocabulary}); }
TEST_F(ClickEngineTest, ThresholdRowsInsideAVocabulary) {
  Compare({.rows = Rows::kThresholdInside});
}
TEST_F(ClickEngineTest, UnitsOfSeveralExamples) { Compare({}, 4); }
TEST_F(ClickEngineTest, AutomaticClip) { Compare({.clip = Clip::kAutomatic}, 3); }
TEST_F(ClickEngineTest, ClipPerLayer) { Compare({.clip = Clip::kPerLayer}, 3); }
TEST_F(ClickEngineTest, Chunks) { Compare({.threshold = 1}, 4, 5); }
TEST_F(ClickEngineTest, Bf16) { Compare({.precision = ops::Precision::kBf16}, 3); }
TEST_F(ClickEngineTest, Momentum) { Compare({.momentum = 0.9f}); }
TEST_F(ClickEngineTest, Adagrad) { Compare({.optimizer = "adagrad"}); }
TEST_F(ClickEngineTest, Adam) { Compare({.optimizer = "adam"}); }
TEST_F(ClickEngineTest, LazyAdamWithAverage) {
  Compare({.optimizer = "adam", .lazy = true, .average_decay = 0.9});
}
TEST_F(ClickEngineTest, CorrectedAdamOnEveryRow) {
  Compare({.rows = Rows::kEvery, .optimizer = "adam-bc"});
}

}  // namespace
}  // namespace tacit::cuda::testing
