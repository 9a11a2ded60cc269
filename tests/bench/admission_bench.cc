// Compares the row cache's admission with others on the same rows: the share of a step's rows that
// are in memory, for steps drawn by Zipf's law, as it is and with values that others take the place
// of. Beside it stand the usual least recently used, a clock whose newcomers count as used, and
// TinyLFU, which asks a sketch of frequencies who is to stay.
//   admission_bench [ROWS [STEPS]]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <list>
#include <memory>
#include <random>
#include <unordered_map>

#include "store/rows/row_cache.h"

namespace tacit::store {
namespace {

constexpr uint32_t kDim = 16;
constexpr size_t kDraws = 4096;
constexpr size_t kRowCost = kDim * sizeof(float) + 32;  // with its share of the cache's table

// Says whether a row was there, and takes it in.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual bool Want(uint64_t row) = 0;
};

class LeastRecent final : public Policy {
 public:
  explicit LeastRecent(size_t most) : most_(most) {}
  bool Want(uint64_t row) override {
    if (const auto found = at_.find(row); found != at_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    if (at_.size() >= most_) {
      at_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(row);
    at_[row] = order_.begin();
    return false;
  }

 private:
  const size_t most_;
  std::list<uint64_t> order_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> at_;
};

// A clock; with a sketch, the hand's row and the newcomer are compared by it (TinyLFU).
class Clock final : public Policy {
 public:
  Clock(size_t most, bool newcomers_used, bool sketch)
      : rows_(most, kNone), used_(most), newcomers_used_(newcomers_used) {
    if (sketch) counts_.resize(std::bit_ceil(most * 8));
  }
  bool Want(uint64_t row) override {
    if (!counts_.empty()) Count(row);
    if (const auto found = at_.find(row); found != at_.end()) {
      used_[found->second] = true;
      return true;
    }
    while (rows_[hand_] != kNone && used_[hand_]) {
      used_[hand_] = false;
      Move();
    }
    const bool stays =
        rows_[hand_] != kNone && !counts_.empty() && Counted(rows_[hand_]) >= Counted(row);
    if (!stays) {
      at_.erase(rows_[hand_]);
      rows_[hand_] = row;
      used_[hand_] = newcomers_used_;
      at_[row] = hand_;
    }
    Move();
    return false;
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  void Move() { hand_ = (hand_ + 1) % rows_.size(); }
  template <class Each>
  void ForCounts(uint64_t row, const Each& each) {
    uint64_t hash = row * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 4; ++i) {
      hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
      each(counts_[hash & (counts_.size() - 1)]);
    }
  }
  uint8_t Counted(uint64_t row) {
    uint8_t least = UINT8_MAX;
    ForCounts(row, [&](uint8_t count) { least = std::min(least, count); });
    return least;
  }
  void Count(uint64_t row) {
    const uint8_t least = Counted(row);
    if (least < 15) ForCounts(row, [&](uint8_t& count) { count += count == least; });
    if (++counted_ < rows_.size() * 10) return;
    counted_ = 0;
    for (uint8_t& count : counts_) count /= 2;
  }

  std::vector<uint64_t> rows_;
  std::vector<bool> used_;
  const bool newcomers_used_;
  std::vector<uint8_t> counts_;
  std::unordered_map<uint64_t, size_t> at_;
  size_t hand_ = 0, counted_ = 0;
};

// Reads zeros.
class NoBacking final : public RowBacking {
 public:
  Status Read(std::span<const uint64_t>, std::span<float* const> out) override {
    for (float* row : out) std::fill_n(row, kDim, 0.0f);
    return {};
  }
  CommitSeq next() const override { return CommitSeq(1); }
  CommitSeq folded() const override { return CommitSeq(0); }
  void RequestFold() override {}
  void FoldThrough(CommitSeq) override {}
};

class Steps {
 public:
  // Every `changes` steps (0: never) a hundredth of the table's ranks go to other rows.
  Steps(uint64_t rows, double exponent, uint64_t changes)
      : rows_(rows), exponent_(exponent), changes_(changes) {}
  std::vector<uint64_t> Next() {
    const uint64_t shift = changes_ == 0 ? 0 : step_ / changes_ * (rows_ / 100);
    ++step_;
    std::vector<uint64_t> rows(kDraws);
    const double top = std::pow(static_cast<double>(rows_) + 1, 1 - exponent_);
    for (uint64_t& row : rows) {
      const double u = std::uniform_real_distribution<double>()(random_);
      const double rank = std::pow(1 + u * (top - 1), 1 / (1 - exponent_)) - 1;
      row = (std::min<uint64_t>(static_cast<uint64_t>(rank), rows_ - 1) + shift) % rows_;
    }
    std::ranges::sort(rows);
    const auto repeats = std::ranges::unique(rows);
    rows.erase(repeats.begin(), repeats.end());
    return rows;
  }

 private:
  const uint64_t rows_;
  const double exponent_;
  const uint64_t changes_;
  uint64_t step_ = 0;
  std::mt19937_64 random_{5};
};

struct Trace {
  uint64_t rows = 0, steps = 0, changes = 0;
  double exponent = 0, share = 0;
};

// Takes the second half of the steps, when the cache is full.
template <class Hits>
double ShareOfHits(const Trace& trace, const Hits& hits) {
  Steps steps(trace.rows, trace.exponent, trace.changes);
  uint64_t there = 0, all = 0;
  for (uint64_t step = 0; step < trace.steps; ++step) {
    const auto rows = steps.Next();
    const uint64_t now = hits(rows);
    if (step * 2 < trace.steps) continue;
    there += now;
    all += rows.size();
  }
  return static_cast<double>(there) / static_cast<double>(all);
}

double OfPolicy(const Trace& trace, Policy& policy) {
  return ShareOfHits(trace, [&](const std::vector<uint64_t>& rows) {
    return static_cast<uint64_t>(
        std::ranges::count_if(rows, [&](uint64_t row) { return policy.Want(row); }));
  });
}

double OfRowCache(const Trace& trace, size_t most) {
  RowLayout layout;
  layout.space.AddTable("table", trace.rows, kDim);
  layout.state_floats = {0};
  layout.initial_scale = {0};
  NoBacking backing;
  RowCache cache(layout, most * kRowCost, backing);
  std::vector<float*> places;
  return ShareOfHits(trace, [&](const std::vector<uint64_t>& rows) {
    places.resize(rows.size());
    const uint64_t before = cache.stats().hits;
    TACIT_CHECK(cache.Gather(rows, places).has_value());
    return cache.stats().hits - before;
  });
}

int Main(int argc, char** argv) {
  const uint64_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2'000'000;
  const uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4'000;
  fmt::print("{} rows, steps of {} draws: share of a step's rows in memory\n", rows, kDraws);
  fmt::print("zipf   memory  changes  row cache    LRU  clock  TinyLFU\n");
  for (const double exponent : {1.05, 0.9})
    for (const double share : {0.01, 0.1})
      for (const uint64_t changes : {uint64_t{0}, steps / 20}) {
        const Trace trace{rows, steps, changes, exponent, share};
        const auto most = static_cast<size_t>(share * static_cast<double>(rows));
        LeastRecent least(most);
        Clock clock(most, true, false), tiny(most, false, true);
        fmt::print("{:4.2f} {:7.0f}% {:>8} {:10.3f} {:6.3f} {:6.3f} {:8.3f}\n", exponent,
                   100 * share, changes == 0 ? "none" : fmt::to_string(changes),
                   OfRowCache(trace, most), OfPolicy(trace, least), OfPolicy(trace, clock),
                   OfPolicy(trace, tiny));
      }
  return 0;
}

}  // namespace
}  // namespace tacit::store

int main(int argc, char** argv) { return tacit::store::Main(argc, argv); }
