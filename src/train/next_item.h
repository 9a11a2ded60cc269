#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace tacit::train {

// Predict, then learn: whether a model of the next item had it among its ten best.
inline constexpr size_t kBest = 10;

// The first new item that is not among those before: what a model could have been asked for. Looks
// at the first few alone: how much somebody does must not hold everybody up.
inline constexpr size_t kLookedAt = 16;
inline std::optional<uint32_t> FirstUnseen(std::span<const uint32_t> before,
                                           std::span<const uint32_t> fresh) {
  for (const uint32_t item : fresh.first(std::min(fresh.size(), kLookedAt)))
    if (std::ranges::find(before, item) == before.end()) return item;
  return std::nullopt;
}

// Whether fewer than ten items that are not among those before score at least as much. Changes the
// scores of those before.
inline bool IsAmongBest(std::span<float> scores, std::span<const uint32_t> before,
                        uint32_t answer) {
  const float own = scores[answer];
  for (const uint32_t item : before) scores[item] = -std::numeric_limits<float>::infinity();
  size_t better = 0;
  for (size_t item = 0; item < scores.size(); ++item)
    better += item != answer && scores[item] >= own;
  return better < kBest;
}

}  // namespace tacit::train
