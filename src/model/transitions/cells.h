#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/options.h"
#include "model/transitions/prior.h"

namespace tacit::model::transitions {

// A set of ordered pairs of items, ascending by the first, then by the second; a cell's place
// identifies it. A value; at most 2^32 - 1 of them.
struct Cells {
  std::vector<uint64_t> row_end;  // per item a: end of its run in `column`
  std::vector<uint32_t> column;   // b

  static constexpr uint32_t kNone = ~uint32_t{0};

  size_t size() const { return column.size(); }
  uint32_t items() const { return static_cast<uint32_t>(row_end.size()); }
  uint64_t row_begin(uint32_t a) const { return a == 0 ? 0 : row_end[a - 1]; }
  std::span<const uint32_t> Row(uint32_t a) const {
    return std::span(column).subspan(row_begin(a), row_end[a] - row_begin(a));
  }
  // The cell's place, or kNone.
  uint32_t Find(uint32_t a, uint32_t b) const;
};

// Returns the `count` cells of the largest prior / (p_a^from p_b^to), or fewer if there are not
// that many; of equals the earlier. Found by walking items of equal bins in order of popularity
// down to a threshold, so that work is that of the cells near it and never of all pairs. If
// millions of items cannot be told apart, cells of one score may be too many to be walked: the
// result then has none of that score, and fewer cells in all.
Cells TopCells(const Prior& prior, uint64_t count, const Options& options, WorkerPool& workers);

// Returns every pair that is in the histories, except those of each unit's first `known` items
// (empty: no items are known): for experiments without privacy.
Cells SeenCells(const Histories& histories, uint32_t lags, std::span<const uint32_t> known = {});

// Returns the cells that are in either set.
Cells Union(const Cells& one, const Cells& other);
// Returns the cells at these places, ascending.
Cells Among(const Cells& cells, std::span<const uint32_t> places);

}  // namespace tacit::model::transitions
