#include "model/ranking/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include "base/check.h"
#include "model/transitions/score_bins.h"
#include "ops/vector_math.h"

namespace tacit::model::ranking {
namespace {

using transitions::ItemFeatures;
using transitions::PublicItems;

constexpr size_t kGenresMost = 64, kErasMost = 16;
// An item whose weight decay^age is below this is as good as forgotten.
constexpr double kForgotten = 1e-3;
constexpr double kSharpDecay = 0.4, kLongDecay = 0.9;
// The weight of average taste that a profile begins with.
constexpr float kEraPrior = 2, kGenrePrior = 3;
// Added before logarithms; far below any score of a pair that was counted.
constexpr float kLeast = 1e-6f;

// The counts whose scores a ranker is shown: S_ab and F_ab say different things only if S_ab has
// something of b before a, more than scores that stand alone are best with. MovieLens-1M at epsilon
// 1, 5, 8, 10, five runs: 8.18, 11.94, 13.24, 13.58 with .1; 8.31, 12.12, 13.17, 13.83 with .25.
transitions::Options BothWays(transitions::Options options) {
  options.reverse_weight = kReverseWeight;
  return options;
}
transitions::Options ForwardAlone(transitions::Options options) {
  options.reverse_weight = 0;
  return options;
}

float Overlap(uint64_t a, uint64_t b) {
  const int all = std::popcount(a | b);
  return all == 0 ? 0 : static_cast<float>(std::popcount(a & b)) / static_cast<float>(all);
}

template <class Visit>
void ForBits(uint64_t bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<size_t>(std::countr_zero(bits)));
}

// Calls visit(item, weight) for the history's items from the latest on, with weight decay^age.
template <class Visit>
void ForRecent(std::span<const uint32_t> history, double decay, const Visit& visit) {
  double weight = 1;
  for (size_t age = 0; age < history.size() && weight > kForgotten; ++age, weight *= decay)
    visit(history[history.size() - 1 - age], static_cast<float>(weight));
}

// Brings every column to mean 0 and deviation 1; a constant column becomes 0. Goes row by row, so
// that the columns' sums, each in the order of the rows, grow side by side.
void Standardise(std::span<float> rows) {
  const size_t count = rows.size() / kFeatures;
  std::array<double, kFeatures> sums = {}, squares = {};
  std::array<float, kFeatures> means, scales;
  for (size_t i = 0; i < count; ++i) {
    const float* row = &rows[i * kFeatures];
#pragma omp simd
    for (size_t f = 0; f < kFeatures; ++f) sums[f] += row[f];
  }
  for (size_t f = 0; f < kFeatures; ++f)
    means[f] = static_cast<float>(sums[f] / static_cast<double>(count));
  for (size_t i = 0; i < count; ++i) {
    float* row = &rows[i * kFeatures];
#pragma omp simd
    for (size_t f = 0; f < kFeatures; ++f) {
      row[f] -= means[f];
      squares[f] += double{row[f]} * row[f];
    }
  }
  for (size_t f = 0; f < kFeatures; ++f) {
    const double deviation = std::sqrt(squares[f] / static_cast<double>(count));
    scales[f] = static_cast<float>(deviation > 1e-5 ? 1 / deviation : 0);
  }
  for (size_t i = 0; i < count; ++i) {
    float* row = &rows[i * kFeatures];
#pragma omp simd
    for (size_t f = 0; f < kFeatures; ++f) row[f] *= scales[f];
  }
}

// Adds the weighted logarithms of scores to sums, one for each.
void AddLogs(float weight, std::span<const float> scores, float* sums) {
#pragma omp simd
  for (size_t i = 0; i < scores.size(); ++i) sums[i] += weight * ops::Log(scores[i] + kLeast);
}

// A call, and no part of a loop: a loop of logarithms may be compiled to another approximation.
[[gnu::noinline]] float LogDistance(uint64_t distance) {
  return std::log1p(static_cast<float>(distance));
}
// The logarithms of distances that are near. Read in place of taken, they are the same numbers.
constexpr uint64_t kNear = 4096;
const std::array<float, kNear>& LogDistances() {
  static const auto logs = [] {
    std::array<float, kNear> made;
    for (uint64_t d = 0; d < kNear; ++d) made[d] = LogDistance(d);
    return made;
  }();
  return logs;
}

}  // namespace

