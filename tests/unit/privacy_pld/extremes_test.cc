#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "accountants.h"
#include "privacy/rdp.h"

// Far corners: the bounds may be wide there, but they are bounds, or an answer is refused.
namespace tacit::privacy {
namespace {

TEST(PldAccountant, KeepsItsPromisesInEveryCorner) {
  size_t cell = 0, answered = 0;
  for (double rate : {1e-6, 1e-3, 0.3, 1.0})
    for (double sigma : {0.2, 1.0, 30.0, 1000.0})
      for (double steps : {2.0, 1e3, 1e6, 1e9})
        for (double delta : {1e-3, 1e-8, 1e-14}) {
          if (cell++ % testing::Stride(5) != 0) continue;
          const std::string what = "q " + std::to_string(rate) + " sigma " + std::to_string(sigma) +
                                   " steps " + std::to_string(steps);
          PldAccountant accountant(Adjacency::kAddRemove);
          ASSERT_TRUE(
              accountant.Add(Event::PoissonGaussian(sigma, rate), static_cast<uint64_t>(steps)));
          const auto found = accountant.Epsilon(Delta(delta));
          if (!found) {
            EXPECT_EQ(found.error().code, ErrorCode::kRefused) << what;
            continue;
          }
          ++answered;
          EXPECT_TRUE(std::isfinite(found->upper) && std::isfinite(found->lower)) << what;
          EXPECT_GE(found->lower, 0) << what;
          EXPECT_LE(found->lower, found->upper) << what;
          // No looser than RDP, save where the two are next to nothing.
          RdpAccountant rdp;
          ASSERT_TRUE(rdp.Add(Event::PoissonGaussian(sigma, rate), static_cast<uint64_t>(steps)));
          EXPECT_LE(found->upper, rdp.Epsilon(Delta(delta)).epsilon * 1.01 + 1e-4) << what;
          EXPECT_LE(found->lower, rdp.Epsilon(Delta(delta)).epsilon) << what;
        }
  EXPECT_GT(answered, 30u);
}

TEST(PldAccountant, RefusesWhereRoundingWouldDecide) {
  PldAccountant accountant(Adjacency::kAddRemove);
  ASSERT_TRUE(accountant.Add(Event::PoissonGaussian(1, 0.1), uint64_t{1} << 62));
  const auto found = accountant.Epsilon(Delta(1e-6));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kRefused);
}

// A file of events gives the same one on several lines.
TEST(PldAccountant, CountsThatAreTooManyTogetherAreNotFewAgain) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  for (const Event& event :
       {Event::PureDp(1), Event::Laplace(1), Event::Exponential(1), Event::Zcdp(0.5),
        Event::PoissonGaussian(1, 0.1), Event::KnownCoin(1, 0.5), Event::Allocation(1, 10)}) {
    SCOPED_TRACE(Name(event.kind));
    const CountedEvent lines[] = {{event, kHalf}, {event, kHalf}, {event, 1}};
    PldAccountant accountant(Adjacency::kAddRemove);
    for (const auto& [line, count] : lines) ASSERT_TRUE(accountant.Add(line, count));
    EXPECT_FALSE(accountant.Epsilon(Delta(1e-6)));
    EXPECT_FALSE(accountant.DeltaAt(1));
    EXPECT_FALSE(PldUpperEpsilon(lines, Adjacency::kAddRemove, Delta(1e-6)));
  }
}

// Neither an answer nor a refusal far away may spoil the next one.
TEST(PldAccountant, IsNotLedAstrayByAnEarlierQuestion) {
  const auto make = [] {
    PldAccountant accountant(Adjacency::kAddRemove);
    EXPECT_TRUE(accountant.Add(Event::PoissonGaussian(0.55, 0.0137), 1));
    EXPECT_TRUE(accountant.Add(Event::Gaussian(0.85), 1));
    return accountant;
  };
  const double fresh = make().Epsilon(Delta(1e-7)).value().upper;
  PldAccountant accountant = make();
  for (double epsilon : {300.0, 50.0, 1e4, 0.01, 1e-6, 0.0}) {
    const auto far = accountant.DeltaAt(epsilon);
    if (far) {
      EXPECT_LE(far->lower, far->upper);
    }
    const auto found = accountant.Epsilon(Delta(1e-7));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_NEAR(found->upper / fresh, 1, 2e-3) << epsilon;
  }
}

