#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mechanism/grid.h"

namespace tacit::mechanism {

// Returns what a unit counts in each row, in steps of the grid. A unit counts once in every row
// that it activates, and its counts are cut as one vector: v = 1 on `active` rows, scaled by min(1,
// clip / sqrt(active)). The result is the largest number of whole steps, at most 1 / step, of which
// `active` have a norm of at most `clip`: rounding makes no unit longer. REQUIRES active > 0.
int64_t ContributionSteps(double clip, const Grid& grid, size_t active);

// Returns the scale that turns a unit's weights into steps, StepsAt(weight, scale): it scales the
// unit's vector to the norm `clip`, up or down, and each number is rounded down. The scale is the
// largest, up to one part in 2^20, at which the squares of the steps add up, in integers, to at
// most (clip / step)^2; 0 for a unit without weight. REQUIRES weights >= 0 and finite, and a grid
// of MakeHistogramGrid.
double ContributionScale(double clip, const Grid& grid, std::span<const double> weights);
inline int64_t StepsAt(double weight, double scale) { return static_cast<int64_t>(weight * scale); }

}  // namespace tacit::mechanism
