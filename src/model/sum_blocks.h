#pragma once

#include <cstdint>
#include <span>

#include "ops/backend.h"

// The dense sum of a step in blocks (docs/internals/model.md, "The sum in floats"). Rows are added
// in floats inside a block, and blocks as integers. So a unit that is there or not moves the
// rounding errors of its own block alone, and those are bounded by constants.
namespace tacit::model {

// The factor by which the rows of one unit, one by one and added up, may be longer than the norm
// that is reported for it. A clip bounds a unit's sum. Rows that cancel could have any length, and
// the error that they leave in a sum of floats grows with that length. Rows that point anywhere add
// up to about the root of their number, so the norms of honest units of up to 256 rows in a step
// are reported unchanged.
inline constexpr double kRowsOverNorm = 16;

// The most rows that are added in floats.
inline constexpr uint32_t kSumRows = 256;

// By how much a unit moves the rounding errors of a step's dense sum, in units of the clip, at
// most: 2^-7, and a little for terms of higher order and for sums in double.
inline constexpr double kSumError = 0x1p-7 * (1 + 0x1p-12);

// Cuts blocks, which end at these rows, into pieces so short that kSumError holds. Units end at
// `unit_end`, and none is in two blocks.
void CutSums(std::span<const uint32_t> block_end, std::span<const uint32_t> unit_end,
             ops::SumPieces* pieces);

}  // namespace tacit::model