size_t Candidates::PlaceOf(uint32_t item) const {
  const auto at = std::ranges::lower_bound(items, item);
  return at != items.end() && *at == item ? static_cast<size_t>(at - items.begin()) : items.size();
}

// The spread of a history's items over genres and bins of years, each item with a weight.
class CandidateSource::Profile {
 public:
  explicit Profile(const CandidateSource& source) : source_(source) {}

  void Add(uint32_t item, float weight) {
    ForBits(source_.catalogue_.features(item).genres, [&](size_t genre) {
      genres_[genre] += weight;
      unit_[genre] += weight * source_.genre_unit_[item];
    });
    eras_[source_.era_[item]] += weight;
    weight_ += weight;
  }
  // Turns the sums into the values that candidates are compared with.
  void End() {
    float squares = 0;
    for (size_t g = 0; g < kGenresMost; ++g) {
      squares += unit_[g] * unit_[g];
      genres_[g] = LogRatio(genres_[g], source_.genre_share_[g], kGenrePrior);
    }
    const float scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (float& x : unit_) x *= scale;
    for (size_t e = 0; e < source_.era_share_.size(); ++e)
      eras_[e] = LogRatio(eras_[e], source_.era_share_[e], kEraPrior);
  }

  float Cosine(uint32_t item) const {
    float sum = 0;
    ForBits(source_.catalogue_.features(item).genres, [&](size_t g) { sum += unit_[g]; });
    return sum * source_.genre_unit_[item];
  }
  float Taste(uint32_t item) const {
    const uint64_t genres = source_.catalogue_.features(item).genres;
    float sum = 0;
    ForBits(genres, [&](size_t g) { sum += genres_[g]; });
    return genres == 0 ? 0 : sum / static_cast<float>(std::popcount(genres));
  }
  float Era(uint32_t item) const { return eras_[source_.era_[item]]; }

 private:
  float LogRatio(float weight, float share, float prior) const {
    if (share <= 0) return 0;
    return std::log((weight + prior * share) / (weight_ + prior) / share);
  }

  const CandidateSource& source_;
  std::array<float, kGenresMost> genres_ = {}, unit_ = {};
  std::array<float, kErasMost> eras_ = {};
  float weight_ = 0;
};

CandidateSource::CandidateSource(const transitions::Estimate& estimate,
                                 const PublicItems& catalogue, const transitions::Options& options,
                                 WorkerPool& workers)
    : CandidateSource(estimate, catalogue, options,
                      transitions::ListedCells(estimate, options, workers), workers) {}

CandidateSource::CandidateSource(const transitions::Estimate& estimate,
                                 const PublicItems& catalogue, const transitions::Options& options,
                                 const transitions::Cells& listed, WorkerPool& workers)
    : options_(options),
      catalogue_(catalogue),
      counts_(estimate, BothWays(options), listed, workers),
      forward_(estimate, ForwardAlone(options), listed, workers) {
  const auto popularity = estimate.prior().popularity();
  const double all = std::accumulate(popularity.begin(), popularity.end(), 0.0);
  for (const double p : popularity) log_popularity_.push_back(static_cast<float>(std::log(p)));
  if (!catalogue.described()) return;
  using transitions::Buckets;
  const Buckets& buckets = estimate.prior().buckets();
  genre_share_.resize(kGenresMost);
  for (uint32_t item = 0; item < items(); ++item) {
    const auto share = static_cast<float>(popularity[item] / all);
    const uint64_t genres = catalogue.features(item).genres;
    ForBits(genres, [&](size_t genre) { genre_share_[genre] += share; });
    genre_unit_.push_back(genres == 0 ? 0
                                      : 1 / std::sqrt(static_cast<float>(std::popcount(genres))));
    era_.push_back(buckets.bins(item)[Buckets::kYears]);
    if (era_.back() >= era_share_.size()) era_share_.resize(era_.back() + 1);
    era_share_[era_.back()] += share;
  }
  TACIT_CHECK(era_share_.size() <= kErasMost);
}

void CandidateSource::Find(std::span<const uint32_t> history, size_t most, Candidates* out,
                           std::span<const uint8_t> left_out) const {
  out->items.clear();
  out->rows.clear();
  out->counted.clear();
  if (!counts_.table().empty()) out->scores.assign(items(), 0.0f);
  if (history.empty()) return;
  Choose(history, most, left_out, out);
  out->rows.assign(out->items.size() * kFeatures, 0.0f);
  FromCounts(history, out);
  if (catalogue_.described()) FromDescriptions(history, out);
  if (out->items.empty()) return;
  Standardise(out->rows);
}

