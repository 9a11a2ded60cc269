#include "model/transitions/cells.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/transitions/pairs.h"
#include "model/transitions/score_bins.h"

namespace tacit::model::transitions {
namespace {

// A walk may look at this many cells, and at a few for each that is wanted. These take about a
// second.
constexpr uint64_t kWalkedLeast = uint64_t{1} << 28;
constexpr uint64_t kWalkedForEach = 8;

struct Scored {
  float score = 0;
  uint32_t a = 0, b = 0;
  // Orders larger scores first, of equals the earlier cell.
  friend bool operator<(const Scored& x, const Scored& y) {
    if (x.score != y.score) return x.score > y.score;
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  }
};

// The largest factor of kinship by what is known of many pairs at once: everything but the distance
// of their ids, which is small for few pairs alone.
class KinshipBounds {
 public:
  // The largest factor of pairs whose ids are far apart, and of all pairs.
  struct Most {
    float far = 0, any = 0;
    void Raise(const Most& other) {
      far = std::max(far, other.far);
      any = std::max(any, other.any);
    }
  };

  explicit KinshipBounds(const Prior& prior) {
    if (prior.buckets().tables() <= Buckets::kKinship) {
      most_.fill({1, 1});
      return;
    }
    const std::span<const float> factors = prior.factors(Buckets::kKinship);
    for (Buckets::Kin kin; kin.overlap < Buckets::kOverlaps; ++kin.overlap)
      for (kin.same_genre = 0; kin.same_genre < 2; ++kin.same_genre)
        for (kin.word = 0; kin.word < 2; ++kin.word)
          for (kin.years = Buckets::kYearSteps; kin.years-- > 0;) Fill(kin, factors);
  }

  // Returns the largest factors where the step of years is from kin.years to `last_years`. With
  // kin.word a rare word may be shared, or not.
  const Most& Of(const Buckets::Kin& kin, uint32_t last_years) const {
    return most_[At(kin, last_years)];
  }
  // Returns the largest factor where the main genre is the same, or is not.
  float Of(bool same_genre) const {
    Most most;
    for (uint32_t overlap = 0; overlap < Buckets::kOverlaps; ++overlap)
      most.Raise(Of({.overlap = overlap, .word = 1, .same_genre = same_genre ? 1u : 0u},
                    Buckets::kYearSteps - 1));
    return most.any;
  }

 private:
  // Sets those of the steps that begin with kin.years; those that begin later are there already, as
  // are those of pairs without a word.
  void Fill(const Buckets::Kin& kin, std::span<const float> factors) {
    Most own;
    for (Buckets::Kin pair = kin; pair.ids < Buckets::kIdSteps; ++pair.ids) {
      const float factor = factors[Buckets::KinshipBucket(pair)];
      own.Raise({Buckets::AreFar(pair.ids) ? factor : 0, factor});
    }
    for (uint32_t last = kin.years; last < Buckets::kYearSteps; ++last) {
      Most& most = most_[At(kin, last)];
      most = own;
      Buckets::Kin other = kin;
      ++other.years;
      if (last > kin.years) most.Raise(Of(other, last));
      other = kin;
      other.word = 0;
      if (kin.word != 0) most.Raise(Of(other, last));
    }
  }
  static size_t At(const Buckets::Kin& kin, uint32_t last_years) {
    return (((kin.years * Buckets::kYearSteps + last_years) * Buckets::kOverlaps + kin.overlap) *
                2 +
            kin.same_genre) *
               2 +
           kin.word;
  }
  // They are kept per first and last step of years, of which there are few.
  static constexpr size_t kBounds =
      size_t{Buckets::kYearSteps} * Buckets::kYearSteps * Buckets::kOverlaps * 4;
  std::array<Most, kBounds> most_ = {};
};

// Walks the cells whose score is at least a threshold. Items are in groups that the tables of marks
// cannot tell apart, and within these in parts of the same genres: so nearly all of a pair's
// kinship is known before the pair is looked at, and few are looked at in vain.
class Walk {
 public:
  // A walk is for `count` cells.
  Walk(const Prior& prior, uint64_t count, const Options& options)
      : prior_(prior),
        walked_most_(std::max(kWalkedLeast, kWalkedForEach * count)),
        kinship_(prior) {
    const auto popularity = prior.popularity();
    for (const double p : popularity) {
      from_.push_back(static_cast<float>(std::pow(p, 1 - options.support_from)));
      to_.push_back(static_cast<float>(std::pow(p, 1 - options.support_to)));
    }
    const PublicItems& catalogue = prior.buckets().catalogue();
    described_ = catalogue.described();
    std::map<Buckets::Marks, std::map<uint64_t, Part>> groups;
    for (uint32_t i = 0; i < prior.items(); ++i) {
      const ItemFeatures& features = described_ ? catalogue.features(i) : kNothing;
      Part& part = groups[prior.buckets().marks(i)][features.genres];
      part.items.push_back(i);
      part.words |= features.words;
      part.first_year = std::min(part.first_year, features.year);
      part.last_year = std::max(part.last_year, features.year);
    }
    for (auto& [marks, parts] : groups) {
      Group group{.marks = marks};
      for (auto& [genres, part] : parts) {
        std::ranges::stable_sort(part.items,
                                 [&](uint32_t a, uint32_t b) { return to_[a] > to_[b]; });
        part.genres = genres;
        if (described_) {
          part.by_id = part.items;
          std::ranges::stable_sort(part.by_id, {}, [&](uint32_t item) { return IdOf(item); });
        }
        group.parts.push_back(std::move(part));
      }
      // Parts of the most popular items first: those behind one that is out are out too.
      std::ranges::stable_sort(group.parts, [&](const Part& a, const Part& b) {
        return to_[a.items[0]] > to_[b.items[0]];
      });
      groups_.push_back(std::move(group));
    }
  }

