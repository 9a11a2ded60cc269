#pragma once

#include <limits>

// Private to this room and its tests.
namespace tacit::privacy {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The greater of two costs. One that is no number counts as infinite: std::max would drop it.
inline double Worse(double a, double b) {
  if (a >= b) return a;
  return a < b ? b : kInfinity;
}

}  // namespace tacit::privacy
