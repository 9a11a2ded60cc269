#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::app {

// The constants of transitions+ranker, set before the data is seen. Chosen on MovieLens-1M, on the
// items before the last; tests/bench/RESULTS.md tells what was tried.
struct RankedConstants {
  double share = 0.05;  // of mu^2, that the ranker may have; the counts have the rest
  uint64_t steps = 200;
  // That it learns on, and that it puts in order; twice as many, for what was learnt on the
  // likeliest holds of those behind them.
  uint64_t candidates = 100, candidates_asked = 200;
  uint64_t last_items = 6;
  double focus = 0.3, learning_rate = 0.03;

  // "ranker_steps=200", as TrainedConstants::Set has it; all names begin so.
  Status Set(std::string_view setting);
  static std::vector<std::string_view> Names();
  // All of them, in words.
  std::string Text() const;
};

}  // namespace tacit::app