// Such an event promises nothing; no lattice holds it beside others.
TEST(PldAccountant, RefusesToComposeWhatIsAbsurd) {
  for (const Event& absurd : {Event::Gaussian(1e-8), Event::Zcdp(1e12), Event::Zcdp(1125),
                              Event::Laplace(1e15), Event::PureDp(1e20), Event::Exponential(1e7)}) {
    PldAccountant accountant(Adjacency::kAddRemove);
    ASSERT_TRUE(accountant.Add(absurd, 2));
    ASSERT_TRUE(accountant.Add(Event::PureDp(1e-20), 1));
    const auto epsilon = accountant.Epsilon(Delta(1e-6));
    ASSERT_FALSE(epsilon);
    EXPECT_EQ(epsilon.error().code, ErrorCode::kRefused);
    EXPECT_FALSE(accountant.DeltaAt(1));
    const CountedEvent events[] = {{absurd, 2}, {Event::PureDp(1e-20), 1}};
    EXPECT_FALSE(PldUpperEpsilon(events, Adjacency::kAddRemove, Delta(1e-6)));
  }
}

TEST(PldAccountant, RefusesEventsOutOfTheirDomain) {
  PldAccountant accountant(Adjacency::kAddRemove);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Event& event :
       {Event::PoissonGaussian(0, 0.1), Event::PoissonGaussian(1, 0), Event::PoissonGaussian(1, 2),
        Event::PoissonGaussian(std::nan(""), 0.1), Event::PoissonGaussian(0.01, 0.1),
        Event::PoissonGaussian(1e197, 0.1), Event::KnownCoin(1e197, 0.1), Event::Gaussian(-1),
        Event::Laplace(0), Event::PureDp(infinity), Event::Zcdp(-1),
        Event::Exponential(std::nan(""))}) {
    const Status status = accountant.Add(event, 1);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(accountant.Epsilon(Delta(1e-6))->upper, 0);
  EXPECT_EQ(accountant.DeltaAt(0)->upper, 0);
}

TEST(PldAccountant, IsMonotone) {
  const auto at = [](double sigma, double rate, double steps, double delta) {
    return testing::SampledEpsilon(sigma, rate, steps, delta);
  };
  const CertifiedInterval base = at(1, 0.01, 1000, 1e-6);
  EXPECT_GT(at(1, 0.01, 1100, 1e-6).lower, base.upper);
  EXPECT_GT(at(1, 0.011, 1000, 1e-6).lower, base.upper);
  EXPECT_GT(at(0.95, 0.01, 1000, 1e-6).lower, base.upper);
  EXPECT_GT(at(1, 0.01, 1000, 5e-7).lower, base.upper);
  PldAccountant accountant(Adjacency::kAddRemove);
  ASSERT_TRUE(accountant.Add(Event::PoissonGaussian(1, 0.01), 1000));
  double last = 1;
  for (double epsilon : {0.1, 0.5, 1.0, 2.0, 4.0}) {
    const CertifiedInterval delta = *accountant.DeltaAt(epsilon);
    EXPECT_LT(delta.upper, last);
    last = delta.lower;
  }
}

TEST(PldAccountant, IsZeroWhereDeltaCoversEverything) {
  const CertifiedInterval found = testing::SampledEpsilon(10, 1e-4, 100, 0.01);
  EXPECT_EQ(found.upper, 0);
  EXPECT_EQ(found.lower, 0);
}

}  // namespace
}  // namespace tacit::privacy
