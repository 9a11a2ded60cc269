#include "model/transitions/scorer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/files/huge_pages.h"
#include "model/transitions/rules.h"

namespace tacit::model::transitions {
namespace {

// A table of groups takes 64 MB at most.
constexpr size_t kGroupsMost = 4096;
// Going over the lists of a history takes as long as going over this many items for each cell.
constexpr uint64_t kScatteredCells = 8;

std::vector<float> Powers(std::span<const double> values, double power) {
  std::vector<float> powers;
  for (const double value : values) powers.push_back(static_cast<float>(std::pow(value, power)));
  return powers;
}

// The groups of items that the tables of bins cannot tell apart.
struct BinGroups {
  std::vector<Buckets::Bins> bins;  // per group
  std::vector<uint32_t> of;         // per item
};

// `without`: a table that does not count.
BinGroups GroupByBins(const Buckets& buckets, size_t without) {
  BinGroups groups;
  std::map<Buckets::Bins, uint32_t> number;
  for (uint32_t item = 0; item < buckets.items(); ++item) {
    Buckets::Bins bins = buckets.bins(item);
    if (without < bins.size()) bins[without] = 0;
    const auto [at, fresh] = number.emplace(bins, static_cast<uint32_t>(groups.bins.size()));
    if (fresh) groups.bins.push_back(bins);
    groups.of.push_back(at->second);
  }
  return groups;
}

// The first place in [from, end) of a value that is not below `value`, found by steps that double.
const uint32_t* Gallop(const uint32_t* from, const uint32_t* end, uint32_t value) {
  ptrdiff_t step = 1;
  const uint32_t* low = from;
  while (step < end - low && low[step] < value) {
    low += step;
    step *= 2;
  }
  return std::lower_bound(low, step < end - low ? low + step + 1 : end, value);
}

bool IsLikelier(const ScoredItem& a, const ScoredItem& b) {
  return a.score != b.score ? a.score > b.score : a.item < b.item;
}

// Adds an item to a heap of the `most` best, the worst of which is first.
void AddLikely(const ScoredItem& item, size_t most, std::vector<ScoredItem>* best) {
  if (best->size() == most) {
    if (!IsLikelier(item, best->front())) return;
    std::ranges::pop_heap(*best, IsLikelier);
    best->pop_back();
  }
  best->push_back(item);
  std::ranges::push_heap(*best, IsLikelier);
}

}  // namespace

// Groups know nothing of kinship.
Cells ListedCells(const Estimate& estimate, const Options& options, WorkerPool& workers) {
  const uint32_t items = estimate.prior().items();
  if (options.IsDense(items)) return {};
  const uint64_t kin = options.KinListed(items);
  // Without noise the cells are all that occurred, and no other is likely.
  if (kin == 0 || !estimate.prior().has_kinship() || estimate.measured().noiseless)
    return estimate.cells();
  Options by_score = options;
  by_score.support_from = options.score_from, by_score.support_to = options.score_to;
  return Union(estimate.cells(), TopCells(estimate.prior(), kin, by_score, workers));
}

Scorer::Scorer(const Estimate& estimate, const Options& options, WorkerPool& workers)
    : Scorer(estimate, options, ListedCells(estimate, options, workers), workers) {}

Scorer::Scorer(const Estimate& estimate, const Options& options, const Cells& listed,
               WorkerPool& workers)
    : items_(estimate.prior().items()), options_(options), recent_(RecentWeights(options)) {
  if (options.IsDense(items_))
    FillDense(estimate, workers);
  else
    FillSparse(estimate, listed, workers);
}

void Scorer::FillDense(const Estimate& estimate, WorkerPool& workers) {
  const Cells& cells = estimate.cells();
  std::vector<float> weights(size_t{items_} * items_);
  const auto for_items = [&](const auto& row) {
    workers.Run(items_, [&](size_t begin, size_t end, size_t) {
      for (auto a = static_cast<uint32_t>(begin); a < end; ++a) row(a);
    });
  };
  for_items([&](uint32_t a) {
    float* row = &weights[size_t{a} * items_];
    for (uint32_t b = 0; b < items_; ++b) row[b] = estimate.Unmeasured(a, b);
    for (uint64_t place = cells.row_begin(a); place < cells.row_end[a]; ++place)
      row[cells.column[place]] = estimate.weights()[place];
  });
  const auto from = Powers(estimate.prior().popularity(), -options_.score_from);
  const auto to = Powers(estimate.prior().popularity(), -options_.score_to);
  dense_.reserve(weights.size());
  AdviseHugePages(dense_.data(), weights.size() * sizeof(float));
  dense_.resize(weights.size());
  const auto reverse = static_cast<float>(options_.reverse_weight);
  const auto power = static_cast<float>(options_.score_power);
  for_items([&](uint32_t a) {
    for (uint32_t b = 0; b < items_; ++b) {
      const float both =
          weights[size_t{a} * items_ + b] + reverse * weights[size_t{b} * items_ + a];
      dense_[size_t{a} * items_ + b] = std::pow(both * from[a] * to[b], power);
    }
  });
}

// Items whose popularity, years and genre share their bins are one group. If there would be too
// many, years do not count.
void Scorer::FillGroups(const Estimate& estimate, WorkerPool& workers) {
  const Prior& prior = estimate.prior();
  const Buckets& buckets = prior.buckets();
  size_t without = Buckets::kTablesMost;
  BinGroups groups = GroupByBins(buckets, without);
  if (groups.bins.size() > kGroupsMost) groups = GroupByBins(buckets, without = Buckets::kYears);
  TACIT_CHECK(groups.bins.size() <= kGroupsMost, "bins of popularity and genres are few");
  const size_t count = groups.bins.size();
  const auto factor = [&](const Buckets::Bins& a, const Buckets::Bins& b) {
    double product = 1;
    for (size_t table = 0; table < std::min(buckets.tables(), a.size()); ++table)
      if (table != without) product *= prior.factors(table)[buckets.BinBucket(table, a, b)];
    return product;
  };
  group_factor_.resize(count * count);
  workers.Run(count, [&](size_t begin, size_t end, size_t) {
    for (size_t a = begin; a < end; ++a)
      for (size_t b = 0; b < count; ++b) {
        const Buckets::Bins &from = groups.bins[a], &to = groups.bins[b];
        const double both = factor(from, to) + options_.reverse_weight * factor(to, from);
        group_factor_[a * count + b] = static_cast<float>(std::pow(both, options_.score_power));
      }
  });
  group_ = std::move(groups.of);
  group_items_.resize(items_);
  std::iota(group_items_.begin(), group_items_.end(), 0u);
  std::ranges::stable_sort(group_items_, [&](uint32_t a, uint32_t b) {
    return group_[a] != group_[b] ? group_[a] < group_[b] : to_[a] > to_[b];
  });
  group_end_.assign(count, 0);
  for (const uint32_t group : group_) ++group_end_[group];
  std::partial_sum(group_end_.begin(), group_end_.end(), group_end_.begin());
}

// Lists each item itself, and what was measured after it; with a weight for the reverse, also what
// it was measured after.
void Scorer::FillRows(const Cells& cells) {
  std::vector<uint64_t> reverse_end(items_), at(items_);
  std::vector<uint32_t> reverse;
  if (options_.reverse_weight != 0) {
    for (const uint32_t b : cells.column) ++reverse_end[b];
    for (uint32_t i = 1; i < items_; ++i) at[i] = reverse_end[i] += reverse_end[i - 1];
    for (uint32_t i = items_; i-- > 1;) at[i] = reverse_end[i - 1];
    at[0] = 0;
    reverse.resize(cells.size());
    for (uint32_t a = 0; a < items_; ++a)
      for (const uint32_t b : cells.Row(a)) reverse[at[b]++] = a;
  }
  column_.reserve(cells.size() + reverse.size() / 2 + items_);
  row_end_.reserve(items_);
  for (uint32_t a = 0; a < items_; ++a) {
    const auto measured = cells.Row(a);
    const uint64_t begin = a == 0 ? 0 : reverse_end[a - 1];
    const auto row = static_cast<ptrdiff_t>(column_.size());
    std::ranges::set_union(measured, std::span(reverse).subspan(begin, reverse_end[a] - begin),
                           std::back_inserter(column_));
    const auto own = std::lower_bound(column_.begin() + row, column_.end(), a);
    if (own == column_.end() || *own != a) column_.insert(own, a);
    row_end_.push_back(column_.size());
  }
}

void Scorer::FillSparse(const Estimate& estimate, const Cells& listed, WorkerPool& workers) {
  const auto popularity = estimate.prior().popularity();
  const double power = options_.score_power;
  from_ = Powers(popularity, (1 - options_.score_from) * power);
  to_ = Powers(popularity, (1 - options_.score_to) * power);
  const auto front = static_cast<float>(std::pow(estimate.kappa(), power));
  for (float& from : from_) from *= front;
  FillGroups(estimate, workers);
  FillRows(listed);

  difference_.resize(column_.size());
  const auto scale_from = Powers(popularity, -options_.score_from);
  const auto scale_to = Powers(popularity, -options_.score_to);
  workers.Run(items_, [&](size_t begin, size_t end, size_t) {
    for (auto a = static_cast<uint32_t>(begin); a < end; ++a)
      for (auto [i, row_end] = Row(a); i < row_end; ++i) {
        const uint32_t b = column_[i];
        const double both = estimate.Of(a, b) + options_.reverse_weight * estimate.Of(b, a);
        difference_[i] = static_cast<float>(std::pow(both * scale_from[a] * scale_to[b], power)) -
                         Unlisted(a, b);
      }
  });
}

template <class Visit>
void Scorer::ForRecent(std::span<const uint32_t> history, const Visit& visit) const {
  const size_t recent = std::min(recent_.size(), history.size());
  for (size_t age = 0; age < recent; ++age) visit(history[history.size() - 1 - age], recent_[age]);
}

void Scorer::ScoreGroups(std::span<const uint32_t> history, std::vector<float>* scores) const {
  scores->assign(groups(), 0.0f);
  ForRecent(history, [&](uint32_t a, float weight) {
    const float* factors = GroupFactors(a);
    const float from = weight * from_[a];
    for (size_t group = 0; group < scores->size(); ++group)
      (*scores)[group] += from * factors[group];
  });
}

void Scorer::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(scores.size() == items_);
  std::ranges::fill(scores, 0.0f);
  if (!dense_.empty())
    return ForRecent(history, [&](uint32_t a, float weight) {
      const float* row = &dense_[size_t{a} * items_];
      for (uint32_t b = 0; b < items_; ++b) scores[b] += weight * row[b];
    });
  ForRecent(history, [&](uint32_t a, float weight) {
    for (auto [i, end] = Row(a); i < end; ++i) scores[column_[i]] += weight * difference_[i];
  });
  std::vector<float> of_group;
  ScoreGroups(history, &of_group);
  // Differences from a larger product may leave a little less than 0.
  for (uint32_t b = 0; b < items_; ++b)
    scores[b] = std::max(0.0f, scores[b] + of_group[group_[b]] * to_[b]);
}

