// A click learner whose dense sum is that of low-rank carriers: noise on every number of it, an
// update along public directions alone, and the same carriers after a restart.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "carried_update.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/click/click_learner.h"
#include "train/click/memory_rows.h"

namespace tacit::train {
namespace {

using carried::BeyondPublic;
using carried::NoiseOf;
using carried::NoiseSeen;
using Source = model::CarrierOptions::Source;

constexpr double kCarriedClip = 0.5, kCarriedSigma = 2, kCarriedBatch = 8;
constexpr uint32_t kRank = 4;
const std::atomic<bool> kNeverAbandon = false;

// A learner by SGD at rate 1, so that its update is what the model moves by.
struct CarrierTrial {
  ClickOptions options;
  model::CarrierOptions how;
  WorkerPool workers{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend = ops::MakeCpuBackend(workers);
  std::unique_ptr<MemoryRows> rows;
  std::unique_ptr<ClickLearner> learner;

  explicit CarrierTrial(std::unique_ptr<noise::NoiseSource> noise,
                        const model::CarrierOptions& carriers = {.rank = kRank},
                        const store::DenseState* resume = nullptr, uint64_t steps_taken = 0) {
    options.id = "ctr";
    options.index = LearnerIndex(0);
    options.model.space.AddTable("a", 300, 3);
    options.model.dense_width = 21;
    options.model.hidden = {32, 40};
    options.optimizer = {.kind = OptimizerNamed("sgd"), .learning_rate = 1, .row_learning_rate = 1};
    options.sum_map = model::CarriersOf(carriers);
    how = carriers;
    rows = std::make_unique<MemoryRows>(MakeRowLayout(options, Model()));
    learner = std::make_unique<ClickLearner>(
        options,
        mechanism::MakePrivateStep(
            options.model.space, mechanism::MakeAllRows(),
            mechanism::MakeFlatClipper(kCarriedClip, kCarriedSigma),
            {.sigma_gradient = kCarriedSigma, .expected_batch = kCarriedBatch}),
        std::move(noise), *backend, *rows, resume, steps_taken);
  }
  model::Pctr Model() const { return model::Pctr(options.model, *backend); }
  // Layers: 24 x 32, 32 x 40, 40 x 1; the last has no carriers.
  static constexpr model::Carriers::Weights kMatrices[] = {{24, 32, 0}, {32, 40, 25 * 32}};

  std::vector<float> Step(const stream::StepBatch& step) {
    const auto before = learner->CopyDense();
    StepReport report;
    const auto taken = learner->TakeStep(step, kNeverAbandon, &report);
    EXPECT_TRUE(taken && *taken);
    const auto after = learner->CopyDense();
    std::vector<float> moved(after->parameters.size());
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] = before->parameters[i] - after->parameters[i];
    return moved;
  }
  // The carriers that the next step must have, by public values alone.
  std::unique_ptr<model::Carriers> Public(uint64_t step) const {
    const model::Pctr model = Model();
    auto carriers = std::make_unique<model::Carriers>(
        how, model.Matrices(), model.InitialDense(options.seed), options.seed, *backend);
    EXPECT_TRUE(carriers->Choose(step, learner->CopyDense()->parameters));
    return carriers;
  }
};

stream::StepBatch BatchOf(size_t events, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  stream::StepBatch step;
  step.examples.dense_width = 21;
  step.examples.slots = 1;
  step.ranges = {{0, 0, 8}};
  for (size_t i = 0; i < events; ++i) {
    step.examples.offset.push_back(i);
    step.examples.timestamp_ms.push_back(0);
    step.examples.label.push_back(static_cast<float>(random() % 2));
    for (int d = 0; d < 21; ++d) step.examples.dense.push_back(normal(random));
    step.examples.row.push_back(random() % 300);
    step.examples.slot_end.push_back(static_cast<uint32_t>(i + 1));
    step.unit_of.push_back(static_cast<uint32_t>(i));
  }
  step.units = events;
  return step;
}

TEST(CarrierLearner, EveryNumberOfTheSumHasItsNoiseAndANumberWithoutIsFoundOut) {
  const double variance = std::pow(kCarriedClip * kCarriedSigma / kCarriedBatch, 2);
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    CarrierTrial trial(std::make_unique<noise::FixedNoise>(1), {.source = source, .rank = kRank});
    NoiseSeen mean;
    constexpr int kSteps = 20;
    for (int step = 0; step < kSteps; ++step) {
      const auto carriers = trial.Public(static_cast<uint64_t>(step));
      const auto update = trial.Step(BatchOf(0, 1));
      mean.Add(NoiseOf(update, *carriers, CarrierTrial::kMatrices, variance), 1.0 / kSteps);
    }
    // 20 * 200 numbers each, and 1,440 biases: 8 deviations.
    EXPECT_NEAR(mean.left, 1, 8 * std::sqrt(2.0 / (kSteps * 192)));
    EXPECT_NEAR(mean.right, 1, 8 * std::sqrt(2.0 / (kSteps * 288)));
    EXPECT_NEAR(mean.biases, 1, 8 * std::sqrt(2.0 / (kSteps * 72)));
    EXPECT_TRUE(mean.Right());
  }
  // Planted: dR of the second layer, or dL, gets none.
  CarrierTrial trial(std::make_unique<noise::SilentNoise>());
  const auto carriers = trial.Public(0);
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal(0, static_cast<float>(std::sqrt(variance)));
  for (const int planted : {0, 1, 2}) {
    std::vector<float> sum(carriers->sum_size());
    for (float& x : sum) x = normal(random);
    const size_t at = carriers->PlaceOf(CarrierTrial::kMatrices[1].offset);
    if (planted == 1) std::fill_n(sum.begin() + at + 32 * kRank, kRank * 40, 0.0f);
    if (planted == 2) std::fill_n(sum.begin() + at, 32 * kRank, 0.0f);
    const auto update = carriers->Expand(sum);
    ASSERT_TRUE(update);
    EXPECT_EQ(NoiseOf(*update, *carriers, CarrierTrial::kMatrices, variance).Right(), planted == 0)
        << planted;
  }
}

TEST(CarrierLearner, DirectionsArePublicWhateverIsInTheBatchAndThoseOfAGradientAreFoundOut) {
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    const model::CarrierOptions options{.source = source, .rank = kRank, .warm_up_steps = 2};
    CarrierTrial trial(std::make_unique<noise::SilentNoise>(), options);
    for (uint64_t step = 0; step < 6; ++step) {
      const auto carriers = trial.Public(step);
      const auto update = trial.Step(BatchOf(6, step));
      // Parameters are floats, and the update is a difference of them.
      EXPECT_LT(BeyondPublic(update, *carriers, CarrierTrial::kMatrices), 1e-4) << "step " << step;
    }
    // Planted: carriers from the gradient of the batch itself.
    const auto carriers = trial.Public(6);
    CarrierTrial full(std::make_unique<noise::SilentNoise>(), options);
    full.options.sum_map = {};
    const auto gradient = full.Step(BatchOf(6, 77));
    std::vector<float> moved = full.Model().InitialDense(full.options.seed);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += gradient[i];
    const model::Pctr model = full.Model();
    model::Carriers raw({.rank = kRank}, model.Matrices(), model.InitialDense(1), 1, *full.backend);
    ASSERT_TRUE(raw.Choose(6, moved));
    const std::vector<float> sum(raw.sum_size(), 1.0f);
    const auto update = raw.Expand(sum);
    ASSERT_TRUE(update);
    EXPECT_GT(BeyondPublic(*update, *carriers, CarrierTrial::kMatrices), 0.3);
  }
}

