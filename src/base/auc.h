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

// The standard deviation of an AUC over this many positives and negatives that were drawn
// independently (Hanley and McNeil 1982, scores with exponential tails); NaN where there are none.
inline double AucDeviation(double auc, double positives, double negatives) {
  if (positives == 0 || negatives == 0) return NAN;
  const double square = auc * auc;
  const double two_positives = auc / (2 - auc), two_negatives = 2 * square / (1 + auc);
  return std::sqrt((auc * (1 - auc) + (positives - 1) * (two_positives - square) +
                    (negatives - 1) * (two_negatives - square)) /
                   (positives * negatives));
}

// The same AUC over a stream of logits, computed from a histogram of their probabilities in
// constant memory. It is within 1e-3 of the exact value unless nearly all scores lie in a few of
// the 2^14 bins. A value; not thread-safe.
class AucHistogram {
 public:
  static constexpr size_t kBins = 1 << 14;

  AucHistogram() : positives_(kBins), negatives_(kBins) {}

  // NaN counts as the lowest score.
  void Add(float logit, bool positive) { AddProbability(1 / (1 + std::exp(-logit)), positive); }
  void AddProbability(float probability, bool positive) {
    const float place = probability > 0 ? probability * kBins : 0;
    const size_t bin = std::min(static_cast<size_t>(place), kBins - 1);
    ++(positive ? positives_ : negatives_)[bin];
  }
  void Merge(const AucHistogram& other) {
    for (size_t i = 0; i < kBins; ++i) {
      positives_[i] += other.positives_[i];
      negatives_[i] += other.negatives_[i];
    }
  }
  // 1/2 while there are no positives or no negatives.
  double Auc() const {
    double positives = 0, negatives = 0, wins = 0;
    for (size_t i = 0; i < kBins; ++i) {
      const auto tied_positives = static_cast<double>(positives_[i]);
      const auto tied_negatives = static_cast<double>(negatives_[i]);
      wins += tied_positives * (negatives + tied_negatives / 2);
      positives += tied_positives;
      negatives += tied_negatives;
    }
    return positives == 0 || negatives == 0 ? 0.5 : wins / (positives * negatives);
  }

 private:
  std::vector<uint64_t> positives_, negatives_;
};

}  // namespace tacit
