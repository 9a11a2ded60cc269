#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "accountants.h"
#include "privacy/gaussian.h"
#include "privacy/pld/lattice_law.h"

// One event has a closed form: everything is held against it.
namespace tacit::privacy {
namespace {

using pld::Direction;

// Wide enough for what the definition cancels at a delta of 1e-300.
using Real = long double;

Real Tail(Real x) { return std::erfc(x / std::sqrt(Real(2))) / 2; }

Real GaussianDeltaOf(Real mu, Real epsilon) {
  return Tail(epsilon / mu - mu / 2) - std::exp(epsilon) * Tail(epsilon / mu + mu / 2);
}

// delta(epsilon) of one sampled step, from the definition; what all terms share is taken out.
Real SampledDelta(Real rate, Real sigma, Real epsilon, Direction direction) {
  const auto above = [&](Real x) { return Tail(x / sigma); };
  const Real variance = sigma * sigma, e = std::exp(epsilon);
  if (direction == Direction::kReplace) {
    // With s = e^(x / sigma^2): c s^2 + (1 - q) (1 - e^epsilon) s - c e^epsilon = 0.
    const Real c = rate * std::exp(-1 / (2 * variance)), b = (1 - rate) * std::expm1(epsilon) / 2;
    const Real x = variance * std::log((b + std::sqrt(b * b + c * c * e)) / c);
    return rate * (above(x - 1) - e * above(x + 1)) - (1 - rate) * std::expm1(epsilon) * above(x);
  }
  const bool remove = direction == Direction::kRemove;
  const Real excess = std::expm1(remove ? epsilon : -epsilon) + rate;
  if (excess <= 0) return remove ? -std::expm1(epsilon) : 0;
  const Real x = Real(0.5) + variance * std::log(excess / rate);
  if (remove) return rate * above(x - 1) - excess * above(x);
  return e * (excess * above(-x) - rate * above(1 - x));
}

// f(x) = sum of p_j (1 - x e^-l_j)_+.
double Curve(const pld::LatticeLaw& law, double step, double epsilon) {
  double sum = law.infinite_mass;
  for (size_t i = 0; i < law.index.size(); ++i) {
    const double loss = step * static_cast<double>(law.index[i]);
    if (loss > epsilon) sum -= law.mass[i] * std::expm1(epsilon - loss);
  }
  return sum;
}

// Checks what the whole accountant stands on: the two laws' curves are above and below the event's
// own, on the lattice and off it, for steps from fine to far longer than the loss is wide.
void ExpectDomination(const Event& event, Direction direction, double step, int64_t spacing) {
  const auto law = pld::MakeLossLaw(event, direction);
  const pld::Grid grid = pld::MakeGrid(*law, step, spacing, 0, 1e-12, 24);
  const pld::LatticeLaws laws = pld::Discretise(*law, grid);
  for (double mass : laws.lower.mass) EXPECT_GE(mass, 0);
  const double low = grid.Loss(0), high = grid.Loss(grid.index.size() - 1);
  for (int i = 0; i <= 400; ++i) {
    const double epsilon = low + (high - low) * i / 400 * (i % 2 == 0 ? 1 : 0.07);
    const double exact = pld::OneEventDelta(*law, epsilon);
    const double scale = 1e-11 * std::exp(std::max(epsilon, 0.0));
    EXPECT_GE(Curve(laws.upper, step, epsilon), exact - scale)
        << "epsilon " << epsilon << " step " << step << " spacing " << spacing;
    EXPECT_LE(Curve(laws.lower, step, epsilon), exact + scale)
        << "epsilon " << epsilon << " step " << step << " spacing " << spacing;
  }
}

TEST(LatticeLaws, StandOnEitherSideOfTheSampledGaussian) {
  for (double rate : {1e-4, 0.01, 0.3, 0.9})
    for (double sigma : {0.5, 1.0, 4.0})
      for (Direction direction : {Direction::kRemove, Direction::kAdd, Direction::kReplace}) {
        const double scale = rate * std::sqrt(std::expm1(1 / sigma / sigma));
        for (double cells : {0.3, 2.7, 24.0})
          for (int64_t spacing : {1, 16}) {
            SCOPED_TRACE("rate " + std::to_string(rate) + " sigma " + std::to_string(sigma));
            const double step = std::min(scale, 2.0) / cells / static_cast<double>(spacing);
            ExpectDomination(Event::PoissonGaussian(sigma, rate), direction, step, spacing);
          }
      }
}

TEST(LatticeLaws, StandOnEitherSideOfTheOthers) {
  for (double size : {0.01, 0.5, 3.0})
    for (double cells : {0.7, 24.0, 25.3})
      for (int64_t spacing : {1, 16}) {
        const double step = size / cells / static_cast<double>(spacing);
        ExpectDomination(Event::Laplace(size), Direction::kRemove, step, spacing);
        ExpectDomination(Event::PureDp(size), Direction::kRemove, step, spacing);
        ExpectDomination(Event::Gaussian(1 / size), Direction::kRemove, step, spacing);
      }
}

TEST(LatticeLaws, AreOffByTheSquareOfTheStep) {
  const auto law = pld::MakeLossLaw(Event::PoissonGaussian(1, 0.1), Direction::kRemove);
  const auto gap = [&](double step) {
    const pld::Grid grid = pld::MakeGrid(*law, step, 1, 0, 1e-14, 1e9);
    const pld::LatticeLaws laws = pld::Discretise(*law, grid);
    return Curve(laws.upper, step, 0.05) - Curve(laws.lower, step, 0.05);
  };
  const double coarse = gap(0.01), fine = gap(0.001);
  EXPECT_GT(fine, 0);
  EXPECT_LT(fine, coarse / 40);
}

TEST(PldAccountant, AnswersOneStepInClosedForm) {
  for (double rate : {1e-5, 0.01, 0.5})
    for (double sigma : {0.3, 1.0, 10.0})
      for (double delta : {1e-4, 1e-8, 1e-14}) {
        const CertifiedInterval found = testing::SampledEpsilon(sigma, rate, 1, delta);
        EXPECT_LE(found.upper - found.lower, 1e-6 * found.upper + 1e-12);
        if (found.upper == 0) {
          EXPECT_LE(SampledDelta(rate, sigma, 0, Direction::kRemove), delta * (1 + 1e-6));
          continue;
        }
        // The definition cancels where delta is near rounding.
        const Real exact = std::max(SampledDelta(rate, sigma, found.upper, Direction::kRemove),
                                    SampledDelta(rate, sigma, found.upper, Direction::kAdd));
        EXPECT_NEAR(static_cast<double>(exact / delta), 1, 1e-6) << rate << " " << sigma;
      }
}

// Between 1e-3 and 1e-300, at noise and rates of every size.
TEST(PldAccountant, HoldsOneStepBetweenItsBoundsInEveryTail) {
  std::mt19937_64 random(20);
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random));
  };
  constexpr double kFarthest = 690;  // e^epsilon is a double
  for (int i = 0, judged = 0; judged < 1000; ++i) {
    ASSERT_LT(i, 10'000);
    const double sigma = log_uniform(0.05, 1e8), rate = log_uniform(1e-6, 0.999);
    const double delta = log_uniform(1e-300, 1e-3);
    const Event event =
        i % 3 == 0 ? Event::KnownCoin(sigma, rate) : Event::PoissonGaussian(sigma, rate);
    const bool replace = i % 3 == 1;
    const auto exact = [&](double epsilon) {
      if (i % 3 == 0) return rate * GaussianDeltaOf(1 / Real(sigma), epsilon);
      return replace ? SampledDelta(rate, sigma, epsilon, Direction::kReplace)
                     : std::max(SampledDelta(rate, sigma, epsilon, Direction::kRemove),
                                SampledDelta(rate, sigma, epsilon, Direction::kAdd));
    };
    double low = 0, high = kFarthest;
    if (exact(low) < delta || exact(high) > delta) continue;
    while (high - low > 1e-9 * high)
      (exact((low + high) / 2) > delta ? low : high) = (low + high) / 2;
    ++judged;
    SCOPED_TRACE(fmt::format("setting {}: {}{} sigma {} rate {} epsilon {}", i, Name(event.kind),
                             replace ? ", replaced," : "", sigma, rate, low));
    PldAccountant accountant(replace ? Adjacency::kReplaceOne : Adjacency::kAddRemove);
    ASSERT_TRUE(accountant.Add(event, 1));
    const CertifiedInterval found = *accountant.DeltaAt(low);
    const Real truth = exact(low), slack = std::max(4e-8, 4e-14 * sigma);
    EXPECT_LE(found.lower, truth);
    EXPECT_GE(found.upper, truth);
    EXPECT_GE(found.lower, truth * (1 - slack)) << "sharp";
    EXPECT_LE(found.upper, truth * (1 + slack)) << "sharp";
    if (delta < 1e-100) continue;
    const CertifiedInterval epsilon = *accountant.Epsilon(Delta(delta));
    EXPECT_GE(exact(epsilon.lower), delta);
    EXPECT_LE(exact(epsilon.upper), delta);
  }
}

