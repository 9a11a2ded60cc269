#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/vector.h"
#include "cuda/kernels/rows/finish.h"
#include "train/optimizer/optimizer_math.h"

// The optimiser's step on updates that are there, for the kernels that end a step: with noise
// (finish.cu) and without (finish_plain.cu). In an unnamed namespace, as all that is in kernels
// alone.
namespace tacit::cuda {
namespace {

// Numbers that a thread steps at a time: of the dense vector, or of a row.
inline constexpr int kStepNumbers = 16;
inline constexpr uint32_t kFinishBlock = 128;

TACIT_IN_KERNEL float Averaged(float weight, float keep, float average) {
  return keep == 0 ? weight : weight + keep * (average - weight);
}

template <class Sum>
void CheckPart(const DensePart& part, const DeviceSpan<const Sum>& sums,
               const DenseParameters& parameters) {
  TACIT_CHECK(parameters.weights.size == sums.size && part.begin <= part.end &&
              part.end <= sums.size);
  TACIT_CHECK(
      part.begin % kStepNumbers == 0 && (part.end % kStepNumbers == 0 || part.end == sums.size),
      "a place of noise in two parts");
}

// Steps four numbers, of which `count` are there.
TACIT_IN_KERNEL void StepFour(const OptimizerRule& rule, const DenseParameters& p, uint64_t i,
                              uint32_t count, const float* update) {
  using Kind = OptimizerRule::Kind;
  const bool has_first = p.first.size > 0, has_second = p.second.size > 0;
  Vector<float, 4> weight = LoadVector<4>(p.weights.data + i, count), first = {}, second = {};
  if (has_first) first = LoadVector<4>(p.first.data + i, count);
  if (has_second) second = LoadVector<4>(p.second.data + i, count);
  TACIT_UNROLL
  for (uint32_t j = 0; j < 4; ++j) {
    switch (rule.kind) {
      case Kind::kSgd:
        train::SgdNumber(update[j], rule.rate, weight.x[j]);
        break;
      case Kind::kMomentum:
        train::MomentumNumber(update[j], rule.rate, rule.momentum, weight.x[j], first.x[j]);
        break;
      case Kind::kAdagrad:
        train::AdagradNumber(update[j], rule.rate, rule.epsilon, weight.x[j], first.x[j]);
        break;
      case Kind::kAdam:
        rule.adam.Step(update[j], weight.x[j], first.x[j], second.x[j]);
        break;
      case Kind::kCorrectedAdam:
        rule.corrected.Step(update[j], weight.x[j], first.x[j], second.x[j]);
        break;
    }
  }
  StoreVector(weight, count, p.weights.data + i);
  if (has_first) StoreVector(first, count, p.first.data + i);
  if (has_second) StoreVector(second, count, p.second.data + i);
  if (p.average.size == 0) return;
  Vector<float, 4> average = LoadVector<4>(p.average.data + i, count);
  TACIT_UNROLL
  for (uint32_t j = 0; j < 4; ++j)
    average.x[j] = Averaged(weight.x[j], rule.average_keep, average.x[j]);
  StoreVector(average, count, p.average.data + i);
}

// A row with the place of its first noise, and its sums, or null.
struct Row {
  float* embedding;
  float* state;
  const int64_t* sums;
  uint64_t place;
  uint32_t dim, state_floats;
};

// MovingAverage::Keep.
TACIT_IN_KERNEL float KeepOf(const OptimizerRule& rule, uint32_t from, uint32_t to) {
  if (from == 0) return 0;
  if (from == to) return 1;
  const double log = rule.log_average_decay;
  return static_cast<float>(Exp((to - from) * log) * Expm1(from * log) / Expm1(to * log));
}

// The rates and state that the numbers of a row have in common in a step.
struct RowStep {
  bool has_moments = false;  // Adam's; else the numbers move by `rate`
  float rate = 0;
  train::AdamNumbers adam = {};
  bool averages = false;
  float keep = 0;  // of the average, for the steps since the last write
  // State that the row is left with, in the places that hold one number for all: Adagrad's s, or
  // the count of writes; and the step of the last write. If null, the row has none.
  float* shared = nullptr;
  float shared_after = 0;
  float* last = nullptr;
};

// `squared` is the sum of the updates' squares, for Adagrad alone.
TACIT_IN_KERNEL RowStep StepOf(const OptimizerRule& rule, const Row& row, double squared) {
  using Kind = OptimizerRule::Kind;
  RowStep step;
  step.averages = rule.average_decay > 0;
  if (rule.lazy || step.averages) step.last = row.state + row.state_floats - 1;
  const uint32_t last = step.last != nullptr ? __builtin_bit_cast(uint32_t, *step.last) : 0;
  if (step.averages) step.keep = KeepOf(rule, last, rule.step - 1);
  if (rule.kind == Kind::kSgd || rule.kind == Kind::kMomentum) {
    step.rate = rule.row_rate;
    return step;
  }
  if (rule.kind == Kind::kAdagrad) {
    step.shared = row.state;
    step.shared_after = row.state[0] + static_cast<float>(squared / static_cast<double>(row.dim));
    step.rate = rule.row_rate / (Sqrt(step.shared_after) + rule.epsilon);
    return step;
  }
  // The moments' weights: of the row's own writes, which it counts, or of the learner's steps since
  // its last one.
  step.has_moments = true;
  const auto at = [&](double power1, double power2) {
    return train::MakeAdamNumbers(rule.beta1, rule.beta2, rule.row_rate, rule.epsilon, power1,
                                  power2);
  };
  if (rule.lazy) {
    step.adam = at(rule.power1, rule.power2);
    step.adam.keep1 = static_cast<float>(Pow(rule.beta1, rule.step - last));
    step.adam.keep2 = static_cast<float>(Pow(rule.beta2, rule.step - last));
    return step;
  }
  step.shared = row.state + 2 * row.dim;
  const uint32_t count = __builtin_bit_cast(uint32_t, *step.shared) + 1;
  step.shared_after = __builtin_bit_cast(float, count);
  step.adam = at(Pow(rule.beta1, count), Pow(rule.beta2, count));
  return step;
}

// A part of a row's sums: 16 of its numbers, fewer in the last one; zeros where it has none.
TACIT_IN_KERNEL void SumsOf(const Row& row, uint32_t part, int64_t (&steps)[kStepNumbers]) {
  const uint32_t begin = part * kStepNumbers;
  TACIT_UNROLL
  for (uint32_t i = 0; i < kStepNumbers; ++i)
    steps[i] = row.sums != nullptr && begin + i < row.dim ? row.sums[begin + i] : 0;
}

TACIT_IN_KERNEL void StepPart(const OptimizerRule& rule, const RowStep& step, const Row& row,
                              uint32_t part, const float (&update)[kStepNumbers]) {
  TACIT_UNROLL
  for (uint32_t four = 0; four < kStepNumbers; four += 4) {
    const uint32_t begin = part * kStepNumbers + four;
    if (begin >= row.dim) break;
    const uint32_t count = row.dim - begin;
    float* const at = row.embedding + begin;
    float* const average_at = step.averages ? step.last - row.dim + begin : nullptr;
    Vector<float, 4> weight = LoadVector<4>(at, count), average = {};
    if (step.averages) {
      average = LoadVector<4>(average_at, count);
      TACIT_UNROLL
      for (uint32_t i = 0; i < 4; ++i)
        average.x[i] = Averaged(weight.x[i], step.keep, average.x[i]);
    }
    if (step.has_moments) {
      float* const first_at = row.state + begin;
      float* const second_at = first_at + row.dim;
      Vector<float, 4> first = LoadVector<4>(first_at, count);
      Vector<float, 4> second = LoadVector<4>(second_at, count);
      TACIT_UNROLL
      for (uint32_t i = 0; i < 4; ++i)
        step.adam.Step(update[four + i], weight.x[i], first.x[i], second.x[i]);
      StoreVector(first, count, first_at);
      StoreVector(second, count, second_at);
    } else {
      TACIT_UNROLL
      for (uint32_t i = 0; i < 4; ++i) train::SgdNumber(update[four + i], step.rate, weight.x[i]);
    }
    StoreVector(weight, count, at);
    if (!step.averages) continue;
    TACIT_UNROLL
    for (uint32_t i = 0; i < 4; ++i)
      average.x[i] = Averaged(weight.x[i], rule.average_keep, average.x[i]);
    StoreVector(average, count, average_at);
  }
}

// A row's threads: `group` neighbours, a power of two, of which this is number `mine`. Each has the
// parts mine, mine + group, ...
struct Share {
  uint32_t group, mine;
};
TACIT_IN_KERNEL uint32_t PartsOf(const Row& row) {
  return (row.dim + kStepNumbers - 1) / kStepNumbers;
}

// Adds up over the row's threads, in their order. All lanes take part.
TACIT_IN_KERNEL double SumOfGroup(const Share& share, double mine) {
  const uint32_t first = LaneIndex() - share.mine;
  double sum = 0;
  for (uint32_t i = 0; i < share.group; ++i) sum += Shuffle(mine, first + i);
  return sum;
}

// Steps a row, if it is `real`; update_of(part, update) makes the update of one of its parts, as
// often as it is asked. All lanes of the warp take part.
template <class UpdateOf>
TACIT_IN_KERNEL void StepRow(const OptimizerRule& rule, bool real, const Row& row,
                             const Share& share, const UpdateOf& update_of) {
  const uint32_t parts = real ? PartsOf(row) : 0;
  float update[kStepNumbers];
  double squared = 0;
  if (rule.kind == OptimizerRule::Kind::kAdagrad) {
    for (uint32_t part = share.mine; part < parts; part += share.group) {
      update_of(part, update);
      TACIT_UNROLL
      for (uint32_t i = 0; i < kStepNumbers; ++i)
        if (part * kStepNumbers + i < row.dim) squared += double{update[i]} * double{update[i]};
    }
    squared = SumOfGroup(share, squared);
  }
  const RowStep step = real ? StepOf(rule, row, squared) : RowStep();
  for (uint32_t part = share.mine; part < parts; part += share.group) {
    update_of(part, update);
    StepPart(rule, step, row, part, update);
  }
  // Others read what the row's numbers share until here.
  SyncWarp();
  if (!real || share.mine != 0) return;
  if (step.shared != nullptr) *step.shared = step.shared_after;
  if (step.last != nullptr) *step.last = __builtin_bit_cast(float, rule.step);
}

TACIT_IN_KERNEL Row RowOf(const RowPlaces& places, uint64_t row, uint32_t name, const RowSums& sums,
                          uint64_t sum) {
  const RowPlace at = PlaceOf(places, row, name);
  return {.embedding = at.embedding,
          .state = at.state,
          .sums = sum == kNone ? nullptr : sums.sums.data + sum * sums.stride,
          .place = row * sums.places,
          .dim = at.dim,
          .state_floats = at.state_floats};
}

// The threads of a row: one for each part of the longest, no more than a warp.
uint32_t GroupOf(const RowSums& sums) {
  return std::min(kWarp, static_cast<uint32_t>(std::bit_ceil(sums.places)));
}

const OptimizerRule* RuleOf(DeviceSpan<const OptimizerRule> rule) {
  TACIT_CHECK(rule.size == 1, "one rule");
  return rule.data;
}

}  // namespace
}  // namespace tacit::cuda
