// The bounds, audited: over scores without leakage, over scores of a mechanism that costs mu 1, and
// with the faults planted that other libraries have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "audit/membership.h"
#include "audit/mu_bound.h"
#include "audit/one_run.h"

namespace tacit::audit {
namespace {

constexpr int kAudits = 2000;
constexpr double kAlpha = 0.05;
// Four deviations above what is allowed.
const double kMostFalse = kAlpha + 4 * std::sqrt(kAlpha * (1 - kAlpha) / kAudits);

// One audit's scores: each record's coin, and N(mu, 1) where it fell on "in", else N(0, 1).
std::vector<Score> Draw(double mu, uint64_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<Score> scores(n);
  for (uint64_t i = 0; i < n; ++i) {
    const bool in = random() & 1;
    scores[i] = {i, normal(random) + (in ? mu : 0), in};
  }
  return scores;
}

// The share of audits of which `accuses` holds.
double Share(double mu, uint64_t n, const std::function<bool(const std::vector<Score>&)>& accuses) {
  std::mt19937_64 random(11);
  int accused = 0;
  for (int i = 0; i < kAudits; ++i) accused += accuses(Draw(mu, n, random));
  return static_cast<double>(accused) / kAudits;
}

// Guesses the most telling scores, `guesses` of them, by their sign around `middle`.
Guesses Guess(std::vector<Score> scores, double middle, uint64_t guesses) {
  std::ranges::sort(scores, [&](const Score& a, const Score& b) {
    return std::abs(a.value - middle) > std::abs(b.value - middle);
  });
  Guesses made{scores.size(), guesses, 0};
  for (uint64_t i = 0; i < guesses; ++i)
    made.right += scores[i].member == (scores[i].value > middle);
  return made;
}

// Without leakage every bound is 0, or says so in 95 of 100 audits; at mu 1 it is 1 or less.
void ExpectHonest(uint64_t n,
                  const std::function<bool(const std::vector<Score>&, double mu)>& above) {
  EXPECT_LE(Share(0, n, [&](const auto& scores) { return above(scores, 0); }), kMostFalse);
  EXPECT_LE(Share(1, n, [&](const auto& scores) { return above(scores, 1); }), kAlpha);
}

double DeltaOf(double mu, double epsilon) {
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  return mu == 0 ? 0 : phi(mu / 2 - epsilon / mu) - std::exp(epsilon) * phi(-mu / 2 - epsilon / mu);
}

TEST(Null, ClopperPearsonOnSeparateRuns) {
  ExpectHonest(400, [](const std::vector<Score>& scores, double mu) {
    return BoundBySplit(scores, 1, kAlpha).mu > mu;
  });
}

TEST(Null, EpsilonOfAThresholdGivenBefore) {
  ExpectHonest(400, [](const std::vector<Score>& scores, double mu) {
    // Epsilon 1 holds at this delta.
    const double epsilon = mu, delta = DeltaOf(mu, epsilon);
    return ProvedEpsilon(CountAbove(scores, 0.5), delta, kAlpha) > epsilon;
  });
}

TEST(Null, SteinkeWithAndWithoutAbstaining) {
  for (const uint64_t guesses : {60, 200})
    ExpectHonest(200, [&](const std::vector<Score>& scores, double mu) {
      const double epsilon = 3 * mu, delta = DeltaOf(mu, epsilon);
      return SteinkePValue(Guess(scores, mu / 2, guesses), epsilon, delta) < kAlpha;
    });
}

bool CurveRefuted(const Guesses& guesses, double mu) {
  return RefutesCurve(
      guesses, [mu](double p) { return std::erfc(-(NormalQuantile(p) - mu) / std::sqrt(2.0)) / 2; },
      kAlpha);
}

TEST(Null, TheCurveWithAndWithoutAbstaining) {
  for (const uint64_t guesses : {60, 200})
    ExpectHonest(200, [&](const std::vector<Score>& scores, double mu) {
      return CurveRefuted(Guess(scores, mu / 2, guesses), mu);
    });
}

TEST(Null, XiangWhereGuessesErr) {
  const std::function<bool(const Guesses&, double)> above = [](const Guesses& guesses, double mu) {
    // The p-value of 100 canaries depends on the errors alone.
    static std::vector<double> known[2] = {std::vector<double>(101, -1),
                                           std::vector<double>(101, -1)};
    double& p = known[mu > 0 ? 1 : 0][guesses.right];
    if (p < 0) p = XiangPValue(guesses, std::max(mu, 1e-9));
    return p < kAlpha;
  };
  ExpectHonest(100, [&](const std::vector<Score>& scores, double mu) {
    return above(Guess(scores, mu / 2, 100), mu);
  });
}

// Each bound sees a leak: a bound that is always 0 would pass the tests above.
TEST(Leaks, AreSeenByEachBound) {
  EXPECT_GT(Share(3, 400, [](const auto& s) { return BoundBySplit(s, 1, kAlpha).mu > 1; }), 0.99);
  EXPECT_GT(
      Share(3, 400, [](const auto& s) { return ProvedEpsilon(CountAbove(s, 2.5), 0, kAlpha) > 1; }),
      0.9);
  EXPECT_GT(Share(3, 200,
                  [](const auto& s) { return SteinkePValue(Guess(s, 1.5, 60), 1, 1e-5) < kAlpha; }),
            0.99);
  EXPECT_GT(Share(3, 200, [](const auto& s) { return CurveRefuted(Guess(s, 1.5, 60), 1); }), 0.9);
  EXPECT_GT(XiangMu({100, 100, 93}, kAlpha), 1);
}

// Planted: the threshold of most right answers on the labels that judge it.
TEST(PlantedInBounds, AThresholdChosenOnItsOwnLabels) {
  EXPECT_GT(Share(0, 200,
                  [](const std::vector<Score>& scores) {
                    Guesses best{200, 200, 0};
                    for (const Score& at : scores)
                      best.right = std::max(best.right, Guess(scores, at.value, 200).right);
                    return SteinkePValue(best, 0, 0) < kAlpha;
                  }),
            2 * kMostFalse);
}

// Planted: the number of guesses that does best.
TEST(PlantedInBounds, ANumberOfGuessesChosenAfterwards) {
  EXPECT_GT(Share(0, 200,
                  [](const std::vector<Score>& scores) {
                    for (uint64_t guesses = 5; guesses <= 200; guesses += 5)
                      if (SteinkePValue(Guess(scores, 0, guesses), 0, 0) < kAlpha) return true;
                    return false;
                  }),
            2 * kMostFalse);
}

// Planted: those abstained from are not counted as canaries, so that the most telling of 1,000 pass
// for all of 20.
TEST(PlantedInBounds, AbstentionsThatAreForgotten) {
  EXPECT_GT(Share(1, 1000,
                  [](const std::vector<Score>& scores) {
                    Guesses guesses = Guess(scores, 0.5, 20);
                    guesses.canaries = guesses.guesses;
                    return CurveRefuted(guesses, 1);
                  }),
            2 * kMostFalse);
}

// Planted: guesses that turned out wrong are made abstentions of.
TEST(PlantedInBounds, WrongGuessesMadeAbstentions) {
  EXPECT_GT(Share(0, 200,
                  [](const std::vector<Score>& scores) {
                    Guesses guesses = Guess(scores, 0, 100);
                    guesses.guesses -= (guesses.guesses - guesses.right) / 4;
                    return SteinkePValue(guesses, 0, 0) < kAlpha;
                  }),
            2 * kMostFalse);
}

// Planted: a rate's upper bound where the lower one belongs, and the greater of both signs.
TEST(PlantedInBounds, UpperBoundsOnBothSides) {
  EXPECT_GT(Share(0, 400,
                  [](const std::vector<Score>& scores) {
                    const Counts c = CountAbove(scores, 0.0);
                    const double found = RateUpper(c.found, c.members, kAlpha / 2),
                                 alarms = RateUpper(c.false_alarms, c.others, kAlpha / 2);
                    return std::abs(NormalQuantile(found) + NormalQuantile(alarms)) > 0.05;
                  }),
            2 * kMostFalse);
}

// Planted: scores joined by their order, after a loader has shuffled one side. The leak is lost.
TEST(PlantedInBounds, ScoresJoinedByOrderHideALeak) {
  std::mt19937_64 random(2);
  std::vector<Score> scores = Draw(3, 4000, random), coins = scores;
  std::ranges::shuffle(coins, random);
  for (size_t i = 0; i < scores.size(); ++i) scores[i].member = coins[i].member;
  EXPECT_LT(BoundBySplit(scores, 1, kAlpha).mu, 0.3);
  EXPECT_FALSE(Less(coins, scores).has_value());
}

}  // namespace
}  // namespace tacit::audit