// Steps 0 to 7, the first three of them before a restart; 4 of warm-up.
std::vector<float> AfterARestart(uint64_t told_steps, const model::CarrierOptions& carriers) {
  auto trial = std::make_unique<CarrierTrial>(std::make_unique<noise::SilentNoise>(), carriers);
  for (uint64_t step = 0; step < 3; ++step) trial->Step(BatchOf(6, step));
  const auto stored = trial->learner->CopyDense();
  if (told_steps != ~uint64_t{0})
    trial = std::make_unique<CarrierTrial>(std::make_unique<noise::SilentNoise>(), carriers,
                                           stored.get(), told_steps);
  // The rows are drawn anew by the second; events without them make it no difference.
  for (uint64_t step = 3; step < 8; ++step) {
    auto batch = BatchOf(6, step);
    batch.examples.row.clear();
    std::fill(batch.examples.slot_end.begin(), batch.examples.slot_end.end(), 0);
    trial->Step(batch);
  }
  return trial->learner->CopyDense()->parameters;
}

TEST(CarrierLearner, ARestartMakesNoDifferenceAndALostStepCountIsFoundOut) {
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    const model::CarrierOptions carriers{.source = source, .rank = kRank, .warm_up_steps = 4};
    const auto whole = AfterARestart(~uint64_t{0}, carriers);
    EXPECT_EQ(AfterARestart(3, carriers), whole);
    EXPECT_NE(AfterARestart(0, carriers), whole);
  }
}

TEST(CarrierLearner, AStepCostsWhatItCostsWithout) {
  CarrierTrial with(std::make_unique<noise::SilentNoise>());
  const privacy::Charge charge = with.learner->charge();
  EXPECT_EQ(charge.noise_multiplier, kCarriedSigma);
  EXPECT_EQ(charge.clip_gradient, kCarriedClip);
  EXPECT_EQ(charge.mechanism, privacy::MechanismKind::kDpSgd);
}

}  // namespace
}  // namespace tacit::train
