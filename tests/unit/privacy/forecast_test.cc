#include "privacy/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ledger_fixture.h"
#include "privacy/gaussian.h"

namespace tacit::privacy {
namespace {

constexpr int64_t kDay = 86400 * 1000;
constexpr int64_t kStart = 1'700'000'000'000;

class ForecastTest : public ::testing::Test {
 protected:
  void Declare(const std::string& learner, Unit unit, ParticipationMode mode) {
    Promise promise = PromiseOf(learner);
    promise.unit = unit;
    promise.participation = mode;
    ASSERT_TRUE(ledger.Declare(promise));
  }
  // One step of `learner` on [begin, end), made `at` days after the start.
  void Step(const std::string& learner, double at, uint64_t begin, uint64_t end,
            double noise_multiplier = 2, double rate = 1) {
    CommitCharge step = StepOf(learner, begin, end);
    step.charge = {.mechanism = MechanismKind::kDpSgd,
                   .noise_multiplier = noise_multiplier,
                   .sigma_gradient = noise_multiplier,
                   .sampling_rate = rate};
    ledger.Append(CommitSeq(++commit), kStart + static_cast<int64_t>(at * kDay), {&step, 1}, kSalt,
                  "test");
  }
  Forecast Of(const std::string& learner, double epsilon) {
    const Growth growth = Growth::Of(ledger.entries(), learner);
    return Foretell({&growth, 1}, {.epsilon = epsilon, .delta = 1e-6});
  }
  Ledger ledger;
  uint64_t commit = 0;
};

// The mu^2 that an epsilon allows, from the closed form's inverse.
double MuSquaredAt(double epsilon) {
  return std::pow(GaussianMu(Epsilon(epsilon), Delta(1e-6)), 2);
}

TEST_F(ForecastTest, OnceOverFreshRecordsNeverRunsOut) {
  Declare("ctr", Unit::kEvent, ParticipationMode::kOnce);
  for (uint64_t i = 0; i < 100; ++i) Step("ctr", 0.1 * i, 10 * i, 10 * i + 10);
  const Forecast forecast = Of("ctr", 3);
  EXPECT_EQ(forecast.kind, Forecast::Kind::kConstant);
  EXPECT_EQ(forecast.epsilon, ledger.Learners()[0].epsilon);
}

TEST_F(ForecastTest, AUsersStepsRunOutWhenTheirMuIsSpent) {
  Declare("next", Unit::kUser, ParticipationMode::kOnce);
  const double each = 1.0 / 400;
  for (uint64_t i = 0; i <= 100; ++i) Step("next", 0.1 * i, 0, 10, 20);
  const Forecast forecast = Of("next", 4);
  ASSERT_EQ(forecast.kind, Forecast::Kind::kRunsOut);
  // 101 steps in 10 days; the budget allows as many more.
  const double days = (MuSquaredAt(4) / each - 101) * 10 / 101;
  EXPECT_NEAR(static_cast<double>(forecast.runs_out_ms - forecast.end_ms) / kDay, days,
              1e-3 * days);
  EXPECT_EQ(forecast.end_ms, kStart + 10 * kDay);
  // A straight line in epsilon would be weeks off.
  const double line = 10 * (4 - forecast.epsilon) / forecast.epsilon;
  EXPECT_GT(std::abs(line - days), 10);
}

// After one step nobody can tell when a budget runs out, and yet it may have.
TEST_F(ForecastTest, AShortHistoryIsExhaustedWhereTheNextStepHasNoRoom) {
  Declare("next", Unit::kUser, ParticipationMode::kOnce);
  Step("next", 0, 0, 10);
  const double two = GaussianEpsilon(std::sqrt(2 * 0.25), Delta(1e-6)).value;
  EXPECT_EQ(Of("next", 0.999 * two).kind, Forecast::Kind::kExhausted);
  EXPECT_EQ(Of("next", 1.001 * two).kind, Forecast::Kind::kTooLittleHistory);
}

// The budget of several is exhausted only where no learner may take its next step.
TEST_F(ForecastTest, ATotalWithRoomForOneLearnerIsNotExhausted) {
  Declare("dear", Unit::kUser, ParticipationMode::kOnce);
  Declare("cheap", Unit::kUser, ParticipationMode::kOnce);
  Step("dear", 0, 0, 10, 2);
  Step("cheap", 0.1, 0, 10, 20);
  const std::vector<Growth> both{Growth::Of(ledger.entries(), "dear"),
                                 Growth::Of(ledger.entries(), "cheap")};
  const double now = 0.25 + 0.0025;
  const auto kind = [&](double mu_squared, std::span<const Growth> growths) {
    const double epsilon = GaussianEpsilon(std::sqrt(mu_squared), Delta(1e-6)).value;
    return Foretell(growths, {.epsilon = epsilon, .delta = 1e-6}).kind;
  };
  EXPECT_EQ(kind(now + 0.01, both), Forecast::Kind::kTooLittleHistory);
  EXPECT_EQ(kind(now + 0.001, both), Forecast::Kind::kExhausted);
  // At rest a learner spends nothing more.
  EXPECT_EQ(kind(now + 0.001, std::vector<Growth>{both[0].AtRest(), both[1].AtRest()}),
            Forecast::Kind::kConstant);
  // A learner without further cost is no room for one that has.
  EXPECT_EQ(kind(now + 0.01, std::vector<Growth>{both[0], both[1].AtRest()}),
            Forecast::Kind::kExhausted);
}

TEST_F(ForecastTest, AUsersSampledStepsAreComposedByTheAccountant) {
  Declare("next", Unit::kUser, ParticipationMode::kPoisson);
  for (uint64_t i = 0; i <= 200; ++i) Step("next", 0.05 * i, 0, 10, 1, 0.01);
  const Forecast forecast = Of("next", 3);
  ASSERT_EQ(forecast.kind, Forecast::Kind::kRunsOut);
  const double steps = 201.0 * (1 + static_cast<double>(forecast.runs_out_ms - forecast.end_ms) /
                                        static_cast<double>(forecast.end_ms - forecast.begin_ms));
  const auto epsilon = [](double count) {
    return PldUpperEpsilon(Event::PoissonGaussian(1, 0.01), static_cast<uint64_t>(count),
                           Adjacency::kAddRemove, Delta(1e-6))
        .value();
  };
  EXPECT_GT(epsilon(steps * 1.01), 3);
  EXPECT_LT(epsilon(steps * 0.99), 3);
}

TEST_F(ForecastTest, PassesOverTheSameRecordsRunOutAtTheBeginningOfOne) {
  Declare("ctr", Unit::kEvent, ParticipationMode::kOnce);
  // Passes of four days each; the third is half done.
  for (int i = 0; i < 25; ++i) Step("ctr", 0.4 * i, 10 * (i % 10), 10 * (i % 10) + 10);
  // Room for five passes: the sixth, on day 20, has none.
  const Forecast forecast =
      Of("ctr", GaussianEpsilon(std::sqrt(5 * 0.25 + 0.1), Delta(1e-6)).value);
  ASSERT_EQ(forecast.kind, Forecast::Kind::kRunsOut);
  EXPECT_NEAR(static_cast<double>(forecast.runs_out_ms - kStart) / kDay, 20, 0.01);
}

// Periods of 20 steps, three of them a day apart, then the same three again and again.
TEST_F(ForecastTest, PassesOverSampledPeriodsRunOutAtTheBeginningOfOne) {
  Declare("ctr", Unit::kEvent, ParticipationMode::kPoisson);
  const auto period = [&](int day, int from = 0, int to = 20) {
    const uint64_t begin = 100 * static_cast<uint64_t>(day % 3);
    for (int i = from; i < to; ++i) Step("ctr", day + 0.001 * i, begin, begin + 100, 1, 0.1);
  };
  const auto epsilon = [](uint64_t steps) {
    return PldUpperEpsilon(Event::PoissonGaussian(1, 0.1), steps, Adjacency::kAddRemove,
                           Delta(1e-6))
        .value();
  };
  const double room = epsilon(105);  // for five passes, not for the sixth
  for (int day = 0; day < 3; ++day) period(day);
  EXPECT_EQ(ledger.entries().size(), 1u);
  EXPECT_EQ(Of("ctr", room).kind, Forecast::Kind::kConstant);
  for (int day = 3; day < 6; ++day) period(day);
  EXPECT_EQ(ledger.entries().size(), 2u);  // the second pass has its own
  period(6, 0, 5);                         // the third has just begun, and costs 20 all the same
  EXPECT_EQ(ledger.entries().size(), 3u);
  const Forecast begun = Of("ctr", room);
  period(6, 5);
  period(7);
  const Forecast forecast = Of("ctr", room);
  for (const Forecast& f : {begun, forecast}) {
    ASSERT_EQ(f.kind, Forecast::Kind::kRunsOut);
    EXPECT_NEAR(static_cast<double>(f.runs_out_ms - kStart) / kDay, 15, 0.05);
  }
}

// One period is all there is; each pass over it opens it anew, and pays for opening and steps.
TEST_F(ForecastTest, APassOfOnePeriodCostsItsStepsAndItsOpening) {
  Declare("ctr", Unit::kEvent, ParticipationMode::kPoisson);
  for (int day = 0; day < 4; ++day) {
    Step("ctr", day, 0, 100, 9);
    for (int i = 1; i <= 20; ++i) Step("ctr", day + 0.001 * i, 0, 100, 1, 0.1);
  }
  const auto epsilon = [](uint64_t passes) {
    const CountedEvent events[] = {{Event::Gaussian(9), passes},
                                   {Event::PoissonGaussian(1, 0.1), 20 * passes}};
    return PldUpperEpsilon(events, Adjacency::kAddRemove, Delta(1e-6)).value();
  };
  const Forecast forecast = Of("ctr", (epsilon(6) + epsilon(7)) / 2);
  ASSERT_EQ(forecast.kind, Forecast::Kind::kRunsOut);
  EXPECT_NEAR(static_cast<double>(forecast.runs_out_ms - kStart) / kDay, 6, 0.1);
}

TEST_F(ForecastTest, ARestoredLedgerTellsPassesApartAsBefore) {
  Declare("ctr", Unit::kEvent, ParticipationMode::kPoisson);
  for (int i = 0; i < 30; ++i) {
    Step("ctr", i, i < 20 ? 0 : 10, i < 20 ? 10 : 20, 1, 0.1);
    auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
    ASSERT_TRUE(restored) << restored.error().message;
    ledger = *std::move(restored);
  }
  EXPECT_EQ(ledger.entries().size(), 1u);
  Step("ctr", 30, 0, 10, 1, 0.1);
  Step("ctr", 31, 0, 10, 1, 0.1);
  EXPECT_EQ(ledger.entries().size(), 2u);
  EXPECT_EQ(ledger.entries()[1].steps, 2u);
}

TEST_F(ForecastTest, WhatTheConfigurationLimitsIsBounded) {
  Declare("ctr", Unit::kEvent, ParticipationMode::kOnce);
  EXPECT_FALSE(MostEver(ledger.entries(), "ctr", {.steps = 3}));
  for (int i = 0; i < 20; ++i) Step("ctr", i, 10 * (i % 10), 10 * (i % 10) + 10);
  const auto bounded = [&](uint64_t steps, double epsilon) {
    const Growth growth = Growth::Of(ledger.entries(), "ctr");
    return Foretell({&growth, 1}, {.epsilon = epsilon, .delta = 1e-6},
                    MostEver(ledger.entries(), "ctr", {.steps = steps}));
  };
  const auto epsilon = [](int passes) {
    return GaussianEpsilon(std::sqrt(passes * 0.25), Delta(1e-6)).value;
  };
  EXPECT_EQ(bounded(3, epsilon(3) + 1e-9).kind, Forecast::Kind::kBounded);
  EXPECT_NEAR(bounded(3, 9).most, epsilon(3), 1e-9);
  EXPECT_EQ(bounded(4, epsilon(3) + 1e-9).kind, Forecast::Kind::kRunsOut);
  // Two passes are done: one allowed from now on is one more.
  EXPECT_NEAR(bounded(1, 9).most, epsilon(3), 1e-9);
  Declare("next", Unit::kUser, ParticipationMode::kOnce);
  Step("next", 21, 0, 10);
  EXPECT_FALSE(MostEver(ledger.entries(), "next", {.steps = 3}));
}

TEST_F(ForecastTest, AReleaseBesideTheStepsIsNoGrowth) {
  Declare("next", Unit::kEvent, ParticipationMode::kOnce);
  for (int period = 0; period < 12; ++period) {
    const uint64_t begin = 100 * static_cast<uint64_t>(period);
    Step("next", period, begin, begin + 100);
    Step("next", period + 0.5, begin, begin + 100, 7);
  }
  EXPECT_EQ(Of("next", 8).kind, Forecast::Kind::kConstant);
}

TEST_F(ForecastTest, SaysWhenThereIsTooLittleToGoBy) {
  EXPECT_EQ(Of("next", 4).kind, Forecast::Kind::kNothingSpent);
  Declare("next", Unit::kUser, ParticipationMode::kOnce);
  for (int i = 0; i < 5; ++i) Step("next", i, 0, 10, 20);
  EXPECT_EQ(Of("next", 4).kind, Forecast::Kind::kTooLittleHistory);  // five steps
  // The first period of a sampled stream: all steps were on the same records.
  Declare("ctr", Unit::kEvent, ParticipationMode::kPoisson);
  for (int i = 0; i < 20; ++i) Step("ctr", i, 0, 10, 1, 0.01);
  EXPECT_EQ(Of("ctr", 8).kind, Forecast::Kind::kTooLittleHistory);
  for (int i = 0; i < 20; ++i) Step("ctr", 20 + i, 10, 20, 1, 0.01);
  EXPECT_EQ(Of("ctr", 8).kind, Forecast::Kind::kConstant);
}

TEST_F(ForecastTest, KnowsABudgetThatIsSpentAndOneThatIsNone) {
  Declare("next", Unit::kUser, ParticipationMode::kOnce);
  for (int i = 0; i < 20; ++i) Step("next", i, 0, 10, 20);
  const double epsilon = ledger.Learners()[0].epsilon;
  EXPECT_EQ(Of("next", epsilon).kind, Forecast::Kind::kExhausted);
  EXPECT_EQ(Of("next", epsilon * 1.001).kind, Forecast::Kind::kExhausted);
  EXPECT_EQ(Of("next", epsilon * 1.2).kind, Forecast::Kind::kRunsOut);
  EXPECT_EQ(Of("next", INFINITY).kind, Forecast::Kind::kNoBudget);
  EXPECT_EQ(Of("next", 1e4).kind, Forecast::Kind::kBeyondHorizon);
  CommitCharge open = StepOf("next", 0, 10);
  open.charge = {};
  ledger.Append(CommitSeq(99), kStart + 30 * kDay, {&open, 1}, kSalt, "test");
  EXPECT_EQ(Of("next", 4).kind, Forecast::Kind::kNoBudget);
}

TEST_F(ForecastTest, TheTotalRunsOutBeforeItsParts) {
  Declare("a", Unit::kUser, ParticipationMode::kOnce);
  Declare("b", Unit::kUser, ParticipationMode::kOnce);
  for (int i = 0; i <= 100; ++i)
    for (const char* learner : {"a", "b"}) Step(learner, 0.1 * i, 0, 10, 20);
  const Growth growths[] = {Growth::Of(ledger.entries(), "a"), Growth::Of(ledger.entries(), "b")};
  const Forecast total = Foretell(growths, {.epsilon = 4, .delta = 1e-6});
  ASSERT_EQ(total.kind, Forecast::Kind::kRunsOut);
  EXPECT_EQ(total.epsilon, ledger.Total().epsilon);
  const double days = (MuSquaredAt(4) * 400 / 2 - 101) * 10 / 101;
  EXPECT_NEAR(static_cast<double>(total.runs_out_ms - total.end_ms) / kDay, days, 1e-3 * days);
}

// A learner that was stopped before the other has spent nothing since.
TEST_F(ForecastTest, TheTotalSpentIsWhatTheLedgerSays) {
  Declare("stopped", Unit::kUser, ParticipationMode::kOnce);
  Declare("other", Unit::kUser, ParticipationMode::kOnce);
  for (int i = 0; i <= 100; ++i) {
    if (i <= 50) Step("stopped", 0.1 * i, 0, 10, 20);
    Step("other", 0.1 * i, 0, 10, 20);
  }
  const Growth growths[] = {Growth::Of(ledger.entries(), "stopped"),
                            Growth::Of(ledger.entries(), "other")};
  EXPECT_EQ(Foretell(growths, {.epsilon = 9, .delta = 1e-6}).epsilon, ledger.Total().epsilon);
}

}  // namespace
}  // namespace tacit::privacy
