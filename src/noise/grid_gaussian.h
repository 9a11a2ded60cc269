#pragma once

#include <cstddef>
#include <cstdint>

namespace tacit::noise {

// Normals in double by Box and Muller (1958), three random words of 64 bits for two of them:
//   a: the upper 64 bits of u in (0, 1), a multiple of 2^-75;
//   b: 10 more bits of u at the bottom, the next 51 the angle within an eighth of a turn to either
//      side of an axis, the upper two which axis. Small values of u, where the tail is, keep all
//      their bits;
//   c: the dither of the grid, from the lower end for the first, from the upper for the second.
// They lie at a[i] = words[i], b[i] = words[pairs + i], c[i] = words[2 * pairs + i]. The largest
// magnitude is sqrt(2 * 75 ln 2) = 10.20. No branch and no address depends on the bits.
inline constexpr size_t kWordsPerPair = 6;  // of 32 bits
// The kernels are fastest on multiples of this many pairs.
inline constexpr size_t kPairsAtOnce = 8;

// first[i] = radius * cos(angle), second[i] = radius * sin(angle). c is not used.
using FillNormalsFunction = void (*)(const uint32_t* bits, double* first, double* second,
                                     size_t pairs);
void FillNormalsPortable(const uint32_t* bits, double* first, double* second, size_t pairs);
void FillNormalsAvx512(const uint32_t* bits, double* first, double* second, size_t pairs);
// Returns the fastest that this processor can run; all give equal bits.
FillNormalsFunction FastestFillNormals();

// With the two normals z of a pair as above:
//   first[i] += floor(stddev * z) + d,   second[i] by the same rule,
// d uniform on the 2^dither_bits integers from 1 - 2^dither_bits / 2 to 2^dither_bits / 2; floor of
// a product that is not rounded before. Sums wrap. REQUIRES 1 <= dither_bits <= 32, stddev < 2^46.
using AddGridFunction = void (*)(const uint32_t* bits, double stddev, int dither_bits,
                                 int64_t* first, int64_t* second, size_t pairs);
void AddGridPortable(const uint32_t* bits, double stddev, int dither_bits, int64_t* first,
                     int64_t* second, size_t pairs);
void AddGridAvx512(const uint32_t* bits, double stddev, int dither_bits, int64_t* first,
                   int64_t* second, size_t pairs);
AddGridFunction FastestAddGrid();

// first[i] = factor * n in f32, n what AddGrid would have added; second[i] by the same rule.
using FillGridFunction = void (*)(const uint32_t* bits, double stddev, int dither_bits,
                                  double factor, float* first, float* second, size_t pairs);
void FillGridPortable(const uint32_t* bits, double stddev, int dither_bits, double factor,
                      float* first, float* second, size_t pairs);
void FillGridAvx512(const uint32_t* bits, double stddev, int dither_bits, double factor,
                    float* first, float* second, size_t pairs);
FillGridFunction FastestFillGrid();

// The width of the dither for a standard deviation in steps: 2^bits is the power of two in
// (stddev / 128, stddev / 64].
int DitherBits(double stddev);

}  // namespace tacit::noise
