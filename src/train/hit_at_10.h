#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/worker_pool.h"
#include "model/ranking/place.h"
#include "train/learner.h"
#include "train/recent_histories.h"

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

// Asks for the first new item of up to `most` units of a step, each from its items before, and adds
// the outcome to the report. `score` scores every item after a history, on any thread.
using ScoreHistory = std::function<void(std::span<const uint32_t> history, std::span<float>)>;
void AskForNext(const StepHistories& step, size_t most, size_t items, const ScoreHistory& score,
                WorkerPool& workers, StepReport* report);

}  // namespace tacit::train