// The pairs that are not listed are products of two items and of their groups, so that their sum
// is one over groups.
double Scorer::MeanScore() const {
  const double pairs = static_cast<double>(items_) * items_;
  if (!dense_.empty()) return std::accumulate(dense_.begin(), dense_.end(), 0.0) / pairs;
  std::vector<double> from(groups()), to(groups());
  for (uint32_t item = 0; item < items_; ++item) {
    from[group_[item]] += from_[item];
    to[group_[item]] += to_[item];
  }
  double sum = std::accumulate(difference_.begin(), difference_.end(), 0.0);
  for (size_t a = 0; a < from.size(); ++a) {
    const float* factors = &group_factor_[a * groups()];
    double after = 0;
    for (size_t b = 0; b < to.size(); ++b) after += factors[b] * to[b];
    sum += from[a] * after;
  }
  return std::max(0.0, sum) / pairs;
}

void Scorer::ScorePairs(uint32_t item, std::span<const uint32_t> to,
                        std::span<float> scores) const {
  TACIT_CHECK(scores.size() == to.size());
  if (!dense_.empty()) {
    const float* row = &dense_[size_t{item} * items_];
    for (size_t i = 0; i < to.size(); ++i) scores[i] = row[to[i]];
    return;
  }
  const auto [begin, row_end] = Row(item);
  const uint32_t* at = column_.data() + begin;
  const uint32_t* const end = column_.data() + row_end;
  for (size_t i = 0; i < to.size(); ++i) {
    scores[i] = Unlisted(item, to[i]);
    if (at == end) continue;
    at = Gallop(at, end, to[i]);
    if (at != end && *at == to[i])
      scores[i] = std::max(0.0f, scores[i] + difference_[static_cast<size_t>(at - column_.data())]);
  }
}