// Finds the candidates in the catalogue's order: rows of the tables are then read forwards.
void CandidateSource::Choose(std::span<const uint32_t> history, size_t most,
                             std::span<const uint8_t> left_out, Candidates* out) const {
  // Outside of this call nothing is marked.
  out->taken.resize(items());
  if (!left_out.empty()) std::ranges::copy(left_out, out->taken.begin());
  for (const uint32_t item : history) out->taken[item] = 1;
  if (!counts_.table().empty()) {
    ChooseFromTable(history, most, out);
  } else {
    counts_.Top(history, most, out->taken, &out->memory, &out->top);
    std::ranges::sort(out->top, {}, &transitions::ScoredItem::item);
    for (const auto& [item, score] : out->top) {
      out->items.push_back(item);
      out->counted.push_back(score);
    }
  }
  if (!left_out.empty()) std::ranges::fill(out->taken, uint8_t{0});
  for (const uint32_t item : history) out->taken[item] = 0;
}

void CandidateSource::ChooseFromTable(std::span<const uint32_t> history, size_t most,
                                      Candidates* out) const {
  counts_.Score(history, out->scores);
  const std::span<const float> scores = out->scores;
  const std::span<const uint8_t> taken = out->taken;
  // All that may be among the best: those in the bins of scores from the one where enough are found
  // upwards.
  std::vector<uint32_t>& in_bin = out->in_bin;
  in_bin.assign(transitions::kScoreBins, 0);
  for (size_t item = 0; item < scores.size(); ++item)
    in_bin[transitions::ScoreBin(scores[item])] += taken[item] == 0 ? 1 : 0;
  size_t least = transitions::kScoreBins, found = 0;
  while (least > 0 && found < most) found += in_bin[--least];
  // One place more than is found: it is written before it is known whether an item belongs there.
  std::vector<uint32_t>& items = out->items;
  items.resize(found + 1);
  size_t end = 0;
  for (size_t item = 0; item < scores.size(); ++item) {
    items[end] = static_cast<uint32_t>(item);
    end += taken[item] == 0 && transitions::ScoreBin(scores[item]) >= least ? 1 : 0;
  }
  items.resize(end);
  if (end > most) {
    // Those that are too many are in the last bin. Prefers the earlier of equals.
    const auto before = [&](uint32_t one, uint32_t other) {
      return scores[one] != scores[other] ? scores[one] > scores[other] : one < other;
    };
    std::vector<uint32_t>& last = out->of_last_bin;
    last.clear();
    std::ranges::copy_if(items, std::back_inserter(last), [&](uint32_t item) {
      return transitions::ScoreBin(scores[item]) == least;
    });
    const auto first_out = last.end() - static_cast<ptrdiff_t>(end - most);
    std::ranges::nth_element(last, first_out, before);
    std::erase_if(items, [&](uint32_t item) { return !before(item, *first_out); });
  }
  for (const uint32_t item : items) out->counted.push_back(scores[item]);
}

