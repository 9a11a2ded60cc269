// Unit user: what the ledger charges where an allowance bounds the steps of a user.
#include "privacy/user_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "ledger_fixture.h"
#include "privacy/gaussian.h"

namespace tacit::privacy {
namespace {

Charge GaussianOf(double sigma) {
  return {.mechanism = MechanismKind::kDpSgd,
          .noise_multiplier = sigma,
          .sigma_gradient = sigma,
          .clip_gradient = 1};
}

Charge SampledOf(double sigma, double rate) {
  Charge charge = GaussianOf(sigma);
  charge.sampling_rate = rate;
  return charge;
}

Promise OfUsers(uint64_t allowance, const std::string& learner = "next",
                ParticipationMode mode = ParticipationMode::kOnce) {
  Promise promise = PromiseOf(learner);
  promise.unit = Unit::kUser;
  promise.participation = mode;
  promise.bounds = {.allowance = allowance, .per_period = 2, .dedupe_window = 500};
  return promise;
}

void Take(Ledger& ledger, uint64_t commit, const Charge& charge, uint64_t steps,
          const std::string& learner = "next") {
  AppendOne(ledger, commit,
            {learner, charge, steps, 1, "log", {{0, commit * 10, commit * 10 + 9}}});
}

// The dearest steps a user can have been in, of any order and price: by sorting all of them.
TEST(UserCostsTest, TheWorstUserWasInTheDearestSteps) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const uint64_t allowance = 1 + random() % 12;
    UserCosts costs;
    costs.Bound({.allowance = allowance});
    std::vector<double> steps;
    for (int i = 0; i < 20; ++i) {
      const double sigma = 1 + static_cast<double>(random() % 4);
      const uint64_t count = random() % 4;
      costs.Add(GaussianOf(sigma), count);
      steps.insert(steps.end(), count, 1 / (sigma * sigma));
      std::sort(steps.begin(), steps.end(), std::greater<>());
      double want = 0;
      for (size_t k = 0; k < std::min<size_t>(allowance, steps.size()); ++k) want += steps[k];
      ASSERT_NEAR(costs.Worst().mu_squared, want, 1e-12);
    }
  }
}

TEST(UserCostsTest, EpsilonRisesToThatOfTheAllowanceAndStaysThere) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(OfUsers(3)));
  for (uint64_t step = 1; step <= 50; ++step) {
    const CommitCharge next{"next", GaussianOf(2), 1, 1, "log", {{0, step, step + 1}}};
    const double foretold = EpsilonAfterOne(ledger, next);
    AppendOne(ledger, step, next);
    EXPECT_NEAR(ledger.Learners()[0].epsilon, EpsilonOf(std::min<double>(step, 3.0) / 4), 1e-9);
    EXPECT_EQ(ledger.Learners()[0].epsilon, foretold);
    EXPECT_EQ(ledger.Total().epsilon, foretold);
  }
  EXPECT_EQ(ledger.Total().unit, Unit::kUser);
  EXPECT_EQ(ledger.entries().size(), 1u);
  EXPECT_EQ(ledger.entries()[0].bounds, OfUsers(3).bounds);
  EXPECT_EQ(ledger.entries()[0].adjacency, Adjacency::kZeroOut);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

// The same records again are the same users': they cost until the allowance is used, and no more.
// Users are counted through every allowance there was, so the largest is what is charged.
TEST(UserCostsTest, AnotherAllowanceGoesOnFromWhatWasUsed) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(OfUsers(2)));
  Take(ledger, 1, GaussianOf(1), 10);
  EXPECT_NEAR(ledger.Learners()[0].epsilon, EpsilonOf(2), 1e-9);
  ASSERT_TRUE(ledger.Declare(OfUsers(5)));
  Take(ledger, 2, GaussianOf(2), 10);
  EXPECT_NEAR(ledger.Learners()[0].epsilon, EpsilonOf(5), 1e-9) << "the ten dear ones are first";
  ASSERT_TRUE(ledger.Declare(OfUsers(1)));
  Take(ledger, 3, GaussianOf(0.5), 1);
  // A user may have used all five and been left out: or none, and been in this step and four.
  EXPECT_NEAR(ledger.Learners()[0].epsilon, EpsilonOf(4 + 4), 1e-9);
  EXPECT_EQ(ledger.entries().size(), 3u);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
  // All of that is known again after a start.
  auto again = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(again->Declare(OfUsers(1)));
  Take(*again, 4, GaussianOf(0.5), 3);
  EXPECT_NEAR(again->Learners()[0].epsilon, EpsilonOf(4 * 4 + 1), 1e-9);
  EXPECT_TRUE(VerifyChain(again->entries()));
  const auto promises = Ledger::ReadPromises(again->EncodeState());
  ASSERT_TRUE(promises);
  EXPECT_EQ(promises->learners[0].bounds, OfUsers(1).bounds);
}

