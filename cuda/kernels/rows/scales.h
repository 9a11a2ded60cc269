#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// From units' norms to the scales of their examples, by the host's own laws (mechanism/clip_law.h).
namespace tacit::cuda {

enum class ClipLaw : uint32_t { kFlat, kAutomatic, kPerLayer };

struct ClipRule {
  ClipLaw law = ClipLaw::kFlat;
  double bound = 0;      // C
  double grid_step = 0;  // of the sums' grid
  // By how much rounding lengthens a unit's part of the dense sum: sqrt(number of parameters)
  // steps.
  double dense_root = 0;
  double error = 0;  // as GroupNorms::error
  // Per group, for kPerLayer: C_g / C, a little less.
  DeviceSpan<const double> root_share = {};
};

// For matrices of `rows` rows each, one's numbers behind the other's, and a unit of several rows:
// squared[u] = at least what the rounding of its rows asks for (see
// model/dense_net.h), from the squared norms of its rows alone. `rounding` is that of a scaled
// number.
Status BoundByRows(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                   DeviceSpan<const double> own, uint32_t rows, double rounding,
                   DeviceSpan<float> squared);

// From the squared norms of units (groups x units) and the numbers of kept rows' gradients: scales
// of the same shape. A unit with a norm that is not finite gets norms and scales of 0, and
// bounded[u] = 0.
// clipped[0] += the units with a scale below 1, of the first real[0]; of all where `real` is empty.
Status UnitScales(Stream& stream, const ClipRule& rule, uint32_t groups, DeviceSpan<float> squared,
                  DeviceSpan<const uint32_t> numbers, DeviceSpan<const uint32_t> real,
                  DeviceSpan<float> scales, DeviceSpan<uint8_t> bounded,
                  DeviceSpan<uint32_t> clipped);
// out[g * examples + i] = shrink * scales[g * units + unit_of[i]], and 0 where the example is of no
// unit, kNone.
Status SpreadScales(Stream& stream, uint32_t groups, uint32_t units, float shrink,
                    DeviceSpan<const float> scales, DeviceSpan<const uint32_t> unit_of,
                    DeviceSpan<float> out);
// Zeros in the rows of units that are not bounded, and of examples of no unit, in all of these
// matrices; `x` may be empty. T is float or uint16_t, a bf16.
template <class T>
Status ClearUnbounded(Stream& stream, DeviceSpan<const uint8_t> bounded,
                      DeviceSpan<const uint32_t> unit_of, const MatrixList<T>& a,
                      const MatrixList<T>& g, DeviceMatrix<float> x);

}  // namespace tacit::cuda
