#pragma once

#include <cstdint>

#include "base/device.h"

// Whole steps from doubles and back, for the CPU and for kernels: equal bits on both.
namespace tacit::mechanism {

// Sums beyond this many steps count as this many.
inline constexpr double kMostSteps = 0x1p50;
// Added to a number of magnitude below 2^51, this leaves the number rounded to an integer in the
// low bits. The compiler makes vector code of that, but not of conversions.
inline constexpr double kToInteger = 0x1.8p52;

// A NaN fails the first comparison.
TACIT_DEVICE inline double Bounded(double x) {
  x = x > -kMostSteps ? x : -kMostSteps;
  return x < kMostSteps ? x : kMostSteps;
}

TACIT_DEVICE inline int64_t Nearest(double x) {
  return __builtin_bit_cast(int64_t, Bounded(x) + kToInteger) -
         __builtin_bit_cast(int64_t, kToInteger);
}

TACIT_DEVICE inline double ToDouble(int64_t n) {
  constexpr auto most = static_cast<int64_t>(kMostSteps);
  n = n > -most ? n : -most;
  n = n < most ? n : most;
  return __builtin_bit_cast(double, n + __builtin_bit_cast(int64_t, kToInteger)) - kToInteger;
}

}  // namespace tacit::mechanism