// Sampled steps, and histograms of the periods they are of.
TEST(UserCostsTest, APeriodsReleaseIsPaidByWhoIsInThePeriod) {
  UserCosts costs;
  costs.Bound({.allowance = 20, .period_steps = 10});
  Charge release = GaussianOf(8);
  release.mechanism = MechanismKind::kVocabulary;
  for (int period = 0; period < 7; ++period) {
    costs.Add(release, 1);
    costs.Add(SampledOf(1, 0.1), 10);
  }
  Spending worst = costs.Worst();
  EXPECT_NEAR(worst.mu_squared, 2.0 / 64, 1e-12);
  EXPECT_EQ(worst.SampledSteps(), 20u);
  // Shorter periods later: a user may be in more of them.
  costs.Bound({.allowance = 20, .period_steps = 5});
  costs.Add(release, 1);
  EXPECT_NEAR(costs.Worst().mu_squared, 4.0 / 64, 1e-12);
  EXPECT_EQ(costs.Worst().SampledSteps(), 20u);
}

TEST(UserCostsTest, AStepWithoutPrivacyIsUnbounded) {
  UserCosts costs;
  costs.Bound({.allowance = 1});
  costs.Add(GaussianOf(1), 5);
  EXPECT_TRUE(costs.Worst().bounded());
  costs.Add(Charge{}, 1);
  EXPECT_FALSE(costs.Worst().bounded());
}

// Two learners: a user may be the worst of both.
TEST(UserCostsTest, TheTotalAddsUpTheLearnersWorstUsers) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(OfUsers(2, "a")));
  ASSERT_TRUE(ledger.Declare(OfUsers(3, "b")));
  Take(ledger, 1, GaussianOf(2), 10, "a");
  Take(ledger, 2, GaussianOf(1), 1, "b");
  const CommitCharge more{"b", GaussianOf(1), 9, 1, "log", {{0, 0, 1}}};
  const double foretold = ledger.TotalAfter({&more, 1});
  AppendOne(ledger, 3, more);
  EXPECT_NEAR(ledger.Total().epsilon, EpsilonOf(2.0 / 4 + 3), 1e-9);
  EXPECT_EQ(ledger.Total().epsilon, foretold);
  EXPECT_EQ(ledger.Total().unit, Unit::kUser);
  // With one of events beside them the total is of an event.
  ASSERT_TRUE(ledger.Declare(PromiseOf("ctr")));
  Take(ledger, 4, GaussianOf(1), 1, "ctr");
  EXPECT_EQ(ledger.Total().unit, Unit::kEvent);
  EXPECT_NEAR(ledger.Total().epsilon, EpsilonOf(2.0 / 4 + 3 + 1), 1e-9);
}

// A chain in which a user's steps were billed as fewer is found out, with any heads.
TEST(UserCostsTest, AChainThatChargesLessThanTheAllowanceIsFound) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(OfUsers(4)));
  Take(ledger, 1, GaussianOf(2), 10);
  std::vector<LedgerEntry> entries = ledger.entries();
  ASSERT_TRUE(VerifyChain(entries));
  entries[0].worst = Spending::Of(GaussianOf(2), 1);  // as if users were events
  entries[0].epsilon = EpsilonOf(0.25);
  entries[0].head = entries[0].ComputeHead();
  const Status found = VerifyChain(entries);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("not the one that the allowance gives"), std::string::npos);
}

TEST(UserCostsTest, BoundsAreInTheHead) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(OfUsers(4)));
  Take(ledger, 1, GaussianOf(2), 10);
  const std::vector<std::function<void(Bounds&)>> changes = {
      [](Bounds& b) { ++b.allowance; }, [](Bounds& b) { ++b.per_period; },
      [](Bounds& b) { ++b.period_steps; }, [](Bounds& b) { ++b.dedupe_window; }};
  for (const auto& change : changes) {
    LedgerEntry entry = ledger.entries()[0];
    change(entry.bounds);
    EXPECT_NE(entry.ComputeHead(), entry.head);
    const auto decoded = LedgerEntry::Decode(entry.Encode());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->bounds, entry.bounds);
  }
}

}  // namespace
}  // namespace tacit::privacy