void CandidateSource::FromCounts(std::span<const uint32_t> history, Candidates* out) const {
  const size_t count = out->items.size();
  out->pair.resize(count);
  out->after.resize(count);
  // Sums of one feature lie side by side while they grow.
  out->sums.assign(4 * count, 0.0f);
  float* const lasting_sum = out->sums.data();
  float* const sharp_sum = lasting_sum + count;
  float* const forward_sum = sharp_sum + count;
  float* const product_sum = forward_sum + count;
  double d = 1, sharp = 1, lasting = 1;  // an item's weights
  for (size_t age = 0; age < history.size(); ++age) {
    const uint32_t a = history[history.size() - 1 - age];
    const auto weight = static_cast<float>(d), w4 = static_cast<float>(sharp),
               w9 = static_cast<float>(lasting);
    const bool recent = d > kForgotten, latest = sharp > kForgotten, ever = lasting > kForgotten;
    if (!recent && !latest && !ever) break;
    counts_.ScorePairs(a, out->items, out->pair);
    if (recent) forward_.ScorePairs(a, out->items, out->after);
    const float *const pair = out->pair.data(), *const after = out->after.data();
    if (ever)
      for (size_t i = 0; i < count; ++i) lasting_sum[i] += w9 * pair[i];
    if (latest)
      for (size_t i = 0; i < count; ++i) sharp_sum[i] += w4 * pair[i];
    if (recent) {
      for (size_t i = 0; i < count; ++i) forward_sum[i] += weight * after[i];
      AddLogs(weight, out->pair, product_sum);
    }
    if (age == 0)
      for (size_t i = 0; i < count; ++i)
        out->rows[i * kFeatures + kLatest] = ops::Log(pair[i] + kLeast);
    d *= options_.recent_decay, sharp *= kSharpDecay, lasting *= kLongDecay;
  }
  float usual = 0, weights = 0;
  ForRecent(history, kLongDecay, [&](uint32_t a, float weight) {
    usual += weight * log_popularity_[a];
    weights += weight;
  });
  usual /= weights;
  const uint32_t latest = history.back();
  for (size_t i = 0; i < count; ++i) {
    float* row = &out->rows[i * kFeatures];
    const uint32_t b = out->items[i];
    row[kScore] = out->counted[i];
    row[kLong] = lasting_sum[i];
    row[kSharp] = sharp_sum[i];
    row[kForward] = forward_sum[i];
    row[kProduct] = product_sum[i];
    for (const Feature f : {kScore, kForward, kSharp, kLong}) row[f] = ops::Log(row[f] + kLeast);
    row[kPopular] = log_popularity_[b];
    row[kUsual] = -(log_popularity_[b] - usual) * (log_popularity_[b] - usual);
    row[kAsLatest] = -std::abs(log_popularity_[b] - log_popularity_[latest]);
  }
}

void CandidateSource::FromDescriptions(std::span<const uint32_t> history, Candidates* out) const {
  Profile latest(*this), recent(*this), ever(*this);
  ForRecent(history, options_.recent_decay,
            [&](uint32_t a, float weight) { latest.Add(a, weight); });
  ForRecent(history, kLongDecay, [&](uint32_t a, float weight) { recent.Add(a, weight); });
  for (const uint32_t a : history) ever.Add(a, 1);
  for (Profile* profile : {&latest, &recent, &ever}) profile->End();
  const uint32_t last = history.back();
  const ItemFeatures& a0 = catalogue_.features(last);
  const ItemFeatures& a1 =
      catalogue_.features(history[history.size() - std::min<size_t>(2, history.size())]);
  const auto years = [](const ItemFeatures& a, const ItemFeatures& b) {
    return a.year == 0 || b.year == 0 ? 0 : b.year - a.year;
  };
  const auto& near = LogDistances();
  const auto log_distance = [&](uint64_t distance) {
    return distance < kNear ? near[distance] : LogDistance(distance);
  };
  for (size_t i = 0; i < out->items.size(); ++i) {
    const uint32_t item = out->items[i];
    const ItemFeatures& b = catalogue_.features(item);
    float* row = &out->rows[i * kFeatures];
    row[kGenresRecent] = recent.Cosine(item);
    row[kGenresEver] = ever.Cosine(item);
    row[kTasteRecent] = recent.Taste(item);
    row[kTasteEver] = ever.Taste(item);
    row[kEraLatest] = latest.Era(item);
    row[kEraRecent] = recent.Era(item);
    row[kEraEver] = ever.Era(item);
    const int younger = years(a0, b);
    const float years_latest = log_distance(static_cast<uint64_t>(std::abs(younger)));
    row[kYearsLatest] = -years_latest;
    row[kYearsBefore] = -log_distance(static_cast<uint64_t>(std::abs(years(a1, b))));
    row[kYounger] = static_cast<float>((younger > 0) - (younger < 0));
    row[kYoungerBy] = younger > 0 ? years_latest : 0;
    const float places_latest = log_distance(transitions::Buckets::IdDistance(a0.id, b.id));
    row[kPlacesLatest] = -places_latest;
    row[kPlacesBefore] = -log_distance(transitions::Buckets::IdDistance(a1.id, b.id));
    row[kBehind] = static_cast<float>((b.id > a0.id) - (b.id < a0.id));
    row[kBehindBy] = b.id > a0.id ? places_latest : 0;
    row[kOverlapLatest] = Overlap(a0.genres, b.genres);
    row[kOverlapBefore] = Overlap(a1.genres, b.genres);
    row[kWordLatest] = catalogue_.ShareRareWord(last, item) ? 1 : 0;
  }
}

}  // namespace tacit::model::ranking
