#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "accountants.h"
#include "privacy/pld/plan.h"
#include "privacy/pld/side.h"
#include "privacy/rdp.h"

// Properties of compositions of any events: a certified answer is checked without knowing the right
// one.
namespace tacit::privacy {
namespace {

constexpr double kDeltas[] = {1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13, 1e-15};
// Two roads to one number part in their last digits.
constexpr double kDigits = 1e-12;

// Random compositions of two to four parts, small and large, of every kind of event.
class RandomParts {
 public:
  explicit RandomParts(uint64_t seed) : random_(seed) {}

  std::vector<CountedEvent> Next() {
    std::vector<CountedEvent> parts(2 + random_() % 3);
    // Bounded losses alone are a corner of their own, for their tilt has no end, and cost little
    // time.
    const bool bounded = random_() % 4 != 0;
    for (CountedEvent& part : parts) {
      part.event = bounded ? Bounded() : Any();
      part.count = 1 + static_cast<uint64_t>(Between(1, 200)) % 100;
    }
    return parts;
  }

 private:
  double Between(double low, double high) {  // evenly on a logarithm
    return low * std::pow(high / low, std::uniform_real_distribution<double>()(random_));
  }
  Event Bounded() {
    const double epsilon = Between(1e-3, 4);
    switch (random_() % 3) {
      case 0:
        return Event::PureDp(epsilon);
      case 1:
        return Event::Laplace(epsilon);
      default:
        return Event::Exponential(epsilon);
    }
  }
  Event Any() {
    switch (random_() % 6) {
      case 0:
        return Event::Gaussian(Between(0.4, 40));
      case 1:
        return Event::PoissonGaussian(Between(0.4, 10), Between(1e-4, 0.9));
      case 2:
        return Event::Zcdp(Between(1e-5, 0.3));
      case 3:
        return Event::KnownCoin(Between(0.4, 10), Between(1e-4, 0.9));
      case 4:
        // Few settings: each law takes a tenth of a second.
        return Event::Allocation(random_() % 2 == 0 ? 1 : 3, random_() % 2 == 0 ? 2 : 30);
      default:
        return Bounded();
    }
  }

  std::mt19937_64 random_;
};

std::string TextOf(const std::vector<CountedEvent>& parts) {
  std::string text;
  for (const auto& [event, count] : parts)
    text += std::to_string(count) + " of " + std::string(Name(event.kind)) + " noise " +
            std::to_string(event.noise_multiplier) + " rate " +
            std::to_string(event.sampling_rate) + " epsilon " + std::to_string(event.epsilon) +
            " rho " + std::to_string(event.rho) + " steps " + std::to_string(event.steps) + "; ";
  return text;
}

PldAccountant AccountOf(std::span<const CountedEvent> parts, const Laws& laws) {
  PldAccountant accountant(Adjacency::kAddRemove, laws);
  for (const auto& [event, count] : parts) EXPECT_TRUE(accountant.Add(event, count));
  return accountant;
}

// All bounds of one composition and of its parts.
class Checked {
 public:
  Checked(const std::vector<CountedEvent>& parts, const Laws& laws) : parts_(parts), laws_(laws) {
    whole_.push_back(AccountOf(parts_, laws_));
    for (const CountedEvent& part : parts_) alone_.push_back(AccountOf({&part, 1}, laws_));
  }

  // Holds what is said of these deltas against each other. Returns the number of answers.
  size_t Check(std::span<const double> deltas) {
    for (const double delta : deltas) CheckAt(delta);
    for (const Said& less : said_)
      for (const Said& more : said_) {
        if (less.delta >= more.delta) continue;
        EXPECT_LE(more.bounds.lower, less.bounds.upper * (1 + kDigits)) << less.delta;
        // Each bound alone is sharp to some 0.15 % and no better.
        EXPECT_LE(more.bounds.upper, less.bounds.upper * 1.005 + 2e-6) << less.delta;
      }
    return said_.size();
  }

 private:
  Result<double> UpperOf(std::span<const CountedEvent> parts, double delta) const {
    return PldUpperEpsilon(parts, Adjacency::kAddRemove, Delta(delta), nullptr, laws_);
  }

