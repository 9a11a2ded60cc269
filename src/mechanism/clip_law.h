#pragma once

#include <cstdint>

#include "base/device.h"

// From a unit's norm to its scale, for the CPU's clips and for the device's: equal bits on both.
namespace tacit::mechanism {

// The factor by which given norms are lengthened: they were rounded to f32, and the scale and the
// numbers that it multiplies will be rounded too.
inline constexpr double kNormSlack = 1 + 0x1p-20;
// The offset of the automatic clip: a gradient shorter than this is no longer stretched to C.
inline constexpr double kAutomaticOffset = 0.01;

// `room` is what the unit may add: the clip less what rounding can add.
struct FlatLaw {
  TACIT_DEVICE static double Scale(double norm, double room) {
    return norm > room ? room / norm : 1;
  }
};
struct AutomaticLaw {
  TACIT_DEVICE static double Scale(double norm, double room) {
    return room / (norm + kAutomaticOffset);
  }
};

// Returns the scale as a float that is not above it: among the smallest floats, rounding to nearest
// could double it. REQUIRES scale >= 0.
TACIT_DEVICE inline float RoundDown(double scale) {
  const auto rounded = static_cast<float>(scale);
  // The float below a positive one, infinity included, has the bits before its own.
  return double{rounded} <= scale
             ? rounded
             : __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, rounded) - 1);
}

}  // namespace tacit::mechanism
