#pragma once

#include <cstdint>
#include <vector>

// A threshold on a statistic proves something about privacy. A mechanism that is mu-GDP between two
// worlds makes them no easier to distinguish than N(0, 1) and N(mu, 1) (Dong, Roth and Su 2022):
// every test's true and false positive rates have Phi^-1(TPR) - Phi^-1(FPR) <= mu, for any
// test.
namespace tacit::audit {

// Quantile of the standard normal; infinite at 0 and 1.
double NormalQuantile(double p);

// Clopper and Pearson: the rate below (above) which the truth lies with probability at most alpha,
// when `hits` of `runs` were seen.
double RateLower(uint64_t hits, uint64_t runs, double alpha);
double RateUpper(uint64_t hits, uint64_t runs, double alpha);

// Says "the canary was there" when the statistic is above `at`; when `below`, when it is under it.
struct Threshold {
  double at = 0;
  bool below = false;
  bool Says(double statistic) const { return below ? statistic < at : statistic > at; }
};

// The threshold that proves most on these runs. They must not be the runs it is then judged by.
Threshold ChooseThreshold(std::vector<double> without, std::vector<double> with);

// Counts how often a threshold spoke in runs of either world, and keeps the statistic's values.
struct Tally {
  uint64_t runs = 0;
  uint64_t hits = 0;
  double sum = 0, square = 0;

  void Add(double statistic, const Threshold& threshold);
  void Add(const Tally& other);
};

struct MuBound {
  double lower = 0;     // mu is above it, except with a probability of 2 alpha
  double estimate = 0;  // by the rates as they were seen
  double shift = 0;     // difference of the means, in standard deviations: mu, where the statistic
                        // is a Gaussian's log-likelihood ratio
};
MuBound BoundMu(const Tally& without, const Tally& with, double alpha);

}  // namespace tacit::audit
