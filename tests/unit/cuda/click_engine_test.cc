// The device's step against the CPU's, step by step and with the same noise: which rows are written
// and what noise alone moves, bit for bit; sums within the contract's tolerance.
#include "cuda/learn/click_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "mechanism/choice/choice.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

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
      } else if (options.rows == TrialOptions::Rows::kTouched) {
        EXPECT_EQ(written, touched);
        EXPECT_EQ(report.rows_written, written.size());
      } else {
        // The rows that were kept or passed by noise alone are the same, to the row.
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
    if (options.rows != TrialOptions::Rows::kEvery &&
        options.rows != TrialOptions::Rows::kTouched) {
      EXPECT_GT(written_extra, 0u);
      EXPECT_GT(left_out, 0u);
    }
  }
};

// Steps without a unit: all that moves is noise, and every bit must be the CPU's.
void ExpectTheSameNoise(Device& device, const TrialOptions& options) {
  HostTrial host(options);
  DeviceTrial trial(device, options, 64);
  std::mt19937_64 random(3);
  for (int step = 0; step < 3; ++step) {
    const auto nobody = RandomStep(trial.space(), 2, 0, 1, random);
    host.Step(nobody);
    trial.Step(nobody);
    ASSERT_EQ(trial.rows().All(), host.rows().All()) << "step " << step;
    ASSERT_EQ(trial.engine().dense().parameters, host.dense().parameters) << "step " << step;
    ASSERT_EQ(trial.engine().dense().optimizer, host.dense().optimizer) << "step " << step;
  }
}

using Rows = TrialOptions::Rows;
using Clip = TrialOptions::Clip;

TEST_F(ClickEngineTest, ThresholdRows) { Compare({}); }
TEST_F(ClickEngineTest, EveryRow) { Compare({.rows = Rows::kEvery}); }
TEST_F(ClickEngineTest, WithoutPrivacy) {
  for (const uint32_t chunk : {64u, 5u}) {
    Compare({.rows = Rows::kTouched}, 4, chunk);
    Compare({.rows = Rows::kTouched, .optimizer = "adam"}, 1, chunk);
  }
}
TEST_F(ClickEngineTest, WithoutPrivacyNothingMovesWithoutAUnit) {
  if (device_ == nullptr) return;
  DeviceTrial trial(*device_, {.rows = Rows::kTouched}, 64);
  std::mt19937_64 random(4);
  const auto before = trial.rows().All();
  const auto dense = trial.engine().dense().parameters;
  trial.Step(RandomStep(trial.space(), 2, 0, 1, random));
  EXPECT_EQ(trial.rows().All(), before);
  EXPECT_EQ(trial.engine().dense().parameters, dense);
}
TEST_F(ClickEngineTest, VocabularyRows) { Compare({.rows = Rows::kVocabulary}); }
TEST_F(ClickEngineTest, ThresholdRowsInsideAVocabulary) {
  Compare({.rows = Rows::kThresholdInside});
}
TEST_F(ClickEngineTest, UnitsOfSeveralExamples) { Compare({}, 4); }
TEST_F(ClickEngineTest, AutomaticClip) { Compare({.clip = Clip::kAutomatic}, 3); }
TEST_F(ClickEngineTest, ClipPerLayer) { Compare({.clip = Clip::kPerLayer}, 3); }
TEST_F(ClickEngineTest, Chunks) { Compare({.threshold = 1}, 4, 5); }
TEST_F(ClickEngineTest, Bf16) { Compare({.precision = ops::Precision::kBf16}, 3); }
// Norms come out of the products' ends, of wide layers in several parts.
TEST_F(ClickEngineTest, Bf16OfWideLayers) {
  const TrialOptions wide{.precision = ops::Precision::kBf16, .hidden = {130, 65}};
  Compare(wide);
  Compare(wide, 3);
  Compare(wide, 4, 9);
  TrialOptions per_layer = wide;
  per_layer.clip = Clip::kPerLayer;
  Compare(per_layer);
}
TEST_F(ClickEngineTest, Momentum) { Compare({.momentum = 0.9f}); }
TEST_F(ClickEngineTest, Adagrad) { Compare({.optimizer = "adagrad"}); }
TEST_F(ClickEngineTest, Adam) { Compare({.optimizer = "adam"}); }
TEST_F(ClickEngineTest, LazyAdamWithAverage) {
  Compare({.optimizer = "adam", .lazy = true, .average_decay = 0.9});
}
TEST_F(ClickEngineTest, CorrectedAdamOnEveryRow) {
  Compare({.rows = Rows::kEvery, .optimizer = "adam-bc"});
}

