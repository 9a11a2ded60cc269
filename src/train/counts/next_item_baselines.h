#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/counts/recent_histories.h"

namespace tacit::train {

// Two answers that a next-item model must beat to be worth its while: the most popular items, and
// the items that most often came right after the history's last one, popular items behind them.
// Counts of raw records without noise, of this process's life alone: operator-only. Not
// thread-safe.
class NextItemBaselines {
 public:
  explicit NextItemBaselines(size_t items);

  struct Places {
    size_t popular = 0, successor = 0;  // of the answer, as model::PlaceOf has it
  };
  // REQUIRES a history.
  Places PlacesOf(uint32_t answer, std::span<const uint32_t> history);
  // Counts a step's new items.
  void Learn(const StepHistories& step);

  static double Bytes(size_t items);

 private:
  // An item that came after another, and how often. Of each item's successors the most frequent
  // are kept: a new one takes the place of the rarest and goes on from its count (space-saving).
  struct Successor {
    uint32_t item = 0;
    uint32_t times = 0;  // 0: a free place
  };
  static constexpr size_t kSuccessors = 16;

  std::span<Successor> SuccessorsOf(uint32_t item) {
    return std::span(successors_).subspan(item * kSuccessors, kSuccessors);
  }
  void Follow(uint32_t last, uint32_t next);

  std::vector<float> times_;  // each item came
  std::vector<Successor> successors_;
  std::vector<float> scores_;  // scratch
};

}  // namespace tacit::train
