#include "model/transitions/cells.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/transitions/cell_walk.h"
#include "model/transitions/pairs.h"
#include "model/transitions/score_bins.h"

namespace tacit::model::transitions {
namespace {

// A score above which there are enough cells, or all that can be found.
struct Threshold {
  float least = 0;
  uint64_t above = 0;  // cells in the bins above that of `least`
};

// Returns the largest threshold, of a bin's lower end, with at least `count` cells above it; a
// lower one if there are fewer cells. If cells of nearly equal scores are too many to be walked,
// returns a threshold above them.
Threshold FindThreshold(const Walk& walk, uint64_t count, WorkerPool& workers) {
  constexpr float kLeast = 0x1p-120f, kStepMost = 0.97f;
  Threshold reached{.least = walk.Most()};
  float step = 0x1p-4f, too_low = 0;
  while (reached.least > kLeast) {
    const float threshold = LeastOfScoreBin(ScoreBin(std::max(reached.least * step, kLeast)));
    std::vector<std::vector<uint64_t>> bins(workers.workers(), std::vector<uint64_t>(kScoreBins));
    if (threshold <= too_low ||
        !walk.AtLeast(threshold, workers, [&](const Scored& scored, size_t worker) {
          ++bins[worker][ScoreBin(scored.score)];
        })) {
      too_low = std::max(too_low, threshold);
      step = std::sqrt(step);
      if (step > kStepMost) return reached;
      continue;
    }
    reached = {.least = threshold};
    uint64_t found = 0;
    for (size_t bin = kScoreBins; bin-- > ScoreBin(threshold);) {
      reached.above = found;
      for (const auto& part : bins) found += part[bin];
      if (found >= count) return {LeastOfScoreBin(static_cast<uint32_t>(bin)), reached.above};
    }
    // The nearer to enough, the shorter the step: cells are many more at every one.
    step =
        std::clamp(static_cast<float>(found) / (1.5f * static_cast<float>(count)), 0x1p-4f, 0.7f);
  }
  return reached;
}

// Keeps the best of what is added, at most `count`, in twice the memory.
class Best {
 public:
  explicit Best(uint64_t count) : count_(count) {}
  void Add(const Scored& scored) {
    if (!(scored < worst_)) return;
    kept_.push_back(scored);
    if (kept_.size() >= 2 * count_) Trim();
  }
  std::vector<Scored> Take() && {
    Trim();
    return std::move(kept_);
  }

 private:
  void Trim() {
    if (kept_.size() <= count_) return;
    const auto last = kept_.begin() + static_cast<ptrdiff_t>(count_ - 1);
    std::nth_element(kept_.begin(), last, kept_.end());
    worst_ = *last;
    kept_.resize(count_);
  }

