#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tacit::model {

// The answer's place among all items but those of the history; 1 is the first. An item of the same
// score comes before the answer, so a model gains nothing by scoring all items alike. An answer
// whose score is NaN comes last. The answer counts even if it is in the history.
size_t PlaceOf(uint32_t answer, std::span<const uint32_t> history, std::span<const float> scores);

}  // namespace tacit::model
