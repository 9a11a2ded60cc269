#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tacit::model::transitions {

// Sixteen bins an octave of scores, none of which is below 0: floats' upper bits are their
// logarithm, nearly, and ascend as floats do.
inline constexpr int kScoreDropBits = 19;
inline constexpr size_t kScoreBins = size_t{1} << (31 - kScoreDropBits);

// Adding 0 turns a negative zero into the other one.
inline uint32_t ScoreBin(float score) {
  return std::bit_cast<uint32_t>(score + 0.0f) >> kScoreDropBits;
}
inline float LeastOfScoreBin(uint32_t bin) { return std::bit_cast<float>(bin << kScoreDropBits); }

}  // namespace tacit::model::transitions
