// Compiled with -O3 and without errno and trap semantics (see CMakeLists.txt), so that the loops
// below become vector code. Contraction is off in the whole tree and fused operations are spelled
// out, hence equal bits everywhere.
#include "noise/grid_gaussian.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "base/cpu.h"
#include "noise/grid_portable.h"
#include "noise/noise.h"

namespace tacit::noise {

void FillNormalsPortable(const uint32_t* bits, double* __restrict first, double* __restrict second,
                         size_t pairs) {
  const auto* words = reinterpret_cast<const KeyWord*>(bits);
  for (size_t i = 0; i < pairs; ++i)
    FillNormalsAt<Portable>(words + i, first + i, second + i, pairs);
}

void AddGridPortable(const uint32_t* bits, double stddev, int dither_bits, int64_t* first,
                     int64_t* second, size_t pairs) {
  const auto* words = reinterpret_cast<const KeyWord*>(bits);
  auto* __restrict x = reinterpret_cast<uint64_t*>(first);
  auto* __restrict y = reinterpret_cast<uint64_t*>(second);
  const GridScale scale = MakeGridScale(stddev, dither_bits);
  for (size_t i = 0; i < pairs; ++i) AddGridAt<Portable>(words + i, scale, x + i, y + i, pairs);
}

void FillGridPortable(const uint32_t* bits, double stddev, int dither_bits, double factor,
                      float* __restrict first, float* __restrict second, size_t pairs) {
  const auto* words = reinterpret_cast<const KeyWord*>(bits);
  const GridScale scale = MakeGridScale(stddev, dither_bits);
  for (size_t i = 0; i < pairs; ++i)
    FillGridAt<Portable>(words + i, scale, factor, first + i, second + i, pairs);
}

FillNormalsFunction FastestFillNormals() {
#if defined(__x86_64__)
  if (ThisCpu().avx512) return FillNormalsAvx512;
#endif
  return FillNormalsPortable;
}

AddGridFunction FastestAddGrid() {
#if defined(__x86_64__)
  if (ThisCpu().avx512) return AddGridAvx512;
#endif
  return AddGridPortable;
}

FillGridFunction FastestFillGrid() {
#if defined(__x86_64__)
  if (ThisCpu().avx512) return FillGridAvx512;
#endif
  return FillGridPortable;
}

int DitherBits(double stddev) {
  TACIT_CHECK(stddev >= kGridStddevMin && stddev <= kGridStddevMax,
              "the grid's step does not fit the noise");
  return std::ilogb(stddev) - 6;
}

// P(floor(s z) + d >= t) = mean over d of P(s z >= t - d): Gauss and Legendre's rule with three
// points on the dither, whose width is at most s / 64; what it leaves out is below 1e-12 of the
// result within ten standard deviations.
double GridGaussianTail(double stddev, int64_t threshold) {
  const double half_width = std::ldexp(0.5, DitherBits(stddev));
  const double middle = static_cast<double>(threshold) - 0.5;
  double tail = 0;
  for (const auto& [place, weight] : {std::pair(-std::sqrt(0.6), 5.0 / 18), std::pair(0.0, 4.0 / 9),
                                      std::pair(std::sqrt(0.6), 5.0 / 18)})
    tail += weight * std::erfc((middle + place * half_width) / stddev / std::numbers::sqrt2) / 2;
  return tail;
}

}  // namespace tacit::noise
