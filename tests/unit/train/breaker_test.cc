// The breaker: what it draws, what it charges, what it keeps; and the trainer and the intake around
// it, which let nothing be learnt from behind a halt.
#include "train/quality/breaker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "privacy/gaussian.h"
#include "privacy/ledger.h"
#include "support/fixed_noise.h"
#include "train/learner/position.h"

namespace tacit::train {
namespace {

using testing::HasSubstr;

constexpr double kBreakerSigma = 20;

BreakerOptions Options(BreakerState state = {}) {
  return {.index = LearnerIndex(1),
          .topic = "log",
          .share = .5,
          .window = 1000,
          .noise_multiplier = kBreakerSigma,
          .epsilon = 1,
          .delta = 1e-6,
          .state = std::move(state)};
}

Breaker Make(uint8_t key = 1, BreakerState state = {}) {
  return Breaker(Options(std::move(state)), std::make_unique<noise::FixedNoise>(key));
}

WindowEnd WindowOf(uint64_t unreadable, uint64_t begin = 0, int32_t partition = 0) {
  return {{{partition, begin, begin + 1000}}, unreadable};
}

TEST(BreakerTest, FarFromItsShareTheNoiseDecidesNothing) {
  for (uint8_t key = 1; key < 100; ++key) {
    EXPECT_FALSE(Make(key).Decide(WindowOf(0)));
    EXPECT_FALSE(Make(key).Decide(WindowOf(300)));
    EXPECT_TRUE(Make(key).Decide(WindowOf(700)));
    EXPECT_TRUE(Make(key).Decide(WindowOf(1000)));
  }
}

// The rate of halts is that of a Gaussian of this deviation: the noise is there, whole.
TEST(BreakerTest, NearItsShareTheNoiseDecides) {
  constexpr int kRuns = 4000;
  const auto rate = [](uint64_t unreadable) {
    int halts = 0;
    for (int run = 0; run < kRuns; ++run) {
      Breaker one(Options(), noise::MakeNoiseSource());
      halts += one.Decide(WindowOf(unreadable)) ? 1 : 0;
    }
    return halts / static_cast<double>(kRuns);
  };
  const auto above = [](double away) {
    return .5 * std::erfc(-away / kBreakerSigma / std::sqrt(2.0));
  };
  // Five deviations of a rate.
  const double slack = 5 * .5 / std::sqrt(static_cast<double>(kRuns));
  EXPECT_NEAR(rate(500), .5, slack);
  EXPECT_NEAR(rate(520), above(20), slack);
  EXPECT_NEAR(rate(470), above(-30), slack);
}

TEST(BreakerTest, AWindowCostsEachOfItsRecordsOneGaussian) {
  Breaker breaker = Make();
  for (uint64_t i = 0; i < 5; ++i) breaker.Decide(WindowOf(0, 1000 * i));
  ASSERT_EQ(breaker.pending().size(), 1u) << "equal charges are one";
  EXPECT_EQ(breaker.pending()[0].steps, 5u);
  privacy::Ledger ledger;
  ASSERT_TRUE(
      ledger.Declare({.learner = std::string(kBreakerAccount), .epsilon = 1, .delta = 1e-6}));
  ledger.Append(CommitSeq(1), 1, breaker.pending(), {}, "test");
  const double one = privacy::GaussianEpsilon(1 / kBreakerSigma, Delta(1e-6)).value;
  EXPECT_NEAR(ledger.Learners()[0].epsilon, one, 1e-6) << "the windows have no record in common";
  // The same records once more, as after a restore: they add up.
  ledger.Append(CommitSeq(2), 2, breaker.pending(), {}, "test");
  const double two = privacy::GaussianEpsilon(std::sqrt(2.0) / kBreakerSigma, Delta(1e-6)).value;
  EXPECT_NEAR(ledger.Learners()[0].epsilon, two, 1e-6);
}

// The account is added to a learner's, record by record.
TEST(BreakerTest, TheTotalHasTheCount) {
  privacy::Ledger ledger;
  ASSERT_TRUE(ledger.Declare({.learner = "ctr", .epsilon = 8, .delta = 1e-6}));
  ASSERT_TRUE(
      ledger.Declare({.learner = std::string(kBreakerAccount), .epsilon = 1, .delta = 1e-6}));
  Breaker breaker = Make();
  breaker.Decide(WindowOf(0));
  std::vector<privacy::CommitCharge> charges = breaker.pending();
  charges.push_back({.learner = "ctr",
                     .charge = {.mechanism = privacy::MechanismKind::kDpSgd,
                                .noise_multiplier = 2,
                                .sigma_gradient = 2},
                     .steps = 1,
                     .topic = "log",
                     .ranges = {{0, 500, 900}}});
  ledger.Append(CommitSeq(1), 1, charges, {}, "test");
  const double mu = std::sqrt(1 / kBreakerSigma / kBreakerSigma + .25);
  EXPECT_NEAR(ledger.Total().epsilon, privacy::GaussianEpsilon(mu, Delta(1e-6)).value, 1e-6);
}

TEST(BreakerTest, WhereItStandsIsAPosition) {
  Breaker breaker = Make();
  breaker.Decide(WindowOf(0, 0, 3));
  breaker.Decide(WindowOf(0, 40, 1));
  breaker.Decide(WindowOf(900, 1000, 3));
  const auto commit = breaker.TakePending();
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->learner, LearnerIndex(1));
  EXPECT_EQ(commit->charges[0].ranges,
            (std::vector<OffsetRange>{{3, 0, 1000}, {1, 40, 1040}, {3, 1000, 2000}}));
  EXPECT_FALSE(breaker.TakePending()) << "once";
  const auto position = DecodePosition(commit->position);
  ASSERT_TRUE(position);
  const BreakerState state = BreakerState::Of(*position);
  EXPECT_EQ(state, (BreakerState{3, true, {{3, 2000, 2000}, {1, 1040, 1040}}}));
  EXPECT_EQ(state, breaker.state());
}

TEST(BreakerTest, AHaltLastsUntilItsOwnWindowIsNamed) {
  const BreakerState halted{.windows = 3, .halted = true, .next = {{0, 3000, 3000}}};
  EXPECT_TRUE(Make(1, halted).halted());
  EXPECT_THAT(Make(1, halted).WhyHalted(), HasSubstr("--past-halt 3"));
  BreakerOptions options = Options(halted);
  options.past = 2;
  EXPECT_TRUE(Breaker(options, noise::MakeNoiseSource()).halted());
  options.past = 4;
  EXPECT_TRUE(Breaker(options, noise::MakeNoiseSource()).halted());
  options.past = 3;
  Breaker goes_on(options, noise::MakeNoiseSource());
  EXPECT_FALSE(goes_on.halted());
  EXPECT_TRUE(goes_on.pending().empty()) << "going on costs nothing";
  EXPECT_TRUE(goes_on.Decide(WindowOf(1000, 3000))) << "another window halts again";
  EXPECT_EQ(goes_on.state().windows, 4u);
}

TEST(BreakerTest, AWindowThatIsPassedOverIsNotDrawn) {
  Breaker breaker = Make();
  breaker.PassOver(WindowOf(1000));
  EXPECT_FALSE(breaker.halted());
  EXPECT_FALSE(breaker.TakePending());
  EXPECT_EQ(breaker.state().next, (std::vector<OffsetRange>{{0, 1000, 1000}}));
}

}  // namespace
}  // namespace tacit::train
