#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::lab {

// The constants of transitions+ranker, set before the data is seen. They were chosen on
// MovieLens-1M, on the items before the last; tests/bench/RESULTS.md has the experiments.
struct RankedConstants {
  double share = 0.05;  // of mu^2, for the ranker; the counts get the rest
  uint64_t steps = 200;
  // Candidates that the ranker learns on, and candidates that it puts in order. The latter are
  // twice as many, since what it learnt on the likeliest also holds for those after them.
  uint64_t candidates = 100, candidates_asked = 200;
  uint64_t last_items = 6;
  double focus = 0.3, learning_rate = 0.03;

  // Reads "ranker_steps=200", as TrainedConstants::Set does; all names begin with ranker_.
  Status Set(std::string_view setting);
  static std::vector<std::string_view> Names();
  // All constants as text.
  std::string Text() const;
};

}  // namespace tacit::lab