TEST_F(ClickEngineTest, NoiseAloneIsTheCpusBitForBit) {
  if (device_ == nullptr) return;
  for (const TrialOptions& options : std::initializer_list<TrialOptions>{
           {.threshold = 1},
           {.rows = Rows::kEvery},
           {.rows = Rows::kVocabulary, .optimizer = "adagrad"},
           {.rows = Rows::kThresholdInside, .optimizer = "adam"},
           {.rows = Rows::kEvery, .momentum = 0.5f},
           {.rows = Rows::kEvery, .optimizer = "adam-bc"},
           {.optimizer = "adam", .lazy = true, .average_decay = 0.5, .threshold = 1}}) {
    SCOPED_TRACE(options.optimizer);
    ExpectTheSameNoise(*device_, options);
  }
}

TEST_F(ClickEngineTest, BitsDoNotDependOnTheOrderOfTurns) {
  if (device_ == nullptr) return;
  const TrialOptions options{.precision = ops::Precision::kBf16, .threshold = 1};
  std::vector<std::vector<float>> first;
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    DeviceTrial trial(*device_, options, 8);
    std::mt19937_64 random(21);
    trial.Step(RandomStep(trial.space(), 2, 9, 3, random));
    auto got = trial.rows().All();
    got.push_back(trial.engine().dense().parameters);
    if (order == 0) first = got;
    ASSERT_EQ(got, first) << "order " << order;
  }
}

// Steps of two sizes in turn, each of which comes as a graph in the end. Streams beside each other,
// in any order, give the bits of a single one.
TEST_F(ClickEngineTest, StreamsBesideEachOtherGiveTheBitsOfOne) {
  if (device_ == nullptr) return;
  using Kind = train::GpuRowOptions::Kind;
  for (const TrialOptions& options : std::initializer_list<TrialOptions>{
           {.rows = Rows::kThresholdInside, .optimizer = "adam", .threshold = 1},
           {.rows = Rows::kEvery, .precision = ops::Precision::kBf16}}) {
    const bool may_cache = options.rows != Rows::kEvery;
    std::vector<std::vector<float>> alone;
    for (int order = -1; order < Orders(); ++order) {
      NextOrder(order + 1);
      DeviceTrial trial(
          *device_, options, 64,
          {.kind = may_cache && order % 2 ? Kind::kCache : Kind::kWhole, .cache_bytes = 1},
          order >= 0);
      std::mt19937_64 random(22);
      const auto small = RandomStep(trial.space(), 2, 5, 2, random);
      const auto large = RandomStep(trial.space(), 2, 12, 2, random);
      std::vector<std::vector<float>> got;
      for (int step = 0; step < 7; ++step) {
        const bool is_large = step % 2 == 1;
        if (order % 3 == 0) trial.engine().Announce(is_large ? small : large);
        const auto report = trial.StepOnly(is_large ? large : small);
        got.emplace_back(report.logits.begin(), report.logits.end());
        got.push_back({static_cast<float>(report.units_clipped),
                       static_cast<float>(report.rows_touched),
                       static_cast<float>(report.rows_written)});
      }
      trial.Settle();
      for (auto& row : trial.rows().All()) got.push_back(std::move(row));
      got.push_back(trial.engine().dense().parameters);
      if (order < 0) alone = got;
      ASSERT_EQ(got, alone) << "order " << order;
    }
  }
}

// A unit without a finite norm adds nothing, on either side.
TEST_F(ClickEngineTest, UnitsWithoutANormAreLeftOut) {
  if (device_ == nullptr) return;
  const TrialOptions options{.rows = Rows::kEvery};
  HostTrial host(options);
  DeviceTrial trial(*device_, options, 64);
  std::mt19937_64 random(31);
  auto step = RandomStep(trial.space(), 2, 7, 1, random);
  step.examples.dense[4] = std::numeric_limits<float>::infinity();
  host.Step(step);
  trial.Step(step);
  ExpectNear(trial.engine().dense().parameters, host.dense().parameters, 2e-5, "dense");
  const auto got = trial.rows().All(), want = host.rows().All();
  for (size_t row = 0; row < want.size(); ++row) ExpectNear(got[row], want[row], 2e-5, "row");
  for (const float weight : trial.engine().dense().parameters) EXPECT_TRUE(std::isfinite(weight));
}

