#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numbers>
#include <span>
#include <string>
#include <vector>

// Statistical tests as functions, so that the same one can be shown to pass on the real thing and
// to fail on a planted fault. Each returns what is wrong, or "". False alarms: below 1e-7 each.
namespace tacit::testing {

// Two-sided probability 3.8e-8.
inline constexpr double kSigmas = 5.5;

inline double NormalCdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Whether `observed` is as far from `expected` as chance allows.
inline std::string CheckDeviation(const std::string& what, double observed, double expected,
                                  double stddev) {
  if (std::abs(observed - expected) <= kSigmas * stddev) return "";
  return what + " " + std::to_string(observed) + ", expected " + std::to_string(expected) + " +- " +
         std::to_string(stddev) + "; ";
}

// Mean 0 and variance 1 of standard normals. With 320,000 of them the variance is known to 0.25 %:
// a standard deviation that is off by 1 % is 8 sigmas away.
inline std::string CheckMoments(std::span<const double> z) {
  const double n = static_cast<double>(z.size());
  double mean = 0, square = 0;
  for (double value : z) mean += value / n;
  for (double value : z) square += (value - mean) * (value - mean) / (n - 1);
  return CheckDeviation("mean", mean, 0, 1 / std::sqrt(n)) +
         CheckDeviation("variance", square, 1, std::sqrt(2 / n));
}

// Kolmogorov and Smirnov: the largest distance between the empirical distribution and `cdf`.
// P(sqrt(n) D > x) is about 2 exp(-2 x^2); 1e-8 at 3.1.
inline std::string CheckDistribution(std::vector<double> sample,
                                     const std::function<double(double)>& cdf) {
  std::sort(sample.begin(), sample.end());
  const double n = static_cast<double>(sample.size());
  double distance = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(sample[i]);
    const double rank = static_cast<double>(i);
    distance = std::max({distance, (rank + 1) / n - p, p - rank / n});
  }
  if (std::sqrt(n) * distance <= 3.1) return "";
  return "sqrt(n) D = " + std::to_string(std::sqrt(n) * distance) + "; ";
}

// How many standard normals lie beyond 3 and beyond 4.
inline std::string CheckTails(std::span<const double> z) {
  std::string wrong;
  for (double limit : {3.0, 4.0}) {
    const double expected = 2 * NormalCdf(-limit) * static_cast<double>(z.size());
    const auto beyond = static_cast<double>(
        std::count_if(z.begin(), z.end(), [&](double v) { return std::abs(v) > limit; }));
    wrong +=
        CheckDeviation("beyond " + std::to_string(limit), beyond, expected, std::sqrt(expected));
  }
  return wrong;
}

// The correlation of two series of independent standard normals.
inline std::string CheckUncorrelated(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  const double n = static_cast<double>(a.size());
  return CheckDeviation("correlation", sum / n, 0, 1 / std::sqrt(n));
}

// Whether two series of random 64-bit words have one in common. By chance: n m / 2^64.
inline std::string CheckNoCommonWord(std::vector<uint64_t> a, std::vector<uint64_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<uint64_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common.empty() ? "" : std::to_string(common.size()) + " words in common; ";
}

// Whether random 64-bit words are all different. 300,000 draws from 2^31 states meet 21 times on
// average, and never with probability 8e-10; from 2^64 they meet with probability 2.4e-9.
inline std::string CheckNoRepeat(std::vector<uint64_t> words) {
  std::sort(words.begin(), words.end());
  return std::adjacent_find(words.begin(), words.end()) == words.end() ? "" : "a word came twice; ";
}

// Counts of independent draws against their probabilities, cell by cell.
inline std::string CheckCounts(std::span<const uint64_t> counts, std::span<const double> p,
                               double draws) {
  std::string wrong;
  for (size_t i = 0; i < counts.size(); ++i)
    wrong += CheckDeviation("cell " + std::to_string(i), static_cast<double>(counts[i]),
                            draws * p[i], std::sqrt(draws * p[i] * (1 - p[i])) + 1e-9);
  return wrong;
}

}  // namespace tacit::testing
