#include "model/transitions/cells.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/check.h"
#include "model/transitions/pairs.h"

namespace tacit::model::transitions {
namespace {

// Sixteen bins an octave of scores: floats' upper bits are their logarithm, nearly, and ascend as
// positive floats do.
constexpr int kDropBits = 19;
uint32_t BinOf(float score) { return std::bit_cast<uint32_t>(score) >> kDropBits; }
float LeastOf(uint32_t bin) { return std::bit_cast<float>(bin << kDropBits); }
constexpr size_t kBins = size_t{1} << (31 - kDropBits);
// A walk of this many cells takes about a second.
constexpr uint64_t kWalkedMost = uint64_t{1} << 28;

struct Scored {
  float score = 0;
  uint32_t a = 0, b = 0;
  // Orders larger scores first, of equals the earlier cell.
  friend bool operator<(const Scored& x, const Scored& y) {
    if (x.score != y.score) return x.score > y.score;
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  }
};

// Walks the cells whose score is at least a threshold.
class Walk {
 public:
  Walk(const Prior& prior, const Options& options) : prior_(prior) {
    const auto popularity = prior.popularity();
    for (const double p : popularity) {
      from_.push_back(static_cast<float>(std::pow(p, 1 - options.support_from)));
      to_.push_back(static_cast<float>(std::pow(p, 1 - options.support_to)));
    }
    std::map<Buckets::Marks, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < prior.items(); ++i) groups[prior.buckets().marks(i)].push_back(i);
    for (auto& [marks, items] : groups) {
      std::ranges::stable_sort(items, [&](uint32_t a, uint32_t b) { return to_[a] > to_[b]; });
      groups_.push_back({marks, std::move(items)});
    }
    most_ = {Above(prior.KinshipMost(false)), Above(prior.KinshipMost(true))};
  }

  // Calls visit(Scored, worker); the same cells with the same scores every time. Returns false,
  // after only a part of them, if more than kWalkedMost cells would have to be looked at.
  template <class Visit>
  bool AtLeast(float threshold, WorkerPool& workers, const Visit& visit) const {
    const size_t stride = workers.workers();
    std::atomic<uint64_t> walked = 0;
    workers.Run(stride, [&](size_t begin, size_t end, size_t worker) {
      for (size_t first = begin; first < end; ++first)
        for (size_t g = first; g < groups_.size(); g += stride)
          for (const Group& to : groups_) {
            if (walked > kWalkedMost) return;
            WalkGroups(groups_[g], to, threshold, &walked,
                       [&](const Scored& scored) { visit(scored, worker); });
          }
    });
    return walked <= kWalkedMost;
  }

  // A bound that no cell's score exceeds.
  float Most() const {
    float most = 0;
    for (const Group& from : groups_)
      for (const Group& to : groups_)
        most = std::max(most, from_[from.items[0]] * to_[to.items[0]] * Bound(from, to));
    return Above(most);
  }

 private:
  struct Group {
    Buckets::Marks marks;
    std::vector<uint32_t> items;  // by falling popularity
  };

  // Raises a bound so that it stays one when products are rounded.
  static float Above(float x) { return x * (1 + 0x1p-18f); }
  float Bound(const Group& from, const Group& to) const {
    const bool same = from.marks[Buckets::kGenres] == to.marks[Buckets::kGenres];
    return Above(prior_.MarkFactor(from.marks, to.marks) * most_[same ? 1 : 0]);
  }

  template <class Visit>
  void WalkGroups(const Group& from, const Group& to, float threshold,
                  std::atomic<uint64_t>* walked, const Visit& visit) const {
    const float bound = Bound(from, to);
    for (const uint32_t a : from.items) {
      if (from_[a] * to_[to.items[0]] * bound < threshold || *walked > kWalkedMost) return;
      uint64_t looked_at = 0;
      for (const uint32_t b : to.items) {
        if (from_[a] * to_[b] * bound < threshold) break;
        ++looked_at;
        if (a == b) continue;
        const float score = from_[a] * to_[b] * prior_.Factor(a, b);
        if (score >= threshold) visit(Scored{score, a, b});
      }
      walked->fetch_add(looked_at, std::memory_order_relaxed);
    }
  }

  const Prior& prior_;
  std::vector<float> from_, to_;  // p_a^(1 - support_from), p_b^(1 - support_to)
  std::vector<Group> groups_;
  std::array<float, 2> most_ = {};
};

// Returns the largest threshold, of a bin's lower end, with at least `count` cells above it; a
// lower one if there are fewer cells. If cells of nearly equal scores are too many to be walked,
// returns a threshold above them.
float FindThreshold(const Walk& walk, uint64_t count, WorkerPool& workers) {
  constexpr float kLeast = 0x1p-120f, kStepMost = 0.97f;
  float reached = walk.Most(), step = 0x1p-4f;
  while (reached > kLeast) {
    const float threshold = LeastOf(BinOf(std::max(reached * step, kLeast)));
    std::vector<std::vector<uint64_t>> bins(workers.workers(), std::vector<uint64_t>(kBins));
    if (!walk.AtLeast(threshold, workers, [&](const Scored& scored, size_t worker) {
          ++bins[worker][BinOf(scored.score)];
        })) {
      step = std::sqrt(step);
      if (step > kStepMost) return reached;
      continue;
    }
    uint64_t found = 0;
    for (size_t bin = kBins; bin-- > 0;) {
      for (const auto& part : bins) found += part[bin];
      if (found >= count) return LeastOf(static_cast<uint32_t>(bin));
    }
    reached = threshold;
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

Cells TopCells(const Prior& prior, uint64_t count, const Options& options, WorkerPool& workers) {
  TACIT_CHECK(count < Cells::kNone, "a cell's place is a number of 32 bits");
  if (prior.items() < 2 || count == 0) return ToCells({}, prior.items());
  const Walk walk(prior, options);
  std::vector<Best> parts(workers.workers(), Best(count));
  walk.AtLeast(FindThreshold(walk, count, workers), workers,
               [&](const Scored& scored, size_t worker) { parts[worker].Add(scored); });
  Best best(count);
  for (Best& part : parts)
    for (const Scored& scored : std::move(part).Take()) best.Add(scored);
  return ToCells(std::move(best).Take(), prior.items());
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
