// Round, noise, optimiser. A thread 16 numbers; those of a row are neighbours, and the first of
// them writes what the row's numbers share.
//   bytes:      dense 8 read for the sum and 8 for each of weight and state a number; rows 8 for a
//               sum (touched rows alone) and 8 for each float of the row
//   operations: 3,600 integer and 600 double for 16 numbers of noise, and some 10 a number for the
//               optimiser; Adagrad draws a row's noise twice, for its rate needs the whole row
// All are bound by ChaCha20, at 57 cycles of a multiprocessor for 16 numbers. Measured on an H200:
// dense DP-SGD of 1e7 rows x 64 in 11.2 ms and of 1e8 in 108 ms, 81 and 84 % of the noise alone;
// 1.3 M dense numbers with Adam in 47 us, in one launch. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/noise/grid_draw.h"
#include "cuda/kernels/rows/finish.h"
#include "cuda/kernels/rows/finish_step.h"
#include "mechanism/nearest.h"
#include "noise/grid_gaussian.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = kFinishBlock;
static_assert(kStepNumbers == kNumbersPerPlace);

struct Drawing {
  const NoiseKey* key;
  noise::GridScale noise;
  double scale;  // factor * step
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

// A layer has some five warps of places for each multiprocessor: registers are not scarce, and none
// spills. A block is small enough to run beside two of a product's.
constexpr uint32_t kDenseBlock = 64;
TACIT_KERNEL_OF(kDenseBlock, 8)
DenseKernel(Drawing drawing, const OptimizerRule* at_rule, DensePart part,
            DeviceSpan<const int64_t> sums, DenseParameters parameters) {
  const uint64_t place = part.begin / kNumbersPerPlace + GlobalThread();
  const uint64_t begin = place * kNumbersPerPlace;
  if (begin >= part.end) return;
  const uint64_t left = part.end - begin;
  const auto count = static_cast<uint32_t>(left < kNumbersPerPlace ? left : kNumbersPerPlace);
  int64_t steps[kNumbersPerPlace];
  float update[kNumbersPerPlace];
  TACIT_UNROLL
  for (uint32_t four = 0; four < kNumbersPerPlace; four += 4) {
    const auto some = LoadVector<4>(sums.data + begin + four, four < count ? count - four : 0);
    TACIT_UNROLL
    for (uint32_t j = 0; j < 4; ++j) steps[four + j] = some.x[j];
  }
  Update(drawing, NoiseQuery::kDense, place, steps, update);
  const OptimizerRule rule = *at_rule;
  TACIT_UNROLL
  for (uint32_t four = 0; four < kNumbersPerPlace; four += 4)
    if (four < count) StepFour(rule, parameters, begin + four, count - four, update + four);
}

// The update of a part of a row, with its noise.
struct UpdateOf {
  const Drawing& drawing;
  const Row& row;
  TACIT_IN_KERNEL void operator()(uint32_t part, float (&update)[kNumbersPerPlace]) const {
    int64_t steps[kNumbersPerPlace];
    SumsOf(row, part, steps);
    Update(drawing, NoiseQuery::kRows, row.place + part, steps, update);
  }
};

TACIT_KERNEL RowsKernel(Drawing drawing, const OptimizerRule* at_rule, RowPlaces places,
                        WrittenRows written, RowSums sums, uint32_t group) {
  const uint64_t i = GlobalThread() / group;
  const Share share{group, static_cast<uint32_t>(GlobalThread() % group)};
  const bool real = i < written.all[0] && i < written.row.size;
  const OptimizerRule rule = *at_rule;
  const uint32_t name = real ? written.name[i] : 0;
  const Row row = real ? RowOf(places, written.row[i], name, sums,
                               i < written.with_sums[0] ? i : uint64_t{kNone})
                       : Row();
  StepRow(rule, real, row, share, UpdateOf{drawing, row});
  if (real && share.mine == 0 && written.changed.size > 0) written.changed[name] = 1;
}

TACIT_KERNEL EveryRowKernel(Drawing drawing, const OptimizerRule* at_rule, RowPlaces places,
                            DeviceSpan<const uint32_t> owner, DeviceSpan<const uint32_t> rank,
                            RowSums sums, uint32_t group) {
  const uint64_t at = GlobalThread() / group;
  const Share share{group, static_cast<uint32_t>(GlobalThread() % group)};
  const bool real = at < owner.size;
  const OptimizerRule rule = *at_rule;
  const uint32_t entry = real ? owner[at] : kNone;
  const Row row = real ? RowOf(places, at, static_cast<uint32_t>(at), sums,
                               entry == kNone ? kNone : rank[entry])
                       : Row();
  StepRow(rule, real, row, share, UpdateOf{drawing, row});
}

Drawing MakeDrawing(DeviceSpan<const NoiseKey> key, const GridRelease& release) {
  TACIT_CHECK(key.size == 1 && release.step > 0);
  return {.key = key.data,
          .noise = noise::MakeGridScale(release.stddev, noise::DitherBits(release.stddev)),
          .scale = release.factor * release.step};
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}
runtime::LaunchShape Places(const DensePart& part) {
  const uint64_t places = (part.end - part.begin + kNumbersPerPlace - 1) / kNumbersPerPlace;
  return {.grid = BlocksFor(places, kDenseBlock), .block = {kDenseBlock}, .shared_bytes = 0};
}

}  // namespace

Status FinishDense(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                   DeviceSpan<const OptimizerRule> rule, const DensePart& part,
                   DeviceSpan<const int64_t> sums, const DenseParameters& parameters) {
  CheckPart(part, sums, parameters);
  return Launch(stream, "FinishDense", Places(part), DenseKernel, MakeDrawing(key, release),
                RuleOf(rule), part, sums, parameters);
}

Status FinishRows(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                  DeviceSpan<const OptimizerRule> rule, const RowPlaces& places,
                  const WrittenRows& written, const RowSums& sums) {
  TACIT_CHECK(written.name.size == written.row.size && written.with_sums.size == 1 &&
              written.all.size == 1 && sums.places > 0);
  const uint32_t group = GroupOf(sums);
  return Launch(stream, "FinishRows", Threads(written.row.size * group), RowsKernel,
                MakeDrawing(key, release), RuleOf(rule), places, written, sums, group);
}

Status FinishEveryRow(Stream& stream, DeviceSpan<const NoiseKey> key, const GridRelease& release,
                      DeviceSpan<const OptimizerRule> rule, const RowPlaces& places,
                      DeviceSpan<const uint32_t> owner, DeviceSpan<const uint32_t> rank,
                      const RowSums& sums) {
  TACIT_CHECK(sums.places > 0);
  const uint32_t group = GroupOf(sums);
  return Launch(stream, "FinishEveryRow", Threads(owner.size * group), EveryRowKernel,
                MakeDrawing(key, release), RuleOf(rule), places, owner, rank, sums, group);
}

}  // namespace tacit::cuda
