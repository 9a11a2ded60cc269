#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "noise/noise.h"

namespace tacit::noise {

// The query that draws belong to. The product's sources do not look at it: a source that records
// draws compares what one unit moves with what the query says, and with what is charged.
struct Declared {
  std::string_view query = {};  // empty: no query
  // The length, in steps of the grid, by which one unit moves the numbers that the draws are added
  // to, all together. 0: no number of theirs depends on records.
  double bound = 0;
  // Numbers whose noise is added outside of the source, as to the scores of a top-k. One unit moves
  // each by `bound` at most, and all in one direction.
  std::span<const double> scores = {};
  // The rows that the last of the numbers, or the scores, belong to, ascending, where which rows
  // there are follows from records.
  std::span<const uint64_t> rows = {};
};

// All draws from `noise` belong to the query as long as this lives. A declaration within another
// ends both.
class Declaration {
 public:
  Declaration(NoiseSource& noise, const Declared& declared) : noise_(noise) {
    noise_.Declare(declared);
  }
  ~Declaration() { noise_.Declare({}); }
  Declaration(const Declaration&) = delete;
  Declaration& operator=(const Declaration&) = delete;

 private:
  NoiseSource& noise_;
};

}  // namespace tacit::noise
