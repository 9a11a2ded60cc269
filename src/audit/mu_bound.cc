#include "audit/mu_bound.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>

namespace tacit::audit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// For the choice among thresholds: nothing rests on it, but a rate of few hits shall not win.
constexpr double kAlphaOfChoice = 1e-3;
constexpr size_t kCandidates = 64;

}  // namespace

double NormalQuantile(double p) {
  if (p <= 0) return -kInfinity;
  if (p >= 1) return kInfinity;
  return boost::math::quantile(boost::math::normal(), p);
}

double RateLower(uint64_t hits, uint64_t runs, double alpha) {
  if (hits == 0) return 0;
  const boost::math::beta_distribution<> law(static_cast<double>(hits),
                                             static_cast<double>(runs - hits + 1));
  return boost::math::quantile(law, alpha);
}

double RateUpper(uint64_t hits, uint64_t runs, double alpha) {
  return 1 - RateLower(runs - hits, runs, alpha);
}

Threshold ChooseThreshold(std::vector<double> without, std::vector<double> with) {
  std::sort(without.begin(), without.end());
  std::sort(with.begin(), with.end());
  std::vector<double> pooled = without;
  pooled.insert(pooled.end(), with.begin(), with.end());
  std::sort(pooled.begin(), pooled.end());
  const auto hits = [](const std::vector<double>& sorted, const Threshold& threshold) {
    const auto count =
        threshold.below
            ? std::lower_bound(sorted.begin(), sorted.end(), threshold.at) - sorted.begin()
            : sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), threshold.at);
    return static_cast<uint64_t>(count);
  };
  Threshold best;
  double most = -kInfinity;
  for (size_t i = 0; i <= kCandidates; ++i) {
    for (bool below : {false, true}) {
      const Threshold threshold{.at = pooled[i * (pooled.size() - 1) / kCandidates],
                                .below = below};
      const double mu =
          NormalQuantile(RateLower(hits(with, threshold), with.size(), kAlphaOfChoice)) -
          NormalQuantile(RateUpper(hits(without, threshold), without.size(), kAlphaOfChoice));
      if (mu > most) {
        most = mu;
        best = threshold;
      }
    }
  }
  return best;
}

void Tally::Add(double statistic, const Threshold& threshold) {
  ++runs;
  hits += threshold.Says(statistic);
  sum += statistic;
  square += statistic * statistic;
}

void Tally::Add(const Tally& other) {
  runs += other.runs;
  hits += other.hits;
  sum += other.sum;
  square += other.square;
}

MuBound BoundMu(const Tally& without, const Tally& with, double alpha) {
  const auto rate = [](const Tally& tally) {
    return static_cast<double>(tally.hits) / static_cast<double>(tally.runs);
  };
  const auto mean = [](const Tally& tally) { return tally.sum / static_cast<double>(tally.runs); };
  const auto variance = [&](const Tally& tally) {
    return tally.square / static_cast<double>(tally.runs) - mean(tally) * mean(tally);
  };
  const double stddev = std::sqrt((variance(without) + variance(with)) / 2);
  return {.lower = NormalQuantile(RateLower(with.hits, with.runs, alpha)) -
                   NormalQuantile(RateUpper(without.hits, without.runs, alpha)),
          .estimate = NormalQuantile(rate(with)) - NormalQuantile(rate(without)),
          .shift = stddev > 0 ? (mean(with) - mean(without)) / stddev : 0};
}

}  // namespace tacit::audit
