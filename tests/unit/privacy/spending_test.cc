#include "privacy/spending.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ledger_fixture.h"
#include "privacy/gaussian.h"
#include "privacy/infinity.h"

namespace tacit::privacy {
namespace {

Charge SampledCharge(double rate) {
  Charge charge = UsualCharge();
  charge.noise_multiplier = charge.sigma_gradient = 1;
  charge.sigma_selection = 0;
  charge.sampling_rate = rate;
  return charge;
}

CommitCharge SampledSteps(uint64_t steps, uint64_t begin, uint64_t end) {
  return {"ctr", SampledCharge(0.01), steps, steps, "log", {{0, begin, end}}};
}

Ledger PoissonLedger() {
  Ledger ledger;
  Promise promise = PromiseOf("ctr");
  promise.participation = ParticipationMode::kPoisson;
  EXPECT_TRUE(ledger.Declare(promise));
  return ledger;
}

double PldEpsilon(uint64_t steps) {
  return PldUpperEpsilon(Event::PoissonGaussian(1, 0.01), steps, Adjacency::kAddRemove, Delta(1e-6))
      .value();
}

TEST(Spending, ARateOfOneIsNoSampling) {
  EXPECT_EQ(Spending::Of(SampledCharge(1), 3), (Spending{.mu_squared = 3, .sampled = {}}));
  EXPECT_EQ(Spending::Of(SampledCharge(0.5), 3).mu_squared, 0);
  EXPECT_TRUE(std::isinf(Spending::Of(Charge{}, 1).mu_squared));
}

TEST(Spending, AddingMergesSettings) {
  Spending sum;
  for (const double rate : {0.1, 0.01, 0.1, 0.2}) sum.Add(Spending::Of(SampledCharge(rate), 2));
  ASSERT_EQ(sum.sampled.size(), 3u);
  EXPECT_EQ(sum.sampled[1].count, 4u);
  EXPECT_TRUE(sum.Covers(Spending::Of(SampledCharge(0.1), 4)));
  EXPECT_FALSE(sum.Covers(Spending::Of(SampledCharge(0.1), 5)));
  EXPECT_FALSE(sum.Covers(Spending::Of(SampledCharge(1), 1)));
}

// A forged ledger may name such counts.
TEST(Spending, CountsThatAreTooManyTogetherAreNotFewAgain) {
  const Spending half = Spending::Of(SampledCharge(0.1), uint64_t{1} << 63);
  Spending sum = half;
  sum.Add(half);
  EXPECT_TRUE(sum.Covers(half));
  sum.Add(Spending::Of(SampledCharge(0.1), 1));
  EXPECT_TRUE(sum.Covers(half));
  EXPECT_TRUE(std::isinf(EpsilonMeter().Bounds(sum, Delta(1e-6)).upper));
  EXPECT_EQ(Scaled(sum, 1), sum);
}

// No arithmetic of a ledger gives it; if one did, it would not be taken for nothing spent.
TEST(Spending, WhatIsNoNumberIsTheWorstAndIsNotDropped) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const Spending& strange : {Spending{.mu_squared = none}, Spending{.rho = none},
                                  Spending{.mu_squared = none, .rho = 1}}) {
    const Spending usual{.mu_squared = 4, .rho = 1};
    EXPECT_FALSE(usual.Covers(strange));
    std::vector<Spending> before = {usual}, behind = {strange};
    InsertMaximal(strange, &before);
    InsertMaximal(usual, &behind);
    for (const std::vector<Spending>& maximal : {before, behind}) {
      double worst = 0;
      for (const Spending& one : maximal)
        worst = std::max(worst, EpsilonMeter().Bounds(one, Delta(1e-6)).upper);
      EXPECT_TRUE(std::isinf(worst)) << worst;
    }
    EXPECT_EQ(EpsilonMeter().Advantage(strange, Delta(1e-6)), 1);
  }
  for (const auto& [a, b] : {std::pair(none, 1.0), std::pair(1.0, none), std::pair(none, none)})
    EXPECT_EQ(Worse(a, b), kInfinity);
  EXPECT_EQ(Worse(1, 2), 2);
  EXPECT_EQ(Worse(2, 1), 2);
}

TEST(EpsilonMeter, GrowingAndFromScratchAgreeWithinTheCertificate) {
  EpsilonMeter growing;
  Spending spending;
  for (int i = 0; i < 30; ++i) {
    spending.Add(Spending::Of(SampledCharge(i % 3 == 0 ? 0.02 : 0.01), 1 + i));
    const CertifiedInterval grown = growing.Bounds(spending, Delta(1e-6));
    const CertifiedInterval fresh = EpsilonMeter().Bounds(spending, Delta(1e-6));
    EXPECT_LE(fresh.lower, grown.upper);
    EXPECT_LE(grown.lower, fresh.upper);
    EXPECT_NEAR(grown.upper, fresh.upper, 0.004 * fresh.upper + 1e-6);
  }
}

