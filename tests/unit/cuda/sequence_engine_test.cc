// The sequence engine's step against the CPU's stepper, with the same noise: what noise alone moves
// bit for bit, sums within the order in which floats are added; and the same bits for any
// order of turns, and however a step is cut into waves.
#include "cuda/learn/sequence_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "model/carriers/carriers.h"
#include "unit/cuda/sequence_trial.h"

namespace tacit::cuda::testing {
namespace {

class SequenceEngineTest : public SequenceTrial {
 protected:
  void Compare(
      const train::SequenceTrainingOptions& training, double relative, double each,
      const std::function<void(uint64_t step)>& before_step = [](uint64_t) {}) {
    if (device_ == nullptr) return;
    const SequenceGap gap = Measure(training, before_step);
    EXPECT_FALSE(gap.counts_differ);
    EXPECT_LE(gap.loss, relative);
    EXPECT_LE(gap.relative, relative);
    EXPECT_LE(gap.each, each);
    EXPECT_LE(gap.state, each);
    EXPECT_GT(gap.clipped, 0u);
  }
};

TEST_F(SequenceEngineTest, NormsBehindSums) { Compare(Training(SmallModel()), 1e-4, 3e-6); }
TEST_F(SequenceEngineTest, NormsBeforeBranches) {
  SequenceOptions model = SmallModel();
  model.norm = SequenceOptions::Norm::kPre;
  model.item_bias = true;
  Compare(Training(model), 1e-4, 3e-6);
}
TEST_F(SequenceEngineTest, TablesOfTheirOwn) {
  SequenceOptions model = SmallModel();
  model.tied = false;
  model.item_bias = true;
  model.mean_loss = false;
  Compare(Training(model), 1e-4, 3e-6);
}
TEST_F(SequenceEngineTest, NormalisedUnits) {
  auto training = Training(SmallModel());
  training.privacy.clip = train::SequenceGuard::Clip::kNormalised;
  training.model.last_position_only = true;
  Compare(training, 1e-4, 3e-6);
}
// Items come again in short histories, as targets too.
TEST_F(SequenceEngineTest, MaskedItems) {
  SequenceOptions model = SmallModel();
  model.mask_seen = true;
  model.item_bias = true;
  model.catalogue = 7;
  Compare(Training(model), 1e-4, 3e-6);
}
TEST_F(SequenceEngineTest, PriorOfSingleItems) {
  SequenceOptions model = SmallModel();
  model.mask_seen = true;
  model::ItemLogits prior(model.catalogue);
  auto training = Training(model);
  training.prior = &prior;
  Compare(training, 1e-4, 3e-6, [&](uint64_t step) { prior.Set(Logits(model.catalogue, step)); });
}
TEST_F(SequenceEngineTest, PriorOfPairs) {
  SequenceOptions model = SmallModel();
  model.item_bias = true;
  model::DecayedLogits prior(model.catalogue, 0.6);
  auto training = Training(model);
  training.prior = &prior;
  // The prior is zeros at first, and each later one stays for two steps.
  Compare(training, 1e-4, 3e-6, [&](uint64_t step) {
    if (step % 2 == 1) prior.Set(Logits(size_t{model.catalogue} * model.catalogue, step));
  });
}
TEST_F(SequenceEngineTest, CorrectedAttention) {
  for (const auto norm : {SequenceOptions::Norm::kPost, SequenceOptions::Norm::kPre}) {
    SequenceOptions model = SmallModel();
    model.norm = norm;
    auto training = CorrectedTraining(model);
    Compare(training, 1e-4, 1e-5);
    // Some corrections are longer than this.
    training.model.re_attention.most = 0.1f;
    Compare(training, 1e-4, 1e-5);
  }
}
TEST_F(SequenceEngineTest, DroppedNumbers) {
  SequenceOptions model = SmallModel();
  model.dropout = 0.2f;
  Compare(Training(model), 1e-4, 3e-6);
  // Variances are dropped from twice.
  model.re_attention = {.kappa = 0.5f, .most = 2};
  auto training = Training(model);
  training.privacy.sigma = 0.05;
  Compare(training, 1e-4, 1e-5);
}
TEST_F(SequenceEngineTest, SmoothedLabels) {
  SequenceOptions model = SmallModel();
  model.label_smoothing = 0.2f;
  Compare(Training(model), 1e-4, 3e-6);
  model.item_bias = true;
  model.tied = false;
  Compare(Training(model), 1e-4, 3e-6);
}
TEST_F(SequenceEngineTest, AdamWithAnAverage) {
  auto training = Training(SmallModel());
  training.optimizer.kind = train::OptimizerNamed("adam");
  training.optimizer.learning_rate = 0.01f;
  training.optimizer.epsilon = 1e-3f;
  training.optimizer.average_decay = 0.9;
  Compare(training, 1e-3, 2e-5);
}
// The order of sums rounds some factors the other way. That moves a step by less than half of what
// rounding itself does, but where a ReLU's input changes its sign.
class Bf16Test : public SequenceEngineTest {
 protected:
  void ExpectNearer(train::SequenceTrainingOptions training);
};
TEST_F(Bf16Test, IsNearerToTheCpusThanF32) { ExpectNearer(Training(SmallModel())); }
TEST_F(Bf16Test, CorrectedIsNearerToTheCpusThanF32) {
  ExpectNearer(CorrectedTraining(SmallModel()));
}
void Bf16Test::ExpectNearer(train::SequenceTrainingOptions training) {
  if (device_ == nullptr) return;
  training.model.precision = ops::Precision::kBf16;
  auto exactly = training;
  exactly.model.precision = ops::Precision::kF32;
  int near = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto host = OnTheHost(training), exact = OnTheHost(exactly);
    const auto device = OnTheDevice(training, 40);
    const Units units(training.model, 9, seed);
    HostStep(*host, units);
    HostStep(*exact, units);
    train::SequenceStepReport report;
    ASSERT_TRUE(device->Step(units, &report));
    double apart = 0, rounded = 0;
    const State got = StateOf(*device);
    for (size_t i = 0; i < host->parameters().size(); ++i) {
      apart += std::pow(got.parameters[i] - host->parameters()[i], 2);
      rounded += std::pow(exact->parameters()[i] - host->parameters()[i], 2);
    }
    EXPECT_GT(rounded, 0);
    near += std::sqrt(apart) < std::sqrt(rounded) / 2;
  }
  EXPECT_GE(near, 4);
}

TEST_F(SequenceEngineTest, NoiseAloneIsTheCpusBitForBit) {
  if (device_ == nullptr) return;
  for (const char* optimizer : {"sgd", "adam", "adam-bc"}) {
    auto training = Training(SmallModel());
    training.optimizer.kind = train::OptimizerNamed(optimizer);
    const auto host = OnTheHost(training), device = OnTheDevice(training);
    for (int step = 0; step < 3; ++step) {
      const Units nobody(training.model, 0, 1);
      HostStep(*host, nobody);
      train::SequenceStepReport report;
      ASSERT_TRUE(device->Step(nobody, &report));
      ASSERT_EQ(StateOf(*device), StateOf(*host)) << optimizer << ", step " << step;
    }
  }
}

// A unit adds the same in every bit, alone in its wave or beside others.
TEST_F(SequenceEngineTest, BitsDoNotDependOnWavesOrTurns) {
  if (device_ == nullptr) return;
  for (const auto precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
    SequenceOptions model = SmallModel();
    model.precision = precision;
    model.mask_seen = true;
    model.dropout = 0.1f;
    model.re_attention.kappa = 1;
    const Units units(model, 7, 4);
    State first;
    for (int order = 0; order < Orders(); ++order) {
      NextOrder(order);
      const auto device = OnTheDevice(Training(model), order % 4 == 1 ? 1 : 10 * (1 + order));
      train::SequenceStepReport report;
      ASSERT_TRUE(device->Step(units, &report));
      const State got = StateOf(*device);
      if (order == 0) first = got;
      ASSERT_EQ(got, first) << "order " << order;
    }
  }
}

// The same where matrices between products are of bf16, and however many logits are formed at a
// time.
TEST_F(SequenceEngineTest, BitsDoNotDependOnPiecesOfLogits) {
  if (device_ == nullptr) return;
  for (const auto precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
    SequenceOptions model = SmallModel();
    model.precision = precision;
    const Units units(model, 7, 4);
    State first;
    for (const uint32_t logit_rows : {0u, 1u, 3u, 16u}) {
      NextOrder(static_cast<int>(logit_rows));
      const auto device = OnTheDevice(Training(model), logit_rows == 3 ? 20 : 1000, logit_rows);
      train::SequenceStepReport report;
      ASSERT_TRUE(device->Step(units, &report));
      const State got = StateOf(*device);
      if (logit_rows == 0) first = got;
      ASSERT_EQ(got, first) << logit_rows << " rows at a time";
    }
  }
}

TEST_F(SequenceEngineTest, GoesOnFromAStoredState) {
  if (device_ == nullptr) return;
  auto training = Training(SmallModel());
  training.optimizer.kind = train::OptimizerNamed("adam");
  const Units units(training.model, 6, 5);
  const auto host = OnTheHost(training);
  HostStep(*host, units);
  HostStep(*host, units);
  const State stored = StateOf(*host);
  const auto device = OnTheDevice(training);
  device->Resume(stored.parameters, stored.optimizer, 2);
  const Units nobody(training.model, 0, 1);
  train::SequenceStepReport report;
  ASSERT_TRUE(device->Step(nobody, &report));
  EXPECT_EQ(report.step, 2u);
  // The device's source begins with the first key again.
  auto& noise = static_cast<ReplayedNoise&>(*host->noise());
  noise.SetKey(KeyOfStep(0));
  noise.WillDrawDense(stored.parameters.size(), host->EngineOptions().recipe.grid.stddev);
  ASSERT_TRUE(host->Step(nobody, &report));
  EXPECT_EQ(StateOf(*device), StateOf(*host));
}

// The host goes on while the device works on a step: it packs the next units, settles or not,
// abandons steps, takes one of nobody, and other variances come.
TEST_F(SequenceEngineTest, BitsDoNotDependOnWhenStepsAreSettled) {
  if (device_ == nullptr) return;
  const auto training = CorrectedTraining(SmallModel());
  std::vector<float> shares(training.model.catalogue, 0.3f);
  std::optional<State> first;
  std::vector<train::SequenceStepReport> reports;
  for (int order = 0; order < std::max(Orders(), 6); ++order) {
    NextOrder(order);
    // Many waves, one, and waves of a few units each.
    const auto device = OnTheDevice(training, order % 3 == 0 ? 1 : order % 3 == 1 ? 1000 : 40);
    for (uint64_t step = 0; step < 7; ++step) {
      if (step == 3) device->SetItemShare(shares);
      if (step == 4 && order % 2 == 0) {
        ASSERT_TRUE(device->GradientOf(Units(training.model, 11, 99)));
      }
      train::SequenceStepReport report;
      ASSERT_TRUE(device->Step(Units(training.model, step % 4 == 2 ? 0 : 9, step), &report));
      if (order == 0) {
        reports.push_back(report);
      } else {
        EXPECT_EQ(report.loss, reports[step].loss);
        EXPECT_EQ(report.units_clipped, reports[step].units_clipped);
      }
      if (order % 4 == 1) {
        ASSERT_TRUE(device->Settle());
      }
    }
    const State got = StateOf(*device);
    if (!first) first = got;
    ASSERT_EQ(got, *first) << "order " << order;
  }
}

// A unit without a finite norm adds nothing, on either side, and the others what they add.
TEST_F(SequenceEngineTest, UnitsWithoutANormAreLeftOut) {
  if (device_ == nullptr) return;
  SequenceOptions model = SmallModel();
  model.tied = false;
  const auto training = Training(model);
  const auto host = OnTheHost(training), device = OnTheDevice(training);
  // An item that no one but the first unit reads.
  Units units(model, 6, 6);
  for (auto& history : units.histories())
    for (uint32_t& item : history) item %= model.catalogue - 1;
  units.histories()[0] = {3, model.catalogue - 1, 4, 5};
  State state = StateOf(*host);
  const model::SequenceLayout layout(model);
  state.parameters[layout.items().offset + (model.catalogue - 1) * model.width] = 3e38f;
  host->Resume(state.parameters, state.optimizer, 0);
  device->Resume(state.parameters, state.optimizer, 0);
  HostStep(*host, units);
  train::SequenceStepReport report;
  ASSERT_TRUE(device->Step(units, &report));
  const State after = StateOf(*device);
  for (size_t i = 0; i < state.parameters.size(); ++i) {
    const float got = after.parameters[i], want = host->parameters()[i];
    ASSERT_TRUE(got == want || std::abs(got - want) <= 3e-6) << "number " << i;
    ASSERT_TRUE(std::isfinite(got));
  }
}

TEST_F(SequenceEngineTest, RefusesByNameWhatHasNoFormForAGpu) {
  if (device_ == nullptr) return;
  const auto message = [&](const auto& change) {
    auto training = Training(SmallModel());
    change(training);
    const train::SequenceStepper stepper(training, privacy::Draw{}, *backend_,
                                         std::make_unique<EngineNoise>(9));
    EngineNoise noise(9);
    const auto engine =
        MakeDeviceSequenceEngine(*device_, {.sequence = stepper.EngineOptions()}, noise);
    EXPECT_FALSE(engine);
    return engine ? std::string() : engine.error().message;
  };
  using Training = train::SequenceTrainingOptions;
  const auto expect = [&](const char* what, const std::string& got) {
    EXPECT_EQ(got.find(what), 0u) << got;
    EXPECT_NE(got.find("set gpu.use to never"), std::string::npos) << got;
  };
  expect("a recurrent encoder", message([](Training& t) {
           t.model.encoder = SequenceOptions::Encoder::kGru;
           t.model.feed_forward = 0;
         }));
  expect("sampled negatives", message([](Training& t) { t.model.negatives = 4; }));
  expect("a sum by low-rank factors",
         message([](Training& t) { t.sum_map = model::CarriersOf({}); }));
  expect("training without privacy", message([](Training& t) { t.privacy.on = false; }));
}

}  // namespace
}  // namespace tacit::cuda::testing
