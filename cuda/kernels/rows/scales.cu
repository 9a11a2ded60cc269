// Scales, a thread a unit or an example; ClearUnbounded a warp an example, which writes only in
// rows that are dropped.
//   bytes:      8 a group and unit; 8 a group and example
//   operations: a root, a division and some 20 others in double a unit
// It is all launches. Forecast: 2 us each. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/kernels/rows/scales.h"
#include "mechanism/clip_law.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;
// As model/sum_blocks.h has it.
constexpr double kRowsOverNorm = 16;

TACIT_IN_KERNEL bool IsFinite(double x) { return Abs(x) <= 0x1.fffffffffffffp1023; }

TACIT_KERNEL BoundKernel(DeviceSpan<const uint32_t> unit_end, DeviceSpan<const double> all_own,
                         uint64_t rows, double rounding, DeviceSpan<float> all_squared) {
  const uint64_t u = GlobalThread();
  if (u >= unit_end.size) return;
  const DeviceSpan<const double> own = all_own.Sub(BlockIndex().y * rows, rows);
  const DeviceSpan<float> squared = all_squared.Sub(BlockIndex().y * unit_end.size, unit_end.size);
  const uint32_t first = u == 0 ? 0 : unit_end[u - 1], last = unit_end[u];
  if (last - first < 2) return;
  double lengths = 0;
  // A row's norm as a float, as the CPU keeps it.
  for (uint32_t r = first; r < last; ++r) lengths += Sqrt(double{static_cast<float>(own[r])});
  const double rounded = Sqrt(double{squared[u]}) + rounding * lengths;
  const double cancelled = lengths / kRowsOverNorm;
  // std::max's choice, where one of them is no number.
  const double bound = rounded < cancelled ? cancelled : rounded;
  squared[u] = static_cast<float>(bound * bound);
}

TACIT_IN_KERNEL float ScaleOf(const ClipRule& rule, double joint, double own, double room,
                              uint32_t group) {
  if (!IsFinite(joint)) return 0;
  if (rule.law == ClipLaw::kFlat)
    return mechanism::RoundDown(mechanism::FlatLaw::Scale(joint, room));
  if (rule.law == ClipLaw::kAutomatic)
    return mechanism::RoundDown(mechanism::AutomaticLaw::Scale(joint, room));
  return mechanism::RoundDown(mechanism::FlatLaw::Scale(own, room * rule.root_share[group]));
}

TACIT_KERNEL ScalesKernel(ClipRule rule, uint32_t groups, DeviceSpan<float> squared,
                          DeviceSpan<const uint32_t> numbers, DeviceSpan<const uint32_t> real,
                          DeviceSpan<float> scales, DeviceSpan<uint8_t> bounded,
                          DeviceSpan<uint32_t> clipped) {
  const uint64_t u = GlobalThread(), units = numbers.size;
  bool shorter = false;
  if (u < units) {
    bool finite = true;
    for (uint32_t g = 0; g < groups; ++g) finite &= IsFinite(squared[g * units + u]);
    double joint = 0;
    for (uint32_t g = 0; g < groups; ++g) {
      if (!finite) squared[g * units + u] = 0;
      joint += squared[g * units + u];
    }
    joint = Sqrt(joint) * mechanism::kNormSlack;
    const auto rounding = static_cast<float>(
        rule.grid_step * (Sqrt(static_cast<double>(numbers[u])) / 2 + rule.dense_root) *
        (1 + 0x1p-20));
    const double left = rule.bound * (1 - rule.error) - rounding, room = left > 0 ? left : 0;
    for (uint32_t g = 0; g < groups; ++g) {
      const double own = Sqrt(double{squared[g * units + u]}) * mechanism::kNormSlack;
      const float scale = finite ? ScaleOf(rule, joint, own, room, g) : 0;
      scales[g * units + u] = scale;
      shorter |= finite && scale < 1;
    }
    bounded[u] = finite;
  }
  const uint32_t lanes = Ballot(shorter && (real.size == 0 || u < real[0]));
  if (LaneIndex() == 0 && lanes != 0) AtomicAdd(&clipped[0], CountBits(lanes));
}

