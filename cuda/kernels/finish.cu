// Round, noise, optimiser. FinishDense: a thread 16 numbers; rows: a thread a row, which draws its
// noise 16 numbers at a time.
//   bytes:      dense 4 read for the sum and 8 for each of weight and state a number; rows 8 for a
//               sum (touched rows alone) and 8 for each float of the row
//   operations: 3,600 integer and 600 double for 16 numbers of noise, and some 10 a number for the
//               optimiser; Adagrad draws a row's noise twice, for its rate needs the whole row
// All are bound by ChaCha20, at 57 cycles of a multiprocessor for 16 numbers. Forecast: dense
// DP-SGD of 1e7 rows x 64 in 10.5 ms on 132 multiprocessors at 1.75 GHz, 93 % of the noise alone;
// 350,000 dense numbers in 6 us. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/finish.h"
#include "cuda/kernels/grid_draw.h"
#include "mechanism/nearest.h"
#include "noise/grid_gaussian.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;

struct Drawing {
  const NoiseKey* key;
  noise::GridScale noise;
  double per_step;  // 1 / step
  double scale;     // factor * step
};

// The update of 16 numbers from their sums in steps. Sums wrap, as on the CPU.
TACIT_IN_KERNEL void Update(const Drawing& drawing, NoiseQuery query, uint64_t place,
                            int64_t (&steps)[kNumbersPerPlace], float (&update)[kNumbersPerPlace]) {
  uint32_t words[kKeyWords];
  ReadKey(drawing.key, words);
  int64_t noise[kNumbersPerPlace];
  DrawPlace(words, static_cast<uint64_t>(query), place, drawing.noise, noise);
  TACIT_UNROLL
  for (int i = 0; i < kNumbersPerPlace; ++i) {
    const auto noisy =
        static_cast<int64_t>(static_cast<uint64_t>(steps[i]) + static_cast<uint64_t>(noise[i]));
    update[i] = static_cast<float>(mechanism::ToDouble(noisy) * drawing.scale);
  }
}

TACIT_IN_KERNEL float Averaged(float weight, float keep, float average) {
  return keep == 0 ? weight : weight + keep * (average - weight);
}

TACIT_IN_KERNEL void StepNumber(const OptimizerRule& rule, const DenseParameters& p, uint64_t i,
                                float update) {
  using Kind = OptimizerRule::Kind;
  float weight = p.weights[i];
  switch (rule.kind) {
    case Kind::kSgd:
      train::SgdNumber(update, rule.rate, weight);
      break;
    case Kind::kMomentum:
      train::MomentumNumber(update, rule.rate, rule.momentum, weight, p.first[i]);
      break;
    case Kind::kAdagrad:
      train::AdagradNumber(update, rule.rate, rule.epsilon, weight, p.first[i]);
      break;
    case Kind::kAdam:
      rule.adam.Step(update, weight, p.first[i], p.second[i]);
      break;
    case Kind::kCorrectedAdam:
      rule.corrected.Step(update, weight, p.first[i], p.second[i]);
      break;
  }
  p.weights[i] = weight;
  if (p.average.size > 0) p.average[i] = Averaged(weight, rule.average_keep, p.average[i]);
}

TACIT_IN_KERNEL int64_t InSteps(float sum, double per_step) {
  return mechanism::Nearest(sum * per_step);
}
TACIT_IN_KERNEL int64_t InSteps(int64_t sum, double) { return sum; }

template <class Sum>
TACIT_KERNEL DenseKernel(Drawing drawing, const OptimizerRule* at_rule, DeviceSpan<const Sum> sums,
                         DenseParameters parameters) {
  const uint64_t place = GlobalThread(), first = place * kNumbersPerPlace;
  if (first >= sums.size) return;
  const OptimizerRule rule = *at_rule;
  int64_t steps[kNumbersPerPlace];
  float update[kNumbersPerPlace];
  TACIT_UNROLL
  for (int i = 0; i < kNumbersPerPlace; ++i)
    steps[i] = first + i < sums.size ? InSteps(sums[first + i], drawing.per_step) : 0;
  Update(drawing, NoiseQuery::kDense, place, steps, update);
  TACIT_UNROLL
  for (int i = 0; i < kNumbersPerPlace; ++i)
    if (first + i < sums.size) StepNumber(rule, parameters, first + i, update[i]);
}