  const uint64_t count_;
  std::vector<Scored> kept_;
  Scored worst_ = {.score = -1};  // that could still be kept; all scores are above -1
};

Cells ToCells(std::vector<Scored> scored, uint32_t items) {
  std::ranges::sort(scored, {}, [](const Scored& s) { return std::pair(s.a, s.b); });
  Cells cells;
  cells.row_end.resize(items);
  cells.column.reserve(scored.size());
  for (const Scored& s : scored) {
    cells.column.push_back(s.b);
    ++cells.row_end[s.a];
  }
  for (uint32_t a = 1; a < items; ++a) cells.row_end[a] += cells.row_end[a - 1];
  return cells;
}

}  // namespace

uint32_t Cells::Find(uint32_t a, uint32_t b) const {
  const auto row = Row(a);
  const auto at = std::lower_bound(row.begin(), row.end(), b);
  if (at == row.end() || *at != b) return kNone;
  return static_cast<uint32_t>(row_begin(a) + static_cast<uint64_t>(at - row.begin()));
}

// Walks twice, so that no more is held than the cells and those of the last bin: rows are counted
// first, and filled then.
Cells TopCells(const Prior& prior, uint64_t count, const Options& options, WorkerPool& workers) {
  TACIT_CHECK(count < Cells::kNone, "a cell's place is a number of 32 bits");
  Cells cells;
  cells.row_end.resize(prior.items());
  if (prior.items() < 2 || count == 0) return cells;
  const Walk walk(prior, count, options);
  const Threshold threshold = FindThreshold(walk, count, workers);
  const uint32_t last_bin = ScoreBin(threshold.least);
  const uint64_t of_last_bin = count - threshold.above;
  std::vector<Best> parts(workers.workers(), Best(of_last_bin));
  // A row is one worker's.
  walk.AtLeast(threshold.least, workers, [&](const Scored& scored, size_t worker) {
    if (ScoreBin(scored.score) > last_bin)
      ++cells.row_end[scored.a];
    else
      parts[worker].Add(scored);
  });
  Best best(of_last_bin);
  for (Best& part : parts)
    for (const Scored& scored : std::move(part).Take()) best.Add(scored);
  const std::vector<Scored> last = std::move(best).Take();
  for (const Scored& scored : last) ++cells.row_end[scored.a];
  std::partial_sum(cells.row_end.begin(), cells.row_end.end(), cells.row_end.begin());
  cells.column.resize(cells.row_end.back());
  // Rows are filled from their ends.
  std::vector<uint64_t> at = cells.row_end;
  const auto put = [&](const Scored& scored) { cells.column[--at[scored.a]] = scored.b; };
  walk.AtLeast(threshold.least, workers, [&](const Scored& scored, size_t) {
    if (ScoreBin(scored.score) > last_bin) put(scored);
  });
  std::ranges::for_each(last, put);
  workers.Run(prior.items(), [&](size_t begin, size_t end, size_t) {
    for (auto a = static_cast<uint32_t>(begin); a < end; ++a)
      std::sort(cells.column.begin() + static_cast<ptrdiff_t>(cells.row_begin(a)),
                cells.column.begin() + static_cast<ptrdiff_t>(cells.row_end[a]));
  });
  return cells;
}

Cells SeenCells(const Histories& histories, uint32_t lags, std::span<const uint32_t> known) {
  std::vector<Scored> pairs;
  const auto by_cell = [](const Scored& s) { return std::pair(s.a, s.b); };
  const auto merge = [&] {
    std::ranges::sort(pairs, {}, by_cell);
    const auto rest = std::ranges::unique(pairs, {}, by_cell);
    pairs.erase(rest.begin(), rest.end());
  };
  size_t merge_at = size_t{1} << 22;
  for (size_t unit = 0; unit < histories.units(); ++unit) {
    ForNewPairs(histories.Of(unit), known.empty() ? 0 : known[unit], lags, 1,
                [&](uint32_t a, uint32_t b, double) { pairs.push_back({.a = a, .b = b}); });
    if (pairs.size() < merge_at) continue;
    merge();
    merge_at = 2 * pairs.size() + (size_t{1} << 22);
  }
  merge();
  return ToCells(std::move(pairs), histories.catalogue);
}

Cells Union(const Cells& one, const Cells& other) {
  TACIT_CHECK(one.items() == other.items());
  Cells cells;
  cells.row_end.reserve(one.items());
  cells.column.reserve(std::max(one.size(), other.size()));
  for (uint32_t a = 0; a < one.items(); ++a) {
    std::ranges::set_union(one.Row(a), other.Row(a), std::back_inserter(cells.column));
    cells.row_end.push_back(cells.column.size());
  }
  TACIT_CHECK(cells.size() < Cells::kNone, "a cell's place is a number of 32 bits");
  return cells;
}

Cells Among(const Cells& cells, std::span<const uint32_t> places) {
  Cells some;
  some.row_end.reserve(cells.items());
  some.column.reserve(places.size());
  size_t i = 0;
  for (uint32_t a = 0; a < cells.items(); ++a) {
    for (; i < places.size() && places[i] < cells.row_end[a]; ++i)
      some.column.push_back(cells.column[places[i]]);
    some.row_end.push_back(some.column.size());
  }
  return some;
}

}  // namespace tacit::model::transitions
