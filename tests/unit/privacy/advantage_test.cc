// The advantages that a ledger says, and those that readers of its entries alone say.
#include <gtest/gtest.h>

#include <cmath>

#include "ledger_fixture.h"
#include "privacy/tradeoff.h"

namespace tacit::privacy {
namespace {

double AdvantageOfMu(double mu_squared) { return std::erf(std::sqrt(mu_squared / 8)); }

Charge Sampled(double noise) {
  Charge charge = UsualCharge();
  charge.noise_multiplier = noise;
  charge.sampling_rate = 0.02;
  return charge;
}

CommitCharge Period(const std::string& learner, const Charge& charge, uint64_t steps) {
  return {learner, charge, steps, steps, "log", {{0, 0, 1000}}};
}

// The learners' totals, and the total, as a reader of the entries says them.
std::vector<LedgerTotal> ByEntries(const Ledger& ledger, LedgerTotal* total) {
  std::vector<LedgerTotal> learners = ledger.Learners();
  *total = ledger.Total();
  for (LedgerTotal& learner : learners) learner.advantage.reset();
  total->advantage.reset();
  AddAdvantages(ledger.entries(), &learners, total);
  return learners;
}

TEST(Advantage, OfGaussianStepsIsTheClosedForm) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("a")).has_value());
  EXPECT_EQ(ledger.Learners()[0].AdvantageAtMost(), 0);
  AppendOne(ledger, 1, StepOf("a", 0, 10));
  AppendOne(ledger, 2, StepOf("a", 10, 20));
  EXPECT_NEAR(ledger.Learners()[0].AdvantageAtMost(), AdvantageOfMu(0.25), 1e-12);
  AppendOne(ledger, 3, StepOf("a", 5, 15));
  EXPECT_NEAR(ledger.Learners()[0].AdvantageAtMost(), AdvantageOfMu(0.5), 1e-12);
  EXPECT_NEAR(ledger.Total().AdvantageAtMost(), AdvantageOfMu(0.5), 1e-12);
  LedgerTotal total;
  EXPECT_NEAR(*ByEntries(ledger, &total)[0].advantage, AdvantageOfMu(0.5), 1e-12);
  EXPECT_NEAR(*total.advantage, AdvantageOfMu(0.5), 1e-7);
}

TEST(Advantage, AddsUpOverLearnersOffsetByOffset) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("a")).has_value());
  ASSERT_TRUE(ledger.Declare(PromiseOf("b")).has_value());
  AppendOne(ledger, 1, StepOf("a", 0, 10));
  AppendOne(ledger, 2, StepOf("b", 10, 20));
  EXPECT_NEAR(ledger.Total().AdvantageAtMost(), AdvantageOfMu(0.25), 1e-12);
  AppendOne(ledger, 3, StepOf("b", 0, 10));
  EXPECT_NEAR(ledger.Total().AdvantageAtMost(), AdvantageOfMu(0.5), 1e-12);
  LedgerTotal total;
  ByEntries(ledger, &total);
  EXPECT_NEAR(*total.advantage, AdvantageOfMu(0.5), 1e-7);
}

// A sampled composition's is read off beside epsilon 0: a hundredth above, never below.
TEST(Advantage, OfSampledStepsIsJustAboveTheCurve) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("a")).has_value());
  AppendOne(ledger, 1, Period("a", Sampled(1), 400));
  PldAccountant accountant(Adjacency::kAddRemove);
  ASSERT_TRUE(accountant.Add(Event::PoissonGaussian(1, 0.02), 400).has_value());
  const double exact = accountant.DeltaAt(0).value().lower;
  LedgerTotal total;
  const double by_entries = *ByEntries(ledger, &total)[0].advantage;
  for (const double advantage : {ledger.Learners()[0].AdvantageAtMost(), by_entries,
                                 ledger.Total().AdvantageAtMost(), *total.advantage}) {
    EXPECT_GE(advantage, exact);
    EXPECT_LE(advantage, exact + 0.01);
  }
}

// Asking must not move what is charged: the bound of a far epsilon is not looser afterwards.
TEST(Advantage, LeavesEpsilonAlone) {
  EpsilonMeter asked, silent;
  for (uint64_t steps = 1; steps < 40; steps += 3) {
    const Spending spending = Spending::Of(Sampled(0.8), steps);
    asked.Advantage(spending, Delta(1e-6));
    EXPECT_EQ(asked.Bounds(spending, Delta(1e-6)).upper,
              silent.Bounds(spending, Delta(1e-6)).upper);
  }
}

// A changed price: entries do not say which unit is the worst at every delta.
TEST(Advantage, OfEntriesIsAboveTheLedgersWhereThePriceChanged) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("a")).has_value());
  AppendOne(ledger, 1, Period("a", Sampled(1), 100));
  AppendOne(ledger, 2, Period("a", Sampled(0.6), 3));
  LedgerTotal total;
  const LedgerTotal by_entries = ByEntries(ledger, &total)[0];
  EXPECT_FALSE(by_entries.advantage.has_value());
  EXPECT_GE(by_entries.AdvantageAtMost(), ledger.Learners()[0].AdvantageAtMost());
  EXPECT_LT(by_entries.AdvantageAtMost(), 1);
}

// Users have one spending, at any prices: a period's opening and its sampled steps.
TEST(Advantage, OfEntriesIsTheLedgersWhereTheUnitIsTheUser) {
  Ledger ledger;
  for (const char* name : {"a", "b"}) {
    Promise promise = PromiseOf(name);
    promise.unit = Unit::kUser;
    promise.bounds = {.allowance = 300, .period_steps = 100};
    ASSERT_TRUE(ledger.Declare(promise).has_value());
  }
  uint64_t commit = 0;
  for (int period = 0; period < 3; ++period) {
    Charge opening = UsualCharge();
    opening.noise_multiplier = 4;
    AppendOne(ledger, ++commit, Period("a", opening, 1));
    AppendOne(ledger, ++commit, Period("a", Sampled(0.8), 100));
  }
  AppendOne(ledger, ++commit, Period("b", Sampled(0.6), 100));
  LedgerTotal total;
  const std::vector<LedgerTotal> by_entries = ByEntries(ledger, &total);
  const std::vector<LedgerTotal> told = ledger.Learners();
  for (size_t i = 0; i < told.size(); ++i) {
    ASSERT_TRUE(by_entries[i].advantage.has_value()) << i;
    EXPECT_NEAR(*by_entries[i].advantage, told[i].AdvantageAtMost(), 1e-3) << i;
    EXPECT_LT(told[i].AdvantageAtMost(), AdvantageAt(told[i].epsilon, told[i].delta) - 0.1) << i;
  }
  EXPECT_NEAR(*total.advantage, ledger.Total().AdvantageAtMost(), 1e-3);
}

TEST(Advantage, OfALearnerWithoutPrivacyIsBoundedByNothing) {
  Ledger ledger;
  Promise promise = PromiseOf("a");
  promise.epsilon = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(ledger.Declare(promise).has_value());
  CommitCharge step = StepOf("a", 0, 10);
  step.charge = {};
  AppendOne(ledger, 1, step);
  LedgerTotal total;
  EXPECT_EQ(ByEntries(ledger, &total)[0].AdvantageAtMost(), 1);
  EXPECT_EQ(*total.advantage, 1);
  EXPECT_EQ(ledger.Learners()[0].AdvantageAtMost(), 1);
}

}  // namespace
}  // namespace tacit::privacy
