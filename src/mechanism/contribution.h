#pragma once

#include <cstddef>
#include <cstdint>

#include "mechanism/grid.h"

namespace tacit::mechanism {

// A unit counts once in every row that it activates, and its counts are cut as one vector to a
// norm: v = 1 on `active` rows, scaled by min(1, clip / sqrt(active)). On a grid: the most whole
// steps, at most 1 / step, of which `active` have a norm of at most `clip`, so that rounding makes
// no unit longer. REQUIRES active > 0.
int64_t ContributionSteps(double clip, const Grid& grid, size_t active);

}  // namespace tacit::mechanism
