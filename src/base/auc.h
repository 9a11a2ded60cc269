#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"

namespace tacit {

// The probability that a random positive is scored above a random negative; a tie counts half
// (Mann-Whitney). Returns 1/2 when there are no positives or no negatives. NaN counts as the lowest
// score; a label is positive when it is above 1/2. O(n log n).
inline double ExactAuc(std::span<const float> score, std::span<const float> label) {
  TACIT_CHECK(score.size() == label.size());
  const auto rank = [&](size_t i) { return std::isnan(score[i]) ? -INFINITY : score[i]; };
  std::vector<size_t> order(score.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  double positives = 0, negatives = 0, wins = 0;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    double tied_positives = 0, tied_negatives = 0;
    for (end = begin; end < order.size() && rank(order[end]) == rank(order[begin]); ++end)
      ++(label[order[end]] > 0.5f ? tied_positives : tied_negatives);
    wins += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  return positives == 0 || negatives == 0 ? 0.5 : wins / (positives * negatives);
}

// An AUC, and its standard deviation over records that were drawn independently (DeLong, DeLong and
// Clarke-Pearson 1988). The deviation is NaN where either label has fewer than two.
struct AucEstimate {
  double auc = 0.5, deviation = NAN;
};

// The AUC of counts by bin, ascending, with half of each bin's pairs won; 1/2 while there are no
// positives or no negatives. Counts may carry noise. REQUIRES as many of each label.
template <class Count>
AucEstimate EstimateAuc(std::span<const Count> misses, std::span<const Count> clicks) {
  double positives = 0, negatives = 0, wins = 0;
  for (size_t i = 0; i < misses.size(); ++i) {
    const auto tied_positives = static_cast<double>(clicks[i]);
    const auto tied_negatives = static_cast<double>(misses[i]);
    wins += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  if (positives == 0 || negatives == 0) return {};
  AucEstimate estimate{.auc = wins / (positives * negatives)};
  if (positives < 2 || negatives < 2) return estimate;
  // The share of the other label that each record is rightly placed against.
  double of_clicks = 0, of_misses = 0, clicks_below = 0, misses_below = 0;
  for (size_t i = 0; i < misses.size(); ++i) {
    const auto here = static_cast<double>(clicks[i]), there = static_cast<double>(misses[i]);
    const double won = (misses_below + there / 2) / negatives - estimate.auc;
    const double lost = (positives - clicks_below - here / 2) / positives - estimate.auc;
    of_clicks += here * won * won;
    of_misses += there * lost * lost;
    clicks_below += here;
    misses_below += there;
  }
  estimate.deviation = std::sqrt(std::max(
      0.0, of_clicks / (positives * (positives - 1)) + of_misses / (negatives * (negatives - 1))));
  return estimate;
}

// The AUC over a stream of logits, computed from a histogram of their probabilities in constant
// memory. It is within 1e-3 of the exact value unless nearly all scores lie in a few of
// the 2^14 bins. A value; not thread-safe.
class AucHistogram {
 public:
  static constexpr size_t kBins = 1 << 14;

  AucHistogram() : positives_(kBins), negatives_(kBins) {}

  // NaN counts as the lowest score.
  void Add(float logit, bool positive) { AddProbability(1 / (1 + std::exp(-logit)), positive); }
  void AddProbability(float probability, bool positive, uint64_t times = 1) {
    const float place = probability > 0 ? probability * kBins : 0;
    const size_t bin = std::min(static_cast<size_t>(place), kBins - 1);
    (positive ? positives_ : negatives_)[bin] += times;
  }
  void Merge(const AucHistogram& other) {
    for (size_t i = 0; i < kBins; ++i) {
      positives_[i] += other.positives_[i];
      negatives_[i] += other.negatives_[i];
    }
  }
  AucEstimate Estimate() const { return EstimateAuc(std::span(negatives_), std::span(positives_)); }
  double Auc() const { return Estimate().auc; }

 private:
  std::vector<uint64_t> positives_, negatives_;
};

}  // namespace tacit
