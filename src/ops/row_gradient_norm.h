#pragma once

#include "base/device.h"

namespace tacit::ops {

// Returns the squared norm of a^T g for one row of each, from their own squared norms. It is
// infinite where `a` is longer than 2^64: a clip's scale could then take numbers of g down to the
// smallest ones of their type, where rounding may double them.
TACIT_DEVICE inline double RowGradientNorm(double a_squared, double g_squared) {
  return a_squared <= 0x1p128 ? a_squared * g_squared : __builtin_huge_val();
}

}  // namespace tacit::ops
