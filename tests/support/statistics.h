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
// to fail on a planted fault. Each returns what is wrong, or "". False alarms: below 3e-9 each, so
// that a run of hundreds on fresh keys stays below 1e-6.
namespace tacit::testing {

// Two-sided probability 2e-9.
inline constexpr double kSigmas = 6;

inline double NormalCdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Checks that `observed` is no further from `expected` than chance allows.
inline std::string CheckDeviation(const std::string& what, double observed, double expected,
                                  double stddev) {
  if (std::abs(observed - expected) <= kSigmas * stddev) return "";
  return what + " " + std::to_string(observed) + ", expected " + std::to_string(expected) + " +- " +
         std::to_string(stddev) + "; ";
}

// Mean 0 and variance 1 of standard normals. With 320,000 of them the variance is known to 0.25 %:
// a standard deviation that is off by 1 % is 8 sigmas away, found out 49 times in 50; with a
// million, 14 sigmas, and always.
inline std::string CheckMoments(std::span<const double> z) {
  const double n = static_cast<double>(z.size());
  double mean = 0, square = 0;
  for (double value : z) mean += value / n;
  for (double value : z) square += (value - mean) * (value - mean) / (n - 1);
  return CheckDeviation("mean", mean, 0, 1 / std::sqrt(n)) +
         CheckDeviation("variance", square, 1, std::sqrt(2 / n));
}

// Kolmogorov and Smirnov: the largest distance between the empirical distribution and `cdf`.
// P(sqrt(n) D > x) is below 2 exp(-2 x^2) (Massart 1990); 1.8e-9 at 3.23.
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
  if (std::sqrt(n) * distance <= 3.23) return "";
  return "sqrt(n) D = " + std::to_string(std::sqrt(n) * distance) + "; ";
}

// P(X >= count) for X of the binomial distribution, summed term by term while terms count.
inline double BinomialUpperTail(uint64_t count, uint64_t n, double p) {
  const auto trials = static_cast<double>(n);
  double tail = 0;
  for (uint64_t k = count; k <= n; ++k) {
    const auto x = static_cast<double>(k);
    const double term =
        std::exp(std::lgamma(trials + 1) - std::lgamma(x + 1) - std::lgamma(trials - x + 1) +
                 x * std::log(p) + (trials - x) * std::log1p(-p));
    tail += term;
    if (x > trials * p && term <= tail * 1e-12) break;
  }
  return tail;
}

// Checks that `count` of n draws is neither too few nor too many for what has probability p: by the
// exact distribution, 1e-9 to either side.
inline std::string CheckBinomial(const std::string& what, uint64_t count, uint64_t n, double p) {
  constexpr double kAlarm = 1e-9;
  const bool many = static_cast<double>(count) > static_cast<double>(n) * p;
  // Counting those that are not there, few become many.
  const double tail =
      many ? BinomialUpperTail(count, n, p) : BinomialUpperTail(n - count, n, 1 - p);
  if (tail >= kAlarm) return "";
  return what + " " + std::to_string(count) + ", expected " +
         std::to_string(static_cast<double>(n) * p) + "; ";
}

// Counts the standard normals that lie beyond 3, 4, 5 and 6, to either side.
struct TailCounts {
  static constexpr double kLimits[] = {3, 4, 5, 6};
  uint64_t draws = 0;
  uint64_t below[4] = {}, above[4] = {};

  void Count(std::span<const double> z) {
    draws += z.size();
    for (double value : z) {
      if (std::abs(value) <= kLimits[0]) continue;
      for (size_t i = 0; i < 4; ++i) {
        below[i] += value < -kLimits[i];
        above[i] += value > kLimits[i];
      }
    }
  }
  std::string Check() const {
    std::string wrong;
    for (size_t i = 0; i < 4; ++i) {
      const double p = NormalCdf(-kLimits[i]);
      const std::string limit = std::to_string(kLimits[i]);
      wrong += CheckBinomial("below -" + limit, below[i], draws, p);
      wrong += CheckBinomial("above " + limit, above[i], draws, p);
    }
    return wrong;
  }
};

inline std::string CheckTails(std::span<const double> z) {
  TailCounts counts;
  counts.Count(z);
  return counts.Check();
}

// The correlation of two series of independent standard normals.
inline std::string CheckUncorrelated(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  const double n = static_cast<double>(a.size());
  return CheckDeviation("correlation", sum / n, 0, 1 / std::sqrt(n));
}

// Checks that two series of random 64-bit words have none in common. By chance: n m / 2^64.
inline std::string CheckNoCommonWord(std::vector<uint64_t> a, std::vector<uint64_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<uint64_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common.empty() ? "" : std::to_string(common.size()) + " words in common; ";
}

// Checks that random 64-bit words are all different. 300,000 draws from 2^31 states meet 21 times
// on average, and never with probability 8e-10; from 2^64 they meet with probability 2.4e-9.
inline std::string CheckNoRepeat(std::vector<uint64_t> words) {
  std::sort(words.begin(), words.end());
  return std::adjacent_find(words.begin(), words.end()) == words.end() ? "" : "a word came twice; ";
}

// Counts of independent draws against their probabilities: Pearson's chi-square over the cells and
// what is in none of them, neighbours put together until a hundred are expected in each, by the
// normal approximation of Wilson and Hilferty.
inline std::string CheckCounts(std::span<const uint64_t> counts, std::span<const double> p,
                               double draws) {
  struct Cell {
    double observed = 0, expected = 0;
  };
  std::vector<Cell> cells(1);
  Cell rest{draws, draws};
  const auto add = [&](Cell cell) {
    if (cells.back().expected >= 100) cells.emplace_back();
    cells.back().observed += cell.observed;
    cells.back().expected += cell.expected;
    rest.observed -= cell.observed;
    rest.expected -= cell.expected;
  };
  for (size_t i = 0; i < counts.size(); ++i) add({static_cast<double>(counts[i]), draws * p[i]});
  add(rest);
  if (cells.size() > 1 && cells.back().expected < 100) {
    const Cell last = cells.back();
    cells.pop_back();
    cells.back().observed += last.observed;
    cells.back().expected += last.expected;
  }
  double chi_square = 0;
  for (const Cell& cell : cells)
    chi_square += std::pow(cell.observed - cell.expected, 2) / cell.expected;
  const double freedom = static_cast<double>(cells.size()) - 1, spread = 2 / (9 * freedom);
  const double z = (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
  if (z <= kSigmas) return "";
  return "chi-square " + std::to_string(chi_square) + " of " + std::to_string(freedom) +
         " degrees of freedom; ";
}

}  // namespace tacit::testing