// Amplification is worth having and has its price: less than every step in full, more than one.
TEST(PoissonLedger, ChargesTheSampledGaussian) {
  Ledger ledger = PoissonLedger();
  AppendOne(ledger, 1, SampledSteps(100, 0, 50000));
  const double epsilon = ledger.Total().epsilon;
  EXPECT_NEAR(epsilon, PldEpsilon(100), 0.004 * epsilon);
  EXPECT_LT(epsilon, GaussianEpsilon(10, Delta(1e-6)).value / 5);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

TEST(PoissonLedger, PeriodsOfEventsAreDisjointAndAPeriodsStepsAddUp) {
  Ledger ledger = PoissonLedger();
  uint64_t commit = 0;
  for (uint64_t period = 0; period < 3; ++period)
    for (int part = 0; part < 4; ++part)
      AppendOne(ledger, ++commit, SampledSteps(25, period * 1000, period * 1000 + 1000));
  EXPECT_NEAR(ledger.Total().epsilon, PldEpsilon(100), 0.004 * ledger.Total().epsilon);
  EXPECT_EQ(ledger.entries().size(), 1u) << "one run, at any cost by now";
  EXPECT_EQ(ledger.entries()[0].steps, 300u);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

TEST(PoissonLedger, APeriodLearntAgainCostsAgain) {
  Ledger ledger = PoissonLedger();
  AppendOne(ledger, 1, SampledSteps(100, 0, 1000));
  const double before = ledger.Total().epsilon;
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_GT(EpsilonAfterOne(*restored, SampledSteps(1, 500, 600)), before);
  EXPECT_EQ(EpsilonAfterOne(*restored, SampledSteps(1, 1000, 2000)), before);
  AppendOne(*restored, 2, SampledSteps(100, 0, 1000));
  EXPECT_NEAR(restored->Total().epsilon, PldEpsilon(200), 0.004 * PldEpsilon(200));
  EXPECT_TRUE(VerifyChain(restored->entries()));
}

TEST(PoissonLedger, WhatIsToldNeverFalls) {
  Ledger ledger = PoissonLedger();
  double told = 0;
  for (uint64_t commit = 1; commit <= 60; ++commit) {
    const CommitCharge step = SampledSteps(1, 0, 1000);
    const double foretold = EpsilonAfterOne(ledger, step);
    AppendOne(ledger, commit, step);
    EXPECT_GE(ledger.Total().epsilon, told);
    EXPECT_NEAR(foretold, ledger.Total().epsilon, 1e-9);
    told = ledger.Total().epsilon;
  }
}

// Verification finds a chain whose sampled costs were made smaller, heads put right.
TEST(PoissonLedger, VerifyFindsCostsThatDoNotAddUp) {
  Ledger ledger = PoissonLedger();
  AppendOne(ledger, 1, SampledSteps(100, 0, 1000));
  const auto edited = [&](auto edit) {
    auto entries = ledger.entries();
    edit(entries[0]);
    entries[0].head = entries[0].ComputeHead();
    return static_cast<bool>(VerifyChain(entries));
  };
  EXPECT_TRUE(edited([](LedgerEntry&) {}));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.epsilon *= 0.98; }));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.epsilon *= 1.02; }));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.worst.sampled[0].count = 90; }));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.worst.sampled[0].count = 101; }));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.worst.sampled[0].sampling_rate = 0.009; }));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.charge.sampling_rate = 0.009; }));
  EXPECT_FALSE(edited([](LedgerEntry& e) { e.participation = ParticipationMode::kOnce; }));
}

// `once` and `poisson` over the same records compose in one accountant.
TEST(PoissonLedger, TwoModesOverTheSameRecordsCompose) {
  Ledger ledger = PoissonLedger();
  EXPECT_TRUE(ledger.Declare(PromiseOf("once")));
  AppendOne(ledger, 1, SampledSteps(100, 0, 1000));
  AppendOne(ledger, 2, StepOf("once", 500, 700));
  PldAccountant both(Adjacency::kAddRemove);
  ASSERT_TRUE(both.Add(Event::PoissonGaussian(1, 0.01), 100));
  ASSERT_TRUE(both.Add(Event::Gaussian(2), 1));
  const auto expected = both.Epsilon(Delta(1e-6));
  ASSERT_TRUE(expected);
  EXPECT_GE(ledger.Total().epsilon, expected->lower);
  EXPECT_NEAR(ledger.Total().epsilon, expected->upper, 0.004 * expected->upper);
}

}  // namespace
}  // namespace tacit::privacy