TACIT_KERNEL SpreadKernel(uint32_t groups, uint32_t units, float shrink,
                          DeviceSpan<const float> scales, DeviceSpan<const uint32_t> unit_of,
                          DeviceSpan<float> out) {
  const uint64_t i = GlobalThread(), examples = unit_of.size;
  if (i >= examples) return;
  const uint32_t unit = unit_of[i];
  for (uint64_t g = 0; g < groups; ++g)
    out[g * examples + i] = unit == kNone ? 0.0f : shrink * scales[g * units + unit];
}

template <class T>
TACIT_IN_KERNEL void ClearRow(const DeviceMatrix<T>& x, uint64_t r) {
  for (uint32_t c = LaneIndex(); c < x.cols; c += kWarp) x.Row(r)[c] = 0;
}

// A warp a row, in every matrix.
template <class T>
TACIT_KERNEL ClearKernel(DeviceSpan<const uint8_t> bounded, DeviceSpan<const uint32_t> unit_of,
                         MatrixList<T> a, MatrixList<T> g, DeviceMatrix<float> x) {
  const uint64_t r = GlobalThread() / kWarp;
  if (r >= unit_of.size || (unit_of[r] != kNone && bounded[unit_of[r]])) return;
  for (uint32_t i = 0; i < a.count; ++i) ClearRow(a.at[i], r);
  for (uint32_t i = 0; i < g.count; ++i) ClearRow(g.at[i], r);
  if (x.rows > 0) ClearRow(x, r);
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status BoundByRows(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                   DeviceSpan<const double> own, uint32_t rows, double rounding,
                   DeviceSpan<float> squared) {
  if (unit_end.size == 0) return {};
  const size_t matrices = squared.size / unit_end.size;
  TACIT_CHECK(matrices * unit_end.size == squared.size && matrices * rows == own.size);
  runtime::LaunchShape shape = Threads(unit_end.size);
  shape.grid.y = static_cast<uint32_t>(matrices);
  return Launch(stream, "BoundByRows", shape, BoundKernel, unit_end, own, rows, rounding, squared);
}

Status UnitScales(Stream& stream, const ClipRule& rule, uint32_t groups, DeviceSpan<float> squared,
                  DeviceSpan<const uint32_t> numbers, DeviceSpan<const uint32_t> real,
                  DeviceSpan<float> scales, DeviceSpan<uint8_t> bounded,
                  DeviceSpan<uint32_t> clipped) {
  const size_t units = numbers.size;
  TACIT_CHECK(squared.size == groups * units && scales.size == squared.size && real.size <= 1 &&
              bounded.size == units && clipped.size == 1);
  TACIT_CHECK(rule.law != ClipLaw::kPerLayer || rule.root_share.size == groups,
              "one share of the clip per layer, and one for the rows");
  return Launch(stream, "UnitScales", Threads(units), ScalesKernel, rule, groups, squared, numbers,
                real, scales, bounded, clipped);
}

Status SpreadScales(Stream& stream, uint32_t groups, uint32_t units, float shrink,
                    DeviceSpan<const float> scales, DeviceSpan<const uint32_t> unit_of,
                    DeviceSpan<float> out) {
  TACIT_CHECK(scales.size == uint64_t{groups} * units && out.size == groups * unit_of.size);
  return Launch(stream, "SpreadScales", Threads(unit_of.size), SpreadKernel, groups, units, shrink,
                scales, unit_of, out);
}

template <class T>
Status ClearUnbounded(Stream& stream, DeviceSpan<const uint8_t> bounded,
                      DeviceSpan<const uint32_t> unit_of, const MatrixList<T>& a,
                      const MatrixList<T>& g, DeviceMatrix<float> x) {
  for (const MatrixList<T>* list : {&a, &g})
    for (uint32_t i = 0; i < list->count; ++i) TACIT_CHECK(list->at[i].rows == unit_of.size);
  TACIT_CHECK(x.rows == 0 || x.rows == unit_of.size);
  return Launch(stream, "ClearUnbounded", Threads(unit_of.size * kWarp), ClearKernel<T>, bounded,
                unit_of, a, g, x);
}
template Status ClearUnbounded<float>(Stream&, DeviceSpan<const uint8_t>,
                                      DeviceSpan<const uint32_t>, const MatrixList<float>&,
                                      const MatrixList<float>&, DeviceMatrix<float>);
template Status ClearUnbounded<uint16_t>(Stream&, DeviceSpan<const uint8_t>,
                                         DeviceSpan<const uint32_t>, const MatrixList<uint16_t>&,
                                         const MatrixList<uint16_t>&, DeviceMatrix<float>);

}  // namespace tacit::cuda
