#pragma once

#include <cstddef>
#include <cstdint>

namespace tacit::noise {

// Adds 2 * pairs normals of the given standard deviation made from as many random words:
//   first[i]  += stddev * sqrt(-2 ln u) * cos(angle),
//   second[i] += stddev * sqrt(-2 ln u) * sin(angle)     (Box and Muller 1958)
// with u of 40 bits and an angle of 24, from bits[i] and bits[pairs + i]. The largest magnitude is
// 7.54 standard deviations. The arrays must not overlap.
using BoxMullerFunction = void (*)(const uint32_t* bits, float stddev, float* first, float* second,
                                   size_t pairs);

// Runs everywhere.
void AddBoxMullerPortable(const uint32_t* bits, float stddev, float* first, float* second,
                          size_t pairs);
// Returns the fastest that this processor can run. It uses only IEEE operations that round the same
// everywhere: its results equal the portable ones to the last bit.
BoxMullerFunction FastestBoxMuller();

}  // namespace tacit::noise
