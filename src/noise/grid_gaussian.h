#pragma once

#include <cstddef>
#include <cstdint>

namespace tacit::noise {

// Normals in double by Box and Muller (1958), six random words for two of them:
//   words 0, 1: u in (0, 1], 52 bits and 23 more (12 from the bottom of these words, 11 that the
//               angle does not need), so that small values, where the tail is, keep all their bits;
//   words 2, 3: the angle, 53 bits;
//   words 4, 5: the dither of the grid, 32 bits for each of the two.
// Word k of pair i is at bits[2 * (k / 2 * pairs + i) + k % 2]. The largest magnitude is
// sqrt(2 * 76 ln 2) = 10.27. No branch and no address depends on the bits.
inline constexpr size_t kWordsPerPair = 6;

// first[i] = radius * cos(angle), second[i] = radius * sin(angle). Words 4 and 5 are not used.
using FillNormalsFunction = void (*)(const uint32_t* bits, double* first, double* second,
                                     size_t pairs);
void FillNormalsPortable(const uint32_t* bits, double* first, double* second, size_t pairs);
FillNormalsFunction FastestFillNormals();

// With the two normals z of a pair as above:
//   first[i] += floor(stddev * z) + d,   second[i] likewise,
// d uniform on the 2^dither_bits integers from 1 - 2^dither_bits / 2 to 2^dither_bits / 2. Sums
// wrap. REQUIRES 1 <= dither_bits <= 32, stddev < 2^46.
using AddGridFunction = void (*)(const uint32_t* bits, double stddev, int dither_bits,
                                 int64_t* first, int64_t* second, size_t pairs);
void AddGridPortable(const uint32_t* bits, double stddev, int dither_bits, int64_t* first,
                     int64_t* second, size_t pairs);
AddGridFunction FastestAddGrid();

// The width of the dither for a standard deviation in steps: 2^bits is the power of two in
// (stddev / 128, stddev / 64].
int DitherBits(double stddev);

}  // namespace tacit::noise