  void CheckAt(double delta) {
    SCOPED_TRACE("delta " + std::to_string(std::log10(delta)));
    const auto found = whole_.front().Epsilon(Delta(delta));
    const auto upper = UpperOf(parts_, delta);
    double sum = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto of_part = alone_[i].Epsilon(Delta(delta));
      const auto of_share = UpperOf({&parts_[i], 1}, delta / static_cast<double>(parts_.size()));
      sum += of_share.value_or(std::numeric_limits<double>::infinity());
      if (!of_part) continue;
      EXPECT_LE(of_part->lower, of_part->upper);
      if (found) {
        EXPECT_GE(found->upper, of_part->lower * (1 - kDigits));
      }
      if (upper) {
        EXPECT_GE(*upper, of_part->lower * (1 - kDigits));
      }
    }
    if (!found) {
      EXPECT_FALSE(found.error().message.empty());
      return;
    }
    EXPECT_TRUE(std::isfinite(found->upper));
    EXPECT_GE(found->lower, 0);
    EXPECT_LE(found->lower, found->upper);
    EXPECT_LE(found->lower, sum * (1 + kDigits));
    if (upper) {
      EXPECT_GE(*upper, found->lower * (1 - kDigits));
    }
    said_.push_back({delta, *found});
    // The curve says the same.
    const auto at_upper = whole_.front().DeltaAt(found->upper);
    if (at_upper) {
      EXPECT_LE(at_upper->lower, delta * (1 + 1e-6));
    }
    const auto at_lower = whole_.front().DeltaAt(found->lower);
    if (at_lower && found->lower > 0) {
      EXPECT_GE(at_lower->upper, delta * (1 - 1e-6));
    }
  }

  struct Said {
    double delta = 0;
    CertifiedInterval bounds;
  };
  const std::vector<CountedEvent>& parts_;
  const Laws laws_;
  std::vector<PldAccountant> whole_, alone_;
  std::vector<Said> said_;
};

TEST(Compositions, AreAtLeastTheirPartsAndAtMostTheirSum) {
  const uint64_t seed = std::random_device{}();
  RandomParts random(seed);
  std::mt19937_64 order(seed);
  const Laws laws = MakeLaws();
  const size_t compositions = 5000 / testing::Stride(100);
  size_t asked = 0, answered = 0;
  for (size_t i = 0; i < compositions && !HasFailure(); ++i) {
    const std::vector<CountedEvent> parts = random.Next();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", composition " + std::to_string(i) + ": " +
                 TextOf(parts));
    std::array<double, std::size(kDeltas)> deltas;
    std::ranges::copy(kDeltas, deltas.begin());
    std::ranges::shuffle(deltas, order);
    constexpr size_t kAsked = 2;
    asked += kAsked;
    answered += Checked(parts, laws).Check(std::span(deltas).first(kAsked));
  }
  std::cout << "seed " << seed << ": " << compositions << " compositions, " << answered
            << " answers of " << asked << "\n";
  EXPECT_GT(answered, asked * 9 / 10);
}

// delta(epsilon) of randomized response made n times: its losses are binomial.
long double BinomialDelta(double epsilon, int n, long double at) {
  long double sum = 0;
  const long double e = epsilon, log_right = -std::log1p(std::exp(-e)), log_wrong = log_right - e;
  for (int right = 0; right <= n; ++right) {
    const long double loss = e * (2 * right - n);
    if (loss <= at) continue;
    const long double log_ways =
        std::lgamma(1.0L + n) - std::lgamma(1.0L + right) - std::lgamma(1.0L + n - right);
    sum -= std::exp(log_ways + right * log_right + (n - right) * log_wrong) * std::expm1(at - loss);
  }
  return sum;
}
// The sum of n numbers, each even between -1 and 1, as a density times 2^n.
long double EvenSum(int n, long double x) {
  long double sum = 0, ways = 1;
  x = n - std::abs(x);  // from the nearer end, where few terms cancel
  for (int k = 0; k <= n && x > 2 * k; ++k) {
    sum += (k % 2 == 0 ? ways : -ways) * std::pow(x - 2 * k, n - 1);
    ways *= static_cast<long double>(n - k) / (k + 1);
  }
  return sum / std::tgamma(static_cast<long double>(n));
}

// The integral of f between two points, by Gauss's rule of five points on eight parts.
template <class F>
long double Integral(long double from, long double to, const F& f) {
  constexpr long double kAt[] = {0, 0.538469310105683091036L, 0.906179845938663992798L};
  constexpr long double kWeight[] = {0.568888888888888888889L, 0.478628670499366468042L,
                                     0.236926885056189087514L};
  long double sum = 0;
  const long double half = (to - from) / 16;
  for (int part = 0; part < 8; ++part) {
    const long double middle = from + (2 * part + 1) * half;
    sum += kWeight[0] * f(middle);
    for (int i = 1; i < 3; ++i)
      sum += kWeight[i] * (f(middle - kAt[i] * half) + f(middle + kAt[i] * half));
  }
  return sum * half;
}