TEST_F(ClickEngineTest, StepsMayBeAbandonedAndPreviewed) {
  if (device_ == nullptr) return;
  HostTrial host({});
  DeviceTrial trial(*device_, {}, 64);
  std::mt19937_64 random(41);
  const auto other = RandomStep(trial.space(), 2, 6, 2, random);
  const auto step = RandomStep(trial.space(), 2, 8, 2, random);
  const auto before = trial.rows().All();
  train::StepReport preview;
  ASSERT_TRUE(trial.engine().Predict(other, &preview));
  EXPECT_EQ(preview.examples, other.examples.size());
  EXPECT_GT(preview.loss_sum, 0);
  ASSERT_TRUE(trial.engine().Begin(other));
  ASSERT_TRUE(trial.engine().Settle());
  EXPECT_EQ(trial.rows().All(), before);
  const auto written = host.Step(step);
  trial.Step(step);
  EXPECT_EQ(Changed(before, trial.rows().All()), written);
}

// A mechanism whose recipe changes, as with a vocabulary that a period releases.
class Turning final : public mechanism::Mechanism {
 public:
  explicit Turning(const RowSpace& space) {
    for (const uint64_t every : {3u, 2u}) {
      mechanism::VocabularyOptions given;
      given.source = mechanism::VocabularyOptions::Source::kPublic;
      for (uint64_t row = 1; row < space.rows(); row += every) given.rows.push_back(row);
      const double clip = every == 3 ? 1 : 0.6;
      const std::vector<double> shares =
          every == 3 ? std::vector<double>{1, 2, 3, 4} : std::vector<double>{4, 1, 1, 1};
      turns_.push_back(mechanism::MakePrivateStep(
          space,
          mechanism::MakeThresholdRows(space, {.sigma = 1, .clip = clip, .threshold = 0.5},
                                       mechanism::MakeVocabulary(space, given)),
          mechanism::MakePerLayerClipper(0.7, shares, 1),
          {.sigma_gradient = 1, .expected_batch = 8}));
    }
  }
  void Turn() { now_ = 1 - now_; }

  std::optional<mechanism::Recipe> recipe() const override { return turns_[now_]->recipe(); }
  void DrawExtra(noise::NoiseSource& noise, std::vector<uint64_t>* rows) override {
    turns_[now_]->DrawExtra(noise, rows);
  }
  void Select(const mechanism::StepRows&, noise::NoiseSource&, model::RowSelection*) override {}
  const model::ScaleRule& scale_rule() const override { return turns_[now_]->scale_rule(); }
  void Finalize(noise::NoiseSource&, const model::GroupNorms&, model::StepGradient*) override {}
  const privacy::Charge& charge() const override { return turns_[now_]->charge(); }
  double ExpectedExtraRows() const override { return turns_[now_]->ExpectedExtraRows(); }

 private:
  std::vector<std::unique_ptr<mechanism::Mechanism>> turns_;
  size_t now_ = 0;
};

// An engine that goes on with another recipe does what one does that begins with it.
TEST_F(ClickEngineTest, ARecipeMayChangeBetweenSteps) {
  if (device_ == nullptr) return;
  const auto click = TrialLearner({});
  const auto backend = ops::MakeReferenceBackend();
  std::vector<std::vector<std::vector<float>>> learnt;
  for (const bool begins_anew : {true, false}) {
    WorkerPool workers{WorkerPool::Options{}};
    TrialRows rows(click, *backend, workers);
    store::DenseState dense = train::InitialDense(click, model::Pctr(click.model, *backend));
    Turning mechanism(click.model.space);
    EngineNoise noise(9);
    std::mt19937_64 random(43);
    std::unique_ptr<train::ClickEngine> engine;
    for (int i = 0; i < 6; ++i, mechanism.Turn()) {
      if (engine == nullptr || begins_anew) {
        engine.reset();
        auto made = MakeDeviceClickEngine(*device_, {.click = {click.model, click.optimizer}},
                                          mechanism, noise, rows.rows(), dense);
        ASSERT_TRUE(made) << made.error().message;
        engine = std::move(*made);
      }
      train::StepReport report;
      const auto step = RandomStep(click.model.space, 2, 9, 2, random);
      ASSERT_TRUE(engine->Begin(step));
      ASSERT_TRUE(engine->Release(&report));
      ASSERT_TRUE(engine->Settle());
      dense = engine->dense();
    }
    learnt.push_back(rows.All());
    learnt.back().push_back(dense.parameters);
  }
  EXPECT_EQ(learnt[1], learnt[0]);
}