// Two steps by integrating one step's closed form over the other.
TEST(PldAccountant, HoldsTwoStepsBetweenItsBounds) {
  const double rate = 0.05, sigma = 0.8;
  const auto two = [&](double epsilon) {
    Real sum = 0;
    constexpr int kNodes = 40000;
    const double low = -10 * sigma, width = (1 + 20 * sigma) / kNodes;
    for (int i = 0; i <= kNodes; ++i) {
      const double x = low + i * width;
      const double loss = std::log1p(rate * std::expm1((2 * x - 1) / (2 * sigma * sigma)));
      const double density =
          std::exp(-x * x / (2 * sigma * sigma) + loss) / sigma / std::sqrt(2 * M_PI);
      sum += Real(density) * SampledDelta(rate, sigma, epsilon - loss, Direction::kRemove);
    }
    return static_cast<double>(sum * width);
  };
  for (double delta : {1e-3, 1e-5, 1e-9}) {
    const CertifiedInterval found = testing::SampledEpsilon(sigma, rate, 2, delta);
    EXPECT_LE(two(found.upper), delta * (1 + 1e-7));
    EXPECT_GE(two(found.lower), delta * (1 - 1e-7));
    EXPECT_LE(found.upper - found.lower, 2e-3 * found.upper);
  }
}

TEST(PldAccountant, IsTheExactGaussianAtRateOne) {
  for (double sigma : {0.5, 3.0})
    for (double steps : {1.0, 100.0}) {
      const double exact = GaussianEpsilon(std::sqrt(steps) / sigma, Delta(1e-6)).value;
      const CertifiedInterval found = testing::SampledEpsilon(sigma, 1, steps, 1e-6);
      EXPECT_NEAR(found.upper, exact, 1e-9 * exact);
      EXPECT_LE(found.lower, exact);
      // And with an event beside it that costs next to nothing, by the general way.
      PldAccountant mixed(Adjacency::kAddRemove);
      ASSERT_TRUE(mixed.Add(Event::PoissonGaussian(sigma, 1), static_cast<uint64_t>(steps)));
      ASSERT_TRUE(mixed.Add(Event::PureDp(1e-9), 1));
      testing::ExpectTightAround(exact, *mixed.Epsilon(Delta(1e-6)), "mixed");
    }
}

}  // namespace
}  // namespace tacit::privacy
