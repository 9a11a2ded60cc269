#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/ranking/place.h"

namespace tacit::train {

// The hit rule, applied before learning: the answer is among the model's ten best items.
inline constexpr size_t kBest = 10;

// Returns the first new item that is not in `before`: the one a model can be asked for. Looks only
// at the first few new items, so that one very active user does not slow the step.
inline constexpr size_t kLookedAt = 16;
inline std::optional<uint32_t> FirstUnseen(std::span<const uint32_t> before,
                                           std::span<const uint32_t> fresh) {
  for (const uint32_t item : fresh.first(std::min(fresh.size(), kLookedAt)))
    if (std::ranges::find(before, item) == before.end()) return item;
  return std::nullopt;
}

// Checks that the answer is among the ten best of all items not in `before`.
inline bool IsAmongBest(std::span<const float> scores, std::span<const uint32_t> before,
                        uint32_t answer) {
  return model::PlaceOf(answer, before, scores) <= kBest;
}

}  // namespace tacit::train