  // Calls visit(Scored, worker); the same cells with the same scores every time. All cells of an
  // item a are visited by one worker. Returns false, after only a part of them, if more than
  // walked_most_ cells would have to be looked at.
  template <class Visit>
  bool AtLeast(float threshold, WorkerPool& workers, const Visit& visit) const {
    const size_t stride = workers.workers();
    std::atomic<uint64_t> walked = 0;
    workers.Run(stride, [&](size_t begin, size_t end, size_t worker) {
      for (size_t first = begin; first < end; ++first)
        for (size_t g = first; g < groups_.size(); g += stride)
          for (const Group& to : groups_) {
            if (walked > walked_most_) return;
            WalkGroups(groups_[g], to, threshold, &walked,
                       [&](const Scored& scored) { visit(scored, worker); });
          }
    });
    return walked <= walked_most_;
  }

  // A bound that no cell's score exceeds.
  float Most() const {
    float most = 0;
    for (const Group& from : groups_)
      for (const Group& to : groups_)
        most = std::max(most, Popular(from) * to_[to.parts[0].items[0]] * Bound(from, to));
    return Above(most);
  }

 private:
  struct Part {
    uint64_t genres = 0, words = 0;  // words: a bit for each that some item has
    int16_t first_year = std::numeric_limits<int16_t>::max(), last_year = 0;
    std::vector<uint32_t> items = {};  // by falling popularity
    std::vector<uint32_t> by_id = {};  // the same, by the publisher's id; empty: all ids are far
  };
  struct Group {
    Buckets::Marks marks = {};
    std::vector<Part> parts = {};
  };
  static constexpr ItemFeatures kNothing = {};

  // Raises a bound so that it stays one when products are rounded.
  static float Above(float x) { return x * (1 + 0x1p-18f); }
  float Popular(const Group& from) const { return from_[from.parts[0].items[0]]; }
  float Bound(const Group& from, const Group& to) const {
    const bool same = from.marks[Buckets::kGenres] == to.marks[Buckets::kGenres];
    return Above(prior_.MarkFactor(from.marks, to.marks) * kinship_.Of(same));
  }
  int64_t IdOf(uint32_t item) const { return prior_.buckets().catalogue().features(item).id; }
  // The most of kinship from items of these years and words to those of a part.
  KinshipBounds::Most KinshipMost(int16_t first_year, int16_t last_year, uint64_t words,
                                  uint32_t overlap, bool same, const Part& to) const {
    Buckets::Kin kin{.overlap = overlap,
                     .word = (words & to.words) != 0 ? 1u : 0u,
                     .same_genre = same ? 1u : 0u};
    // All of a part have a year, or none has.
    if (last_year == 0 || to.last_year == 0) {
      kin.years = Buckets::kYearSteps - 1;
      return kinship_.Of(kin, kin.years);
    }
    kin.years = Buckets::YearStep(to.first_year - last_year);
    return kinship_.Of(kin, Buckets::YearStep(to.last_year - first_year));
  }