// A row with the place of its first noise, and its sums, or null.
struct Row {
  float* embedding;
  float* state;
  const int64_t* sums;
  uint64_t place;
  uint32_t dim, state_floats;
};

// Calls body(column, update) for each number of the row.
template <class Body>
TACIT_IN_KERNEL void ForUpdate(const Drawing& drawing, const Row& row, const Body& body) {
  for (uint32_t begin = 0; begin < row.dim; begin += kNumbersPerPlace) {
    int64_t steps[kNumbersPerPlace];
    float update[kNumbersPerPlace];
    TACIT_UNROLL
    for (int i = 0; i < kNumbersPerPlace; ++i)
      steps[i] = row.sums != nullptr && begin + i < row.dim ? row.sums[begin + i] : 0;
    Update(drawing, NoiseQuery::kRows, row.place + begin / kNumbersPerPlace, steps, update);
    TACIT_UNROLL
    for (int i = 0; i < kNumbersPerPlace; ++i)
      if (begin + i < row.dim) body(begin + i, update[i]);
  }
}

// MovingAverage::Keep.
TACIT_IN_KERNEL float KeepOf(const OptimizerRule& rule, uint32_t from, uint32_t to) {
  if (from == 0) return 0;
  if (from == to) return 1;
  const double log = rule.log_average_decay;
  return static_cast<float>(Exp((to - from) * log) * Expm1(from * log) / Expm1(to * log));
}

// The moments' weights for a row: of its own writes, which it counts, or of the learner's steps
// since its last one.
TACIT_IN_KERNEL train::AdamNumbers RowAdam(const OptimizerRule& rule, const Row& row,
                                           uint32_t last) {
  const auto at = [&](double power1, double power2) {
    return train::MakeAdamNumbers(rule.beta1, rule.beta2, rule.row_rate, rule.epsilon, power1,
                                  power2);
  };
  if (rule.lazy) {
    train::AdamNumbers adam = at(rule.power1, rule.power2);
    adam.keep1 = static_cast<float>(Pow(rule.beta1, rule.step - last));
    adam.keep2 = static_cast<float>(Pow(rule.beta2, rule.step - last));
    return adam;
  }
  float& stored = row.state[2 * row.dim];
  const uint32_t count = __builtin_bit_cast(uint32_t, stored) + 1;
  stored = __builtin_bit_cast(float, count);
  return at(Pow(rule.beta1, count), Pow(rule.beta2, count));
}

TACIT_IN_KERNEL void StepOf(const Drawing& drawing, const OptimizerRule& rule, const Row& row,
                            uint32_t last) {
  using Kind = OptimizerRule::Kind;
  float* const w = row.embedding;
  if (rule.kind == Kind::kSgd || rule.kind == Kind::kMomentum) {
    ForUpdate(drawing, row, [&](uint32_t c, float g) { train::SgdNumber(g, rule.row_rate, w[c]); });
  } else if (rule.kind == Kind::kAdagrad) {
    double squared = 0;
    ForUpdate(drawing, row, [&](uint32_t, float g) { squared += double{g} * double{g}; });
    const float s = row.state[0] + static_cast<float>(squared / static_cast<double>(row.dim));
    row.state[0] = s;
    const float rate = rule.row_rate / (Sqrt(s) + rule.epsilon);
    ForUpdate(drawing, row, [&](uint32_t c, float g) { train::SgdNumber(g, rate, w[c]); });
  } else {
    const train::AdamNumbers adam = RowAdam(rule, row, last);
    float* const m = row.state;
    ForUpdate(drawing, row, [&](uint32_t c, float g) { adam.Step(g, w[c], m[c], m[row.dim + c]); });
  }
}

