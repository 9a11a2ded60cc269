#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "privacy/pld.h"

// The charge in plain words: what somebody who knows everything but one unit's part can do at most
// to tell from all that was released whether the unit was in it. It is the trade-off function of
// Dong, Roth and Su (2022), read off the certified curve delta(epsilon): a test that misses the
// unit with probability b and cries with probability a where the unit is not has, for every
// epsilon >= 0,
//   b >= 1 - delta(epsilon) - e^epsilon a   and   b >= e^-epsilon (1 - delta(epsilon) - a).
// Every epsilon gives a bound that holds, so a search that ends early is safe.
namespace tacit::privacy {

class TradeOff {
 public:
  // delta(epsilon), never below the truth, for epsilon >= 0.
  using Curve = std::function<Result<double>(double epsilon)>;
  // The curve is asked at `least` and above: near 0 the accountant takes long, so
  // that misses are looked for at five times `least` and above.
  explicit TradeOff(Curve curve, double least = 0) : curve_(std::move(curve)), least_(least) {}

  // `accountant` must outlive the result, and is asked for its upper bounds.
  static Result<TradeOff> Of(PldAccountant& accountant);
  static TradeOff OfGaussian(double mu);

  // The greatest difference of the two rates: delta(0), or a little more where it is found from an
  // epsilon beside 0. With both worlds as likely as each other,
  // nobody is right more often than (1 + advantage) / 2, and the Bayes risk is one less that.
  Result<double> Advantage() const;
  // The least rate of misses of any test with this rate of false alarms, in (0, 1).
  Result<double> MissedAtLeast(double false_alarms) const;

 private:
  Curve curve_;
  double least_;
};

// The room that one point (epsilon, delta) of a curve leaves for the advantage: at least the
// advantage of every curve through it. An infinite epsilon leaves all.
double AdvantageAt(double epsilon, double delta);

// The same for misses with this rate of false alarms: no test of a curve through the point misses
// fewer.
double MissedAt(double epsilon, double delta, double false_alarms);

inline double AccuracyAtMost(double advantage) { return (1 + advantage) / 2; }

// "with all else known, somebody guesses right at most 69.2 times of 100; a coin does 50": the
// guess is whether you were in it, and the share is rounded up, never down. An advantage of 1
// bounds nothing, and the words say so.
std::string PlainWords(double advantage);

}  // namespace tacit::privacy
