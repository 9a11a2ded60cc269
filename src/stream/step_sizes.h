#pragma once

#include <algorithm>
#include <cstdint>

namespace tacit::stream {

// The offsets of a learner's steps; a function of a step's number alone.
struct StepSizes {
  uint64_t full = 2048;
  // The learner's very first step has this many. 0: as many as the others.
  uint64_t opening = 0;
  // The first step, or the first one after an opening, has this many, and each later one a quarter
  // more, up to a full one: a young model is not kept waiting for long. 0: all are full.
  uint64_t growing_from = 0;

  uint64_t Of(uint64_t step) const {
    const uint64_t before_growth = opening > 0 ? 1 : 0;
    if (step < before_growth) return opening;
    if (growing_from == 0) return full;
    uint64_t offsets = std::min(growing_from, full);
    for (uint64_t s = before_growth; s < step && offsets < full; ++s)
      offsets += std::max<uint64_t>(1, offsets / 4);
    return std::min(offsets, full);
  }
};

}  // namespace tacit::stream
