#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

// Ranges of a period: not empty, ascending by partition and offset, without overlap.
namespace tacit::workers {

using Ranges = std::vector<OffsetRange>;

// Tells whether `next` may follow `before` in such a list.
bool InOrder(const OffsetRange& before, const OffsetRange& next);

uint64_t CountOffsets(std::span<const OffsetRange> ranges);

// Lays the ranges end to end and cuts them into one slice a rate, in proportion to the rates, each
// boundary to the nearest offset. A slice may be empty. REQUIRES rates that are finite and above 0.
std::vector<Ranges> CutSlices(std::span<const OffsetRange> ranges, std::span<const double> rates);

// Returns what of `ranges` is not in `taken`.
Ranges Without(std::span<const OffsetRange> ranges, std::span<const OffsetRange> taken);

}  // namespace tacit::workers
