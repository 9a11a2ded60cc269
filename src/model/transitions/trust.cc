#include "model/transitions/trust.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace tacit::model::transitions {
namespace {

// A possibility for a table.
struct Possible {
  double chance = 0;  // that a bucket differs
  double spread = 0;  // by how much, of what was expected
  double log_likelihood = 0;
};

constexpr std::array kChances = {0.03, 0.1, 0.3, 1.0};
constexpr std::array kSpreads = {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8};
// Beyond this, e to a power hides everything that is added to it.
constexpr double kExponentMost = 100;

// A bucket in units of the noise.
struct Bucket {
  double z = 0;         // how far off the sum is
  double expected = 0;  // 0: it says nothing
};

// Returns the variance of z if the bucket differs.
double Variance(const Possible& possible, const Bucket& bucket) {
  const double own = possible.spread * bucket.expected;
  return 1 + own * own;
}

// Returns the logarithm of how much likelier z is if the bucket differs.
double LogLikelier(const Bucket& bucket, double variance) {
  return bucket.z * bucket.z / 2 * (1 - 1 / variance) - std::log(variance) / 2;
}
// Returns the same of a bucket that differs with this chance.
double LogLikelierByChance(double chance, double log_likelier) {
  return log_likelier > kExponentMost ? std::log(chance) + log_likelier
                                      : std::log(1 - chance + chance * std::exp(log_likelier));
}

// Returns all that is possible, with the logarithms of prior and likelihood.
std::vector<Possible> Weigh(std::span<const Bucket> buckets) {
  std::vector<Possible> all;
  for (const double spread : kSpreads)
    for (const double chance : kChances) {
      Possible possible{.chance = chance, .spread = spread, .log_likelihood = -std::log(spread)};
      for (const Bucket& bucket : buckets)
        if (bucket.expected > 0)
          possible.log_likelihood +=
              LogLikelierByChance(chance, LogLikelier(bucket, Variance(possible, bucket)));
      all.push_back(possible);
    }
  return all;
}

// Returns the probability of each after the sums were seen.
std::vector<double> Probabilities(std::span<const Possible> all) {
  const double most = std::ranges::max(all, {}, &Possible::log_likelihood).log_likelihood;
  std::vector<double> probabilities;
  double sum = 0;
  for (const Possible& possible : all) {
    probabilities.push_back(std::exp(possible.log_likelihood - most));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace

std::vector<double> BucketTrusts(std::span<const float> sums, std::span<const double> expected,
                                 double deviation) {
  TACIT_CHECK(sums.size() == expected.size() && deviation >= 0);
  std::vector<double> trusts(sums.size());
  if (deviation == 0) {
    std::ranges::transform(expected, trusts.begin(), [](double e) { return e > 0 ? 1.0 : 0.0; });
    return trusts;
  }
  std::vector<Bucket> buckets;
  for (size_t k = 0; k < sums.size(); ++k)
    buckets.push_back({.z = (sums[k] - expected[k]) / deviation,
                       .expected = std::max(0.0, expected[k]) / deviation});
  const std::vector<Possible> all = Weigh(buckets);
  const std::vector<double> probabilities = Probabilities(all);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < buckets.size(); ++k) {
      if (buckets[k].expected == 0) continue;
      const double variance = Variance(all[i], buckets[k]);
      const double chance = all[i].chance;
      const double differs =
          1 / (1 + (1 - chance) / chance * std::exp(-LogLikelier(buckets[k], variance)));
      trusts[k] += probabilities[i] * differs * (1 - 1 / variance);
    }
  return trusts;
}

}  // namespace tacit::model::transitions
