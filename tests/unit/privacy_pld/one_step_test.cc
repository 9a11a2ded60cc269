#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "accountants.h"
#include "privacy/gaussian.h"
#include "privacy/pld/lattice_law.h"

// One event has a closed form: everything is held against it.
namespace tacit::privacy {
namespace {

using pld::Direction;

double Tail(double x) { return std::erfc(x / std::sqrt(2.0)) / 2; }

// delta(epsilon) of one sampled step, straight from the definition.
double SampledDelta(double rate, double sigma, double epsilon, Direction direction) {
  if (direction == Direction::kRemove) {
    const double above = std::expm1(epsilon) + rate;
    if (above <= 0) return -std::expm1(epsilon);
    const double x = 0.5 + sigma * sigma * std::log(above / rate);
    return (1 - rate) * Tail(x / sigma) + rate * Tail((x - 1) / sigma) -
           std::exp(epsilon) * Tail(x / sigma);
  }
  const double above = std::expm1(-epsilon) + rate;
  if (above <= 0) return 0;
  const double x = 0.5 + sigma * sigma * std::log(above / rate);
  const double at_zero = 1 - Tail(x / sigma);
  return at_zero - std::exp(epsilon) * ((1 - rate) * at_zero + rate * (1 - Tail((x - 1) / sigma)));
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
        const double exact = std::max(SampledDelta(rate, sigma, found.upper, Direction::kRemove),
                                      SampledDelta(rate, sigma, found.upper, Direction::kAdd));
        EXPECT_NEAR(exact, delta, 1e-6 * delta + 2e-15) << rate << " " << sigma;
      }
}

// Two steps by integrating one step's closed form over the other.
TEST(PldAccountant, HoldsTwoStepsBetweenItsBounds) {
  const double rate = 0.05, sigma = 0.8;
  const auto two = [&](double epsilon) {
    long double sum = 0;
    constexpr int kNodes = 40000;
    const double low = -10 * sigma, width = (1 + 20 * sigma) / kNodes;
    for (int i = 0; i <= kNodes; ++i) {
      const double x = low + i * width;
      const double loss = std::log1p(rate * std::expm1((2 * x - 1) / (2 * sigma * sigma)));
      const double density =
          std::exp(-x * x / (2 * sigma * sigma) + loss) / sigma / std::sqrt(2 * M_PI);
      sum += static_cast<long double>(density) *
             SampledDelta(rate, sigma, epsilon - loss, Direction::kRemove);
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
