#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace tacit::mechanism {

// The norm of whole steps, in the units of what they are steps of.
inline double Norm(std::span<const int64_t> steps, double step) {
  double squares = 0;
  for (const int64_t s : steps) squares += static_cast<double>(s) * static_cast<double>(s);
  return std::sqrt(squares) * step;
}

}  // namespace tacit::mechanism