// delta(epsilon) of Laplace noise added n times. A loss is e with probability 1/2, -e with
// probability exp(-e) / 2, and between them has the density exp((loss - e) / 2) / 4.
long double LaplaceDelta(double epsilon, int n, long double at) {
  const long double e = epsilon;
  long double sum = 0;
  for (int most = 0; most <= n; ++most)
    for (int least = 0; most + least <= n; ++least) {
      const int between = n - most - least;
      const long double atoms = (most - least) * e;
      const long double weight =
          std::exp(std::lgamma(1.0L + n) - std::lgamma(1.0L + most) - std::lgamma(1.0L + least) -
                   std::lgamma(1.0L + between) - least * e - (most + least) * std::log(2.0L) -
                   between * std::log(4.0L));
      if (between == 0) {
        if (atoms > at) sum -= weight * std::expm1(at - atoms);
        continue;
      }
      // In units of e; its pieces end at whole numbers, and it begins where the loss is `at`.
      const long double begin = (at - atoms) / e;
      for (int piece = -between; piece < between; piece += 2) {
        const long double from = std::max<long double>(piece, begin);
        if (from >= piece + 2) continue;
        sum += weight * std::pow(e, between) * Integral(from, piece + 2, [&](long double x) {
                 return -EvenSum(between, x) * std::exp((x - between) * e / 2) *
                        std::expm1(at - atoms - e * x);
               });
      }
    }
  return sum;
}

using DeltaOf = long double (*)(double epsilon, int n, long double at);
long double EpsilonOf(DeltaOf delta_of, double epsilon, int n, double delta) {
  long double low = 0, high = static_cast<long double>(epsilon) * n;
  if (delta_of(epsilon, n, 0) <= delta) return 0;
  for (int i = 0; i < 100; ++i) {
    const long double middle = (low + high) / 2;
    (delta_of(epsilon, n, middle) > delta ? low : high) = middle;
  }
  return low;
}

void ExpectEpsilons(const Event& event, DeltaOf delta_of, int n, double digits) {
  for (const double delta : {1e-3, 1e-6, 1e-7, 1e-8, 1e-11, 1e-15}) {
    SCOPED_TRACE(std::to_string(n) + " of " + std::string(Name(event.kind)) + " " +
                 std::to_string(event.epsilon) + " at 1e" + std::to_string(std::log10(delta)));
    const auto truth = static_cast<double>(EpsilonOf(delta_of, event.epsilon, n, delta));
    PldAccountant accountant(Adjacency::kAddRemove);
    ASSERT_TRUE(accountant.Add(event, static_cast<uint64_t>(n)));
    const auto found = accountant.Epsilon(Delta(delta));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GE(found->upper, truth * (1 - digits));
    EXPECT_LE(found->upper, truth * 1.002 + 1e-6);
    EXPECT_LE(found->lower, truth * (1 + digits));
    const auto upper =
        PldUpperEpsilon(event, static_cast<uint64_t>(n), Adjacency::kAddRemove, Delta(delta));
    ASSERT_TRUE(upper) << upper.error().message;
    EXPECT_GE(*upper, truth * (1 - digits));
    if (delta != 1e-7) continue;
    const auto curve = accountant.DeltaAt(truth / 2);
    ASSERT_TRUE(curve) << curve.error().message;
    const auto half = static_cast<double>(delta_of(event.epsilon, n, truth / 2));
    EXPECT_GE(curve->upper, half * (1 - 1e-9));
    EXPECT_LE(curve->lower, half * (1 + 1e-9));
  }
}

TEST(Compositions, OfRandomizedResponseAreBinomial) {
  for (const double epsilon : {0.01, 0.1, 0.4361636785258725, 0.609767, 1.0, 3.0})
    for (const int n : {1, 2, 3, 10, 68}) {
      const Event events[] = {Event::PureDp(epsilon), Event::Exponential(epsilon)};
      ExpectEpsilons(events[n % 2], BinomialDelta, n, kDigits);
    }
}

TEST(Compositions, OfLaplaceNoiseAreSumsOfItsLosses) {
  for (const double epsilon : {0.01, 0.1, 0.4361636785258725, 0.609767, 1.0, 3.0}) {
    EXPECT_NEAR(static_cast<double>(LaplaceDelta(epsilon, 1, epsilon / 3)),
                -std::expm1(-epsilon / 3), 1e-15);
    for (const int n : {1, 2, 3, 5}) ExpectEpsilons(Event::Laplace(epsilon), LaplaceDelta, n, 1e-9);
  }
}

