#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/parts/row_places.h"
#include "cuda/kernels/rows/ranks.h"
#include "train/optimizer/optimizer_math.h"

// A step's last kernels: from sums on the grid, by noise, to the update G and the new parameters,
// in one go. Nothing that is not noised is ever where a released number is read: numbers whose
// kernel does not run have not moved. finish.cu draws noise: the linker decides which file that is,
// as for noise.h.
namespace tacit::cuda {

// A query's grid, and the factor of its release: G = factor * step * (whole steps + noise).
struct GridRelease {
  double step = 0;
  double stddev = 0;  // of the noise, in steps
  double factor = 0;
};

// The rule of an optimiser in one step, by its numbers (train/optimizer/optimizer.h).
struct OptimizerRule {
  enum class Kind : uint32_t { kSgd, kMomentum, kAdagrad, kAdam, kCorrectedAdam };
  Kind kind = Kind::kSgd;
  float rate = 0, row_rate = 0, momentum = 0;
  float beta1 = 0, beta2 = 0, epsilon = 0;
  train::AdamNumbers adam = {};                // dense parameters', for kAdam
  train::CorrectedAdamNumbers corrected = {};  // dense parameters', for kCorrectedAdam
  uint32_t step = 1;                           // counts from 1
  double power1 = 0, power2 = 0;               // beta1^step, beta2^step
  bool lazy = false;                           // rows' moments decay at the learner's steps
  // The moving average of the weights: 0 or its decay, the decay's logarithm, and what remains of
  // the average in this step (MovingAverage::Keep).
  double average_decay = 0, log_average_decay = 0;
  float average_keep = 0;
};

// The dense parameters with their state, one number each; empty where the rule keeps none.
struct DenseParameters {
  DeviceSpan<float> weights = {};
  DeviceSpan<float> first = {};   // momentum's u, Adagrad's s, Adam's m
  DeviceSpan<float> second = {};  // Adam's v
  DeviceSpan<float> average = {};
};

// The numbers [begin, end) of the flat dense vector. Both are multiples of 16, except the vector's
// end: no place of noise is in two parts.
struct DensePart {
  uint64_t begin = 0, end = 0;
};

// Adds the noise of NoiseQuery::kDense (number i at place i / 16) to a part of the sums, which are
// whole steps, and moves those parameters. The rule is read in device memory: it differs from step
// to step.
Status FinishDense(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                   DeviceSpan<const OptimizerRule> rule, const DensePart& part,
                   DeviceSpan<const int64_t> sums, const DenseParameters& parameters);

// The rows' sums on the grid, `stride` numbers each.
struct RowSums {
  DeviceSpan<const int64_t> sums = {};
  uint32_t stride = 0;
  // Places of keystream for a row, the same for all tables: enough for the longest row. So no two
  // rows share their noise.
  uint32_t places = 0;
};

// The rows that a step writes: row[i], in the place name[i], for i < all[0].
struct WrittenRows {
  DeviceSpan<const uint32_t> row = {};
  DeviceSpan<const uint32_t> name = {};
  DeviceSpan<const uint32_t> with_sums = {};  // one number: how many of them have a sum
  DeviceSpan<const uint32_t> all = {};        // one number
  // Per name: becomes 1 where the kernel has written a noised row. If empty, nobody asks.
  DeviceSpan<uint8_t> changed = {};
};

// Steps these rows: sum i where i < with_sums[0], else a sum of zero; with the noise of
// NoiseQuery::kRows for the row's number. REQUIRES distinct rows, numbers below 2^48.
Status FinishRows(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                  DeviceSpan<const OptimizerRule> rule, const RowPlaces& places,
                  const WrittenRows& written, const RowSums& sums);
// Steps every row of the tables, whose names are their numbers: sum rank[owner[row]] where an entry
// of the step is the row's owner, else a sum of zero. `rank` is that of ListTouched.
Status FinishEveryRow(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                      DeviceSpan<const OptimizerRule> rule, const RowPlaces& places,
                      DeviceSpan<const uint32_t> owner, DeviceSpan<const uint32_t> rank,
                      const RowSums& sums);

}  // namespace tacit::cuda
