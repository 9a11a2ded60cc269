#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tacit::model {

// The answer's place among all items but those of the history; 1 is the first. An item of the same
// score comes before the answer, so a model gains nothing by scoring all items alike. An answer
// whose score is NaN comes last. The answer counts even if it is in the history.
size_t PlaceOf(uint32_t answer, std::span<const uint32_t> history, std::span<const float> scores);

// HIT@10 and NDCG@10 look at this many places.
inline constexpr size_t kPlacesCounted = 10;
// The gain of an answer at this place. NDCG@10 is the mean of it over the questions.
inline double GainAt(size_t place) {
  return place <= kPlacesCounted ? 1 / std::log2(static_cast<double>(place) + 1) : 0;
}

}  // namespace tacit::model