// A step that was announced may go away once it is withdrawn, with any outcome.
TEST_F(ClickEngineTest, ForgetsWhatIsWithdrawn) {
  if (device_ == nullptr) return;
  std::vector<std::vector<std::vector<float>>> learnt;
  for (const bool announces : {false, true}) {
    DeviceTrial trial(*device_, {.threshold = 1}, 64, {.kind = train::GpuRowOptions::Kind::kWhole});
    std::mt19937_64 random(42);
    const auto step = RandomStep(trial.space(), 2, 8, 2, random);
    for (int turn = 0; turn < 4; ++turn) {
      auto next = std::make_unique<stream::StepBatch>(RandomStep(trial.space(), 2, 40, 2, random));
      if (announces) trial.engine().Announce(*next);
      train::StepReport report;
      // It is previewed, begun and abandoned, or released; or nothing happens.
      Status done;
      if (turn == 0) done = trial.engine().Predict(step, &report);
      if (turn == 1 || turn == 2) done = trial.engine().Begin(step);
      if (turn == 2 && done) done = trial.engine().Release(&report);
      EXPECT_TRUE(done) << "turn " << turn;
      trial.engine().Withdraw();
      next.reset();
      trial.StepOnly(step);
    }
    trial.Settle();
    learnt.push_back(trial.rows().All());
    learnt.back().push_back(trial.engine().dense().parameters);
  }
  EXPECT_EQ(learnt[1], learnt[0]);
}

// A step with a unit that does not fit into a chunk fails at its own turn, and not the one before
// it.
TEST_F(ClickEngineTest, RefusesAStepWhenItsTurnComes) {
  if (device_ == nullptr) return;
  using Kind = train::GpuRowOptions::Kind;
  for (const Kind kind : {Kind::kWhole, Kind::kCache}) {
    for (const bool early : {true, false}) {
      SCOPED_TRACE(::testing::Message()
                   << (early ? "early, " : "late, ") << static_cast<int>(kind));
      DeviceTrial trial(*device_, {.threshold = 1}, 8, {.kind = kind});
      std::mt19937_64 random(8);
      const auto first = RandomStep(trial.space(), 2, 5, 1, random);
      auto large = RandomStep(trial.space(), 2, 9, 1, random);
      large.units = 1;
      std::ranges::fill(large.unit_of, 0);
      if (early) trial.engine().Announce(large);
      Status done = trial.engine().Begin(first);
      ASSERT_TRUE(done) << done.error().message;
      if (!early) trial.engine().Announce(large);
      train::StepReport report;
      done = trial.engine().Release(&report);
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(report.examples, 5u);
      done = trial.engine().Begin(large);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ErrorCode::kRefused);
      EXPECT_NE(done.error().message.find("a unit has 9 examples"), std::string::npos)
          << done.error().message;
    }
  }
}

TEST_F(ClickEngineTest, RefusesWhatHasNoFormForAGpu) {
  if (device_ == nullptr) return;
  const auto click = TrialLearner({});
  const RowSpace& space = click.model.space;
  WorkerPool workers{WorkerPool::Options{}};
  const auto backend = ops::MakeReferenceBackend();
  TrialRows rows(click, *backend, workers);
  EngineNoise noise(1);
  const auto message = [&](std::unique_ptr<mechanism::RowSelector> selector,
                           std::unique_ptr<mechanism::Clipper> clipper) {
    const auto mechanism = mechanism::MakePrivateStep(
        space, std::move(selector), std::move(clipper), {.sigma_gradient = 1, .expected_batch = 8});
    const auto engine = MakeDeviceClickEngine(*device_, {.click = {click.model, click.optimizer}},
                                              *mechanism, noise, rows.rows(), {});
    EXPECT_FALSE(engine);
    return engine ? "" : engine.error().message;
  };
  const char* const kRefusal = "this mechanism has no form for a GPU";
  EXPECT_NE(message(mechanism::MakeExponentialRows(space, {.rows = 3, .epsilon = 1, .clip = 1}),
                    mechanism::MakeFlatClipper(1, 1))
                .find(kRefusal),
            std::string::npos);
  EXPECT_NE(message(mechanism::MakeAllRows(),
                    mechanism::MakeQuantileClipper({.sigma_query = 4, .expected_batch = 8}, 1))
                .find(kRefusal),
            std::string::npos);
}

}  // namespace
}  // namespace tacit::cuda::testing