TACIT_IN_KERNEL void FinishRow(const Drawing& drawing, const OptimizerRule& rule, const Row& row) {
  const bool averages = rule.average_decay > 0, kept = rule.lazy || averages;
  // The step of the last write, and before it the average; a row without state has neither.
  float* const back = kept ? row.state + row.state_floats - 1 : nullptr;
  float* const average = averages ? back - row.dim : nullptr;
  const uint32_t last = kept ? __builtin_bit_cast(uint32_t, *back) : 0;
  if (averages) {
    const float keep = KeepOf(rule, last, rule.step - 1);
    for (uint32_t c = 0; c < row.dim; ++c)
      average[c] = Averaged(row.embedding[c], keep, average[c]);
  }
  StepOf(drawing, rule, row, last);
  if (averages)
    for (uint32_t c = 0; c < row.dim; ++c)
      average[c] = Averaged(row.embedding[c], rule.average_keep, average[c]);
  if (kept) *back = __builtin_bit_cast(float, rule.step);
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

TACIT_KERNEL RowsKernel(Drawing drawing, const OptimizerRule* at_rule, RowPlaces places,
                        WrittenRows written, RowSums sums) {
  const uint64_t i = GlobalThread();
  if (i >= written.all[0] || i >= written.row.size) return;
  const OptimizerRule rule = *at_rule;
  const uint32_t name = written.name[i];
  FinishRow(drawing, rule,
            RowOf(places, written.row[i], name, sums, i < written.with_sums[0] ? i : kNone));
  if (written.changed.size > 0) written.changed[name] = 1;
}

TACIT_KERNEL EveryRowKernel(Drawing drawing, const OptimizerRule* at_rule, RowPlaces places,
                            DeviceSpan<const uint32_t> owner, DeviceSpan<const uint32_t> rank,
                            RowSums sums) {
  const uint64_t row = GlobalThread();
  if (row >= owner.size) return;
  const OptimizerRule rule = *at_rule;
  const uint32_t entry = owner[row];
  FinishRow(
      drawing, rule,
      RowOf(places, row, static_cast<uint32_t>(row), sums, entry == kNone ? kNone : rank[entry]));
}

Drawing MakeDrawing(DeviceSpan<const NoiseKey> key, const GridRelease& release) {
  TACIT_CHECK(key.size == 1 && release.step > 0);
  return {.key = key.data,
          .noise = noise::MakeGridScale(release.stddev, noise::DitherBits(release.stddev)),
          .per_step = 1 / release.step,
          .scale = release.factor * release.step};
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

const OptimizerRule* RuleOf(DeviceSpan<const OptimizerRule> rule) {
  TACIT_CHECK(rule.size == 1, "one rule");
  return rule.data;
}

}  // namespace

Status FinishDense(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                   DeviceSpan<const OptimizerRule> rule, DeviceSpan<const float> sums,
                   const DenseParameters& parameters) {
  TACIT_CHECK(parameters.weights.size == sums.size);
  const uint64_t places = (sums.size + kNumbersPerPlace - 1) / kNumbersPerPlace;
  return Launch(stream, "FinishDense", Threads(places), DenseKernel<float>,
                MakeDrawing(key, release), RuleOf(rule), sums, parameters);
}

Status FinishSteps(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                   DeviceSpan<const OptimizerRule> rule, DeviceSpan<const int64_t> sums,
                   const DenseParameters& parameters) {
  TACIT_CHECK(parameters.weights.size == sums.size);
  const uint64_t places = (sums.size + kNumbersPerPlace - 1) / kNumbersPerPlace;
  return Launch(stream, "FinishSteps", Threads(places), DenseKernel<int64_t>,
                MakeDrawing(key, release), RuleOf(rule), sums, parameters);
}

Status FinishRows(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                  DeviceSpan<const OptimizerRule> rule, const RowPlaces& places,
                  const WrittenRows& written, const RowSums& sums) {
  TACIT_CHECK(written.name.size == written.row.size && written.with_sums.size == 1 &&
              written.all.size == 1 && sums.places > 0);
  return Launch(stream, "FinishRows", Threads(written.row.size), RowsKernel,
                MakeDrawing(key, release), RuleOf(rule), places, written, sums);
}

Status FinishEveryRow(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                      DeviceSpan<const OptimizerRule> rule, const RowPlaces& places,
                      DeviceSpan<const uint32_t> owner, DeviceSpan<const uint32_t> rank,
                      const RowSums& sums) {
  TACIT_CHECK(sums.places > 0);
  return Launch(stream, "FinishEveryRow", Threads(owner.size), EveryRowKernel,
                MakeDrawing(key, release), RuleOf(rule), places, owner, rank, sums);
}

}  // namespace tacit::cuda