bool Scorer::IsShort(std::span<const uint32_t> history) const {
  uint64_t cells = 0;
  ForRecent(history, [&](uint32_t a, float) { cells += Row(a).second - Row(a).first; });
  return kScatteredCells * cells <= items_;
}

ScoredItem Scorer::MostDue(std::span<const uint32_t> history, uint32_t item) const {
  const auto recent = history.last(std::min<size_t>(options_.recent_items, history.size()));
  ScoredItem most;
  float all = 0;
  ForRecent(history, [&](uint32_t a, float weight) {
    float score = 0;
    ScorePairs(a, {&item, 1}, {&score, 1});
    all += weight * score;
  });
  for (const uint32_t from : recent) {
    float due = 0;
    ForRecent(history, [&](uint32_t a, float weight) {
      float score = 0;
      if (a != from) return;
      ScorePairs(a, {&item, 1}, {&score, 1});
      due += weight * score;
    });
    if (due > most.score) most = {from, due};
  }
  if (all > 0) most.score = std::min(1.0f, most.score / all);
  return most;
}

void Scorer::Top(std::span<const uint32_t> history, size_t most, std::span<const uint8_t> left_out,
                 TopMemory* memory, std::vector<ScoredItem>* top) const {
  TACIT_CHECK(left_out.empty() || left_out.size() == items_);
  const auto is_out = [&](uint32_t item) { return !left_out.empty() && left_out[item] != 0; };
  top->clear();
  if (history.empty() || most == 0) return;
  memory->scores.resize(items_);
  if (!dense_.empty() || !IsShort(history)) {
    Score(history, memory->scores);
    float least = -1;  // of the best so far, once there are enough
    for (uint32_t item = 0; item < items_; ++item) {
      if (memory->scores[item] <= least || is_out(item)) continue;
      AddLikely({item, memory->scores[item]}, most, top);
      if (top->size() == most) least = top->front().score;
    }
    std::ranges::sort(*top, IsLikelier);
    std::ranges::fill(memory->scores, 0.0f);
    return;
  }

  // First those that are listed, each by its own score.
  memory->listed.resize(items_);
  ForRecent(history, [&](uint32_t a, float weight) {
    for (auto [i, end] = Row(a); i < end; ++i) {
      const uint32_t b = column_[i];
      memory->scores[b] += weight * difference_[i];
      if (std::exchange(memory->listed[b], uint8_t{1}) == 0) memory->touched.push_back(b);
    }
  });
  ScoreGroups(history, &memory->of_group);
  for (const uint32_t b : memory->touched)
    if (!is_out(b))
      AddLikely({b, std::max(0.0f, memory->scores[b] + memory->of_group[group_[b]] * to_[b])}, most,
                top);

  // Then the first of each group, as long as any may be among the best.
  using Head = TopMemory::Head;
  const auto is_less = [](const Head& a, const Head& b) {
    return a.score != b.score ? a.score < b.score : a.item > b.item;
  };
  const auto advance = [&](Head* head) {
    for (; head->at < group_end_[head->group]; ++head->at) {
      head->item = group_items_[head->at];
      if (memory->listed[head->item] != 0 || is_out(head->item)) continue;
      head->score = memory->of_group[head->group] * to_[head->item];
      return true;
    }
    return false;
  };
  // Nothing below the worst of enough listed items can be among the best.
  const float least = top->size() == most ? top->front().score : -1;
  memory->heads.clear();
  for (uint32_t group = 0; group < groups(); ++group) {
    const uint32_t begin = group == 0 ? 0 : group_end_[group - 1];
    if (memory->of_group[group] * to_[group_items_[begin]] < least) continue;
    Head head{.group = group, .at = begin};
    if (advance(&head)) memory->heads.push_back(head);
  }
  std::ranges::make_heap(memory->heads, is_less);
  for (size_t taken = 0; taken < most && !memory->heads.empty(); ++taken) {
    std::ranges::pop_heap(memory->heads, is_less);
    Head& head = memory->heads.back();
    if (head.score < least) break;
    AddLikely({head.item, head.score}, most, top);
    ++head.at;
    if (advance(&head))
      std::ranges::push_heap(memory->heads, is_less);
    else
      memory->heads.pop_back();
  }
  std::ranges::sort(*top, IsLikelier);
  for (const uint32_t b : memory->touched) {
    memory->scores[b] = 0;
    memory->listed[b] = 0;
  }
  memory->touched.clear();
}

}  // namespace tacit::model::transitions