  template <class Visit>
  void WalkGroups(const Group& from, const Group& to, float threshold,
                  std::atomic<uint64_t>* walked, const Visit& visit) const {
    const float bound = Bound(from, to);
    const float popular = to_[to.parts[0].items[0]];
    if (Popular(from) * popular * bound < threshold) return;
    const float marks = prior_.MarkFactor(from.marks, to.marks);
    const bool same = from.marks[Buckets::kGenres] == to.marks[Buckets::kGenres];
    for (const Part& left : from.parts) {
      if (from_[left.items[0]] * popular * bound < threshold) return;
      for (const Part& right : to.parts) {
        if (from_[left.items[0]] * to_[right.items[0]] * bound < threshold) break;
        WalkParts(left, right, marks, same, threshold, walked, visit);
      }
      if (*walked > walked_most_) return;
    }
  }

  template <class Visit>
  void WalkParts(const Part& from, const Part& to, float marks, bool same, float threshold,
                 std::atomic<uint64_t>* walked, const Visit& visit) const {
    // A bound of an item's own is worth its work where there is much to leave out.
    constexpr size_t kLargePart = 16;
    const bool large = described_ && to.items.size() >= kLargePart;
    const uint32_t overlap = Buckets::OverlapStep(from.genres, to.genres);
    const auto bound_of = [&](int16_t first_year, int16_t last_year, uint64_t words) {
      if (!described_) return KinshipBounds::Most{Above(marks), Above(marks)};
      const auto most = KinshipMost(first_year, last_year, words, overlap, same, to);
      return KinshipBounds::Most{Above(marks * most.far), Above(marks * most.any)};
    };
    const auto bound = bound_of(from.first_year, from.last_year, from.words);
    uint64_t looked_at = 0;
    for (const uint32_t a : from.items) {
      const float popular = from_[a] * to_[to.items[0]];
      if (popular * bound.any < threshold || looked_at > walked_most_) break;
      auto own = bound;
      if (large) {
        const ItemFeatures& features = prior_.buckets().catalogue().features(a);
        own = bound_of(features.year, features.year, features.words);
      }
      const auto is_out = [&](uint32_t b, float most) {
        return from_[a] * to_[b] * most < threshold;
      };
      const auto look = [&](uint32_t b) {
        ++looked_at;
        if (a == b) return;
        const float score = from_[a] * to_[b] * (marks * prior_.KinshipFactor(a, b));
        if (score >= threshold) visit(Scored{score, a, b});
      };
      if (!large) {
        for (const uint32_t b : to.items) {
          if (is_out(b, own.any)) break;
          if (!is_out(b, own.far) || AreNear(a, b)) look(b);
        }
        continue;
      }
      for (const uint32_t b : to.items) {
        if (is_out(b, own.far)) break;
        look(b);
      }
      // Less popular items come into question where their ids are near.
      if (own.any <= own.far || popular * own.any < threshold) continue;
      const auto first = std::ranges::partition_point(
          to.by_id, [&](uint32_t b) { return IdOf(b) < IdOf(a) && !AreNear(a, b); });
      for (auto b = first; b != to.by_id.end() && AreNear(a, *b); ++b)
        if (is_out(*b, own.far) && !is_out(*b, own.any)) look(*b);
    }
    if (looked_at > 0) walked->fetch_add(looked_at, std::memory_order_relaxed);
  }
  bool AreNear(uint32_t a, uint32_t b) const {
    const auto x = static_cast<uint64_t>(IdOf(a)), y = static_cast<uint64_t>(IdOf(b));
    return (IdOf(b) > IdOf(a) ? y - x : x - y) < Buckets::kFarIds;
  }

  const Prior& prior_;
  const uint64_t walked_most_;
  const KinshipBounds kinship_;
  bool described_ = false;
  std::vector<float> from_, to_;  // p_a^(1 - support_from), p_b^(1 - support_to)
  std::vector<Group> groups_;
};

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