// Doubles end: an upper bound that has lost its numbers is none, and never a small one.
TEST(Compositions, SayNothingWhereTheirNumbersVanish) {
  const pld::Kind kind(Event::PureDp(1), pld::Direction::kRemove);
  const pld::Counted twice{&kind, 2};
  pld::Plan plan =
      pld::MakePlan({&twice, 1}, pld::SaddleForEpsilon({&twice, 1}, 1), 1e-3, 24, true);
  const pld::Grid grid = pld::MakeGrid(*kind.law, plan.step, 1, 0, 1e-12, 24);
  const pld::LatticeLaws laws = pld::Discretise(*kind.law, grid);
  plan.period = 4096;
  const auto side_with = [&](double tilt) {
    plan.tilt = plan.saddle.tilt = plan.tilt_below = tilt;
    plan.tilt_above = 2 * tilt;
    pld::Side side(plan, true);
    side.SetFrequencies(plan.period / 2 + 1);
    side.AddPart(&kind, laws.upper);
    side.SetCounts({twice});
    return side;
  };
  const pld::Side right = side_with(2);
  EXPECT_NEAR(right.DeltaAt(1), static_cast<double>(BinomialDelta(1, 2, 1)), 1e-6);
  const pld::Side lost = side_with(800 / plan.step);
  EXPECT_TRUE(std::isinf(lost.DeltaAt(1)));
  EXPECT_TRUE(std::isinf(lost.Epsilon(std::log(1e-6), 1)));

  EXPECT_TRUE(pld::IsWhole(laws.upper));
  for (const double mass : {std::nan(""), 0.0, -1.0}) {
    pld::LatticeLaw broken = laws.upper;
    *std::ranges::max_element(broken.mass) = mass;
    EXPECT_FALSE(pld::IsWhole(broken)) << mass;
  }
}

// Delta depends on the difference of two numbers, both of which are some millions here.
TEST(Compositions, OfGaussiansHoldWhereDoublesAreCoarse) {
  PldAccountant accountant(Adjacency::kAddRemove);
  ASSERT_TRUE(accountant.Add(Event::Gaussian(0.001624097824181795), 104906167));
  ASSERT_TRUE(accountant.Add(Event::Gaussian(4418.344468165243), 697));
  const auto delta = accountant.DeltaAt(19886110651423.934);
  ASSERT_TRUE(delta);
  constexpr double kTruth = 1.7090890654759406e-119;  // in 50 digits
  EXPECT_LE(delta->lower, kTruth);
  EXPECT_GE(delta->upper, kTruth);
  EXPECT_LE(delta->upper, 1.001 * kTruth);
}

TEST(Compositions, HaveNoDeltaThatIsCertifiedToBeZero) {
  const auto at = [](const Event& event, uint64_t count, double epsilon) {
    PldAccountant accountant(Adjacency::kAddRemove);
    EXPECT_TRUE(accountant.Add(event, count));
    const auto delta = accountant.DeltaAt(epsilon);
    EXPECT_TRUE(delta) << delta.error().message;
    return delta->upper;
  };
  for (const uint64_t count : {1, 2})
    for (const double epsilon : {800.0, 1e6, 1e300}) {
      EXPECT_GT(at(Event::Gaussian(1), count, epsilon), 0) << epsilon;
      EXPECT_GT(at(Event::PoissonGaussian(0.1, 0.5), count, epsilon), 0) << epsilon;
      EXPECT_GT(at(Event::KnownCoin(0.1, 0.5), count, epsilon), 0) << epsilon;
    }
  // A sampled Gaussian's delta at 710, by its tail: e^710 is no number.
  EXPECT_GT(at(Event::PoissonGaussian(0.05, 0.5), 1, 710), 1e-150);
  RdpAccountant rdp;
  EXPECT_EQ(rdp.DeltaAt(800), 0);
  ASSERT_TRUE(rdp.Add(Event::Gaussian(1), 1));
  EXPECT_GT(rdp.DeltaAt(800), 0);
  // A greatest loss ends the curve.
  EXPECT_EQ(at(Event::PureDp(1), 1, 1), 0);
  EXPECT_GT(at(Event::PureDp(1), 1, 0.999), 0);
  // Nor does an epsilon vanish where e^epsilon does.
  PldAccountant huge(Adjacency::kAddRemove);
  ASSERT_TRUE(huge.Add(Event::PureDp(1e8), 1));
  const auto found = huge.Epsilon(Delta(1e-6));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace tacit::privacy
