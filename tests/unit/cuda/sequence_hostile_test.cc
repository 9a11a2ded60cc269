// A unit whose logits are no numbers, or the largest: it is dropped, or adds a sum that is clipped
// as any other's. On the device and on the CPU, by what one unit moves a step.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/cuda/attention_trial.h"
#include "unit/cuda/sequence_trial.h"

namespace tacit::cuda::testing {
namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

class SequenceHostileTest : public SequenceTrial {
 protected:
  static constexpr double kRate = 0.5, kClip = 0.4;

  static train::SequenceTrainingOptions Hostile(const SequenceOptions& model, bool corrected) {
    auto training = corrected ? CorrectedTraining(model) : cuda::testing::Training(model);
    training.schedule = {.steps = 20};
    training.optimizer.learning_rate = kRate;
    training.privacy.clip_norm = kClip;
    return training;
  }
  // An item that no one but the first unit reads.
  static Units UnitsOf(const SequenceOptions& model, bool with_first) {
    Units units(model, 6, 6);
    for (auto& history : units.histories())
      for (uint32_t& item : history) item %= model.catalogue - 1;
    units.histories()[0] = {3, model.catalogue - 1, 4, 5};
    if (!with_first) units.histories()[0].clear();
    return units;
  }
  std::vector<float> StepFrom(const train::SequenceTrainingOptions& training,
                              const std::vector<float>& parameters, bool with_first,
                              bool on_device) {
    const auto stepper = on_device ? OnTheDevice(training) : OnTheHost(training);
    stepper->Resume(parameters, StateOf(*stepper).optimizer, 0);
    const Units units = UnitsOf(training.model, with_first);
    train::SequenceStepReport report;
    if (on_device)
      EXPECT_TRUE(stepper->Step(units, &report));
    else
      HostStep(*stepper, units);
    return StateOf(*stepper).parameters;
  }
  // Returns how far the first unit moves a step, as a share of what its clip allows. What was
  // finite stays so, or it is infinitely far.
  double Moved(const train::SequenceTrainingOptions& training, const std::vector<float>& from,
               bool on_device) {
    const auto with = StepFrom(training, from, true, on_device);
    const auto without = StepFrom(training, from, false, on_device);
    double squared = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      // The step of what is no number, or larger than a step, is lost in it.
      if (!(std::abs(from[i]) < 1e3f)) continue;
      if (!std::isfinite(with[i]) || !std::isfinite(without[i])) return INFINITY;
      squared += std::pow(double{with[i]} - without[i], 2);
    }
    return std::sqrt(squared) / (kRate * kClip / training.expected_batch);
  }
  void ExpectBounded(const train::SequenceTrainingOptions& training, const std::string& what) {
    const auto host = OnTheHost(training);
    const State state = StateOf(*host);
    const model::SequenceLayout layout(training.model);
    for (const bool on_device : {true, false}) {
      SCOPED_TRACE(what + (on_device ? ", on the device" : ", on the CPU"));
      EXPECT_LE(Moved(training, state.parameters, on_device), 1.001);
      // A clip that is longer shows.
      auto looser = training;
      looser.privacy.clip_norm = 1.1 * kClip;
      EXPECT_GT(Moved(looser, state.parameters, on_device), 1.05);
      const auto poison = [&](size_t at, const char* where) {
        for (const float number : {kNoNumber, kInfinite, 3e38f}) {
          auto parameters = state.parameters;
          parameters[at] = number;
          EXPECT_LE(Moved(training, parameters, on_device), 1.001) << number << " in " << where;
        }
      };
      // The first unit alone has read the last item. It is everybody's among those to predict.
      const size_t last = training.model.catalogue - 1, width = training.model.width;
      poison(layout.items().offset + last * width + 1, "an item that is read");
      poison(layout.output().offset + last * width + 1, "an item to predict");
      poison(layout.item_bias().offset + last, "an item's bias");
      poison(layout.positions().offset + 2 * width, "a position");
    }
  }
};

TEST_F(SequenceHostileTest, AUnitMovesAStepByNoMoreThanItsClip) {
  if (device_ == nullptr) return;
  for (const auto precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
    for (const bool corrected : {false, true}) {
      const bool through_tiles = precision == ops::Precision::kBf16;
      if (!through_tiles && (corrected || kThreadsAreDear)) continue;
      SequenceOptions model = SmallModel();
      model.tied = false;
      model.item_bias = true;
      model.precision = precision;
      ExpectBounded(Hostile(model, corrected),
                    std::string(through_tiles ? "bf16" : "f32") + (corrected ? ", corrected" : ""));
    }
  }
}

class AttentionHostileTest : public AttentionTrial {};

// Other crops have the bits that they have beside numbers.
TEST_F(AttentionHostileTest, WhatIsNoNumberStaysInItsCrop) {
  if (device_ == nullptr) return;
  for (const bool corrected : {false, true}) {
    const AttentionCase of{{5, 70, 33}, 1, 20, corrected};
    const auto numbers = RandomAttention(of, 8);
    const AttentionResults want = Run(of, numbers);
    for (const float number : {kNoNumber, kInfinite, -kInfinite, 3e38f}) {
      auto hostile = numbers;
      // A query, a key and a value of the middle crop, and a gradient of its last row.
      hostile.qkv[(5 + 11) * 60 + 3] = number;
      hostile.qkv[(5 + 30) * 60 + 20 + 3] = number;
      hostile.qkv[(5 + 66) * 60 + 40 + 3] = number;
      hostile.grad[(5 + 69) * 20] = number;
      const AttentionResults got = Run(of, hostile);
      const auto expect_same = [&](const std::vector<double>& a, const std::vector<double>& b,
                                   size_t each) {
        for (size_t i = 0; i < a.size(); ++i)
          if (i / each < 5 || i / each >= 75) {
            ASSERT_EQ(a[i], b[i]) << number << ", row " << i / each;
          }
      };
      expect_same(got.out, want.out, 20);
      expect_same(got.qkv_grad, want.qkv_grad, 60);
      expect_same(got.variance, want.variance, 20);
    }
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
