// A restore's charges where a learner's price changed after the copy.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "store/witness/price_tally.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "train/learner/position.h"
#include "wiring/assembly.h"
#include "wiring/restore/gap.h"

namespace tacit::wiring {
namespace {

using ::testing::HasSubstr;

// Steps before the copy and after it.
constexpr uint64_t kStepsBefore = 20, kStepsAfter = 12;

constexpr double kSlackOfBounds = 1e-3;

struct NoisyPrice {
  double noise;
  double sampling_rate;
};

class PriceGap : public ::testing::Test {
 protected:
  PriceGap() { test::WriteFile(dir_ / "log.jsonl", ""); }

  Assembly Build(const NoisyPrice& price) const {
    auto config = config::Parse(
        fmt::format(
            "source: {{kind: log, format: json, files: {}}}\n"
            "schema: {{features: [{{name: n, kind: dense}}]}}\n"
            "learners:\n"
            "  - id: it\n"
            "    model: {{kind: pctr, hidden: [4]}}\n"
            "    mechanism: {{kind: dp-sgd, noise_multiplier: {}}}\n"
            "    participation: {{mode: poisson, batch: 25, sampling_rate: {}, period: 1000, "
            "steps_per_period: {}}}\n"
            "    privacy: {{unit: event, epsilon: 50, delta: 1.0e-6}}\n"
            "store: {{path: {}}}\n",
            dir_ / "log.jsonl", price.noise, price.sampling_rate, kStepsBefore + kStepsAfter,
            dir_ / "store"),
        "gap", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return *std::move(assembly);
  }

  static stream::Position At(uint64_t step) {
    return {.period_start = {},
            .next = {{0, 0, 1000}},
            .step = step,
            .period_step = step,
            .longest_period = kStepsBefore + kStepsAfter};
  }
  static privacy::CommitCharge Steps(const LearnerPlan& plan, uint64_t steps) {
    return {.learner = "it",
            .charge = plan.charge,
            .steps = steps,
            .steps_per_offset = steps,
            .topic = "log",
            .ranges = {{0, 0, 1000}}};
  }
  static void Charge(privacy::Ledger* ledger, const privacy::CommitCharge& charge) {
    if (charge.steps > 0) ledger->Append(CommitSeq(1), 0, {&charge, 1}, {}, "");
  }
  static privacy::Ledger LedgerOf(const LearnerPlan& plan) {
    privacy::Ledger ledger;
    EXPECT_TRUE(ledger.Declare(plan.promise));
    return ledger;
  }

  // The charges of a restore: the copy was charged at `copy`, and the witness saw all of `lost`.
  std::vector<privacy::CommitCharge> Restored(const Assembly& copy, const Assembly& last,
                                              const privacy::Ledger& lost,
                                              uint64_t steps_before) const {
    const LearnerPlan& plan = last.learners[0];
    privacy::Ledger ledger = LedgerOf(copy.learners[0]);
    Charge(&ledger, Steps(copy.learners[0], steps_before));
    const store::PriceTally tally(lost.entries());
    const LearnerTrail trail{
        .copy = {"it", steps_before, train::EncodePosition(At(steps_before))},
        .entries_of_copy = ledger.entries(),
        .later = {},
        .entries = {},
        .last = {.name = "it",
                 .steps = kStepsBefore + kStepsAfter,
                 .charged = {{.charge = plan.charge,
                              .unit = plan.promise.unit,
                              .adjacency = plan.promise.adjacency,
                              .participation = plan.promise.participation,
                              .bounds = plan.promise.bounds,
                              .delta = plan.promise.delta}},
                 .position = train::EncodePosition(At(kStepsBefore + kStepsAfter)),
                 .prices = {tally.Of("it").begin(), tally.Of("it").end()}}};
    auto gap = FindGap(plan, last.config.learners[0], trail, "log");
    EXPECT_TRUE(gap) << gap.error().message;
    if (!gap || !*gap) return {};
    return (**gap).gap.charges;
  }

  // A learner that only the witness knows, and what the witness says of it.
  static LearnerTrail OnlyWitnessed(const LearnerPlan& plan) {
    privacy::Ledger lost = LedgerOf(plan);
    Charge(&lost, Steps(plan, kStepsBefore + kStepsAfter));
    const store::PriceTally tally(lost.entries());
    return {.copy = {"it", 0, ""},
            .entries_of_copy = {},
            .later = {},
            .entries = {},
            .last = {.name = "it",
                     .steps = kStepsBefore + kStepsAfter,
                     .charged = store::ChargedIn(lost.entries().back()),
                     .position = train::EncodePosition(At(kStepsBefore + kStepsAfter)),
                     .prices = {tally.Of("it").begin(), tally.Of("it").end()}}};
  }

  const test::TempDir dir_;
};

// The restored store has spent what the lost one had, however often the price changed after the
// copy, and whether or not the copy knows the learner.
TEST_F(PriceGap, EachStepIsChargedItsPrice) {
  const std::vector<NoisyPrice> prices = {{3, .02}, {30, .02}, {4, .05}, {2.5, .01}};
  std::vector<Assembly> at;
  for (const NoisyPrice& price : prices) at.push_back(Build(price));
  for (size_t first = 0; first < at.size(); ++first)
    for (size_t between = 0; between < at.size(); ++between)
      for (size_t last = 0; last < at.size(); ++last)
        for (const uint64_t before : {kStepsBefore, uint64_t{0}}) {
          privacy::Ledger lost = LedgerOf(at[last].learners[0]);
          Charge(&lost, Steps(at[first].learners[0], kStepsBefore));
          Charge(&lost, Steps(at[between].learners[0], kStepsAfter / 3));
          Charge(&lost, Steps(at[last].learners[0], kStepsAfter - kStepsAfter / 3));
          privacy::Ledger restored = LedgerOf(at[last].learners[0]);
          Charge(&restored, Steps(at[first].learners[0], before));
          for (const auto& charge : Restored(at[first], at[last], lost, before))
            Charge(&restored, charge);
          EXPECT_NEAR(restored.Learners().at(0).epsilon / lost.Learners().at(0).epsilon, 1,
                      kSlackOfBounds)
              << first << between << last << " after " << before;
        }
}

// A copy that has steps at a price which the witness never saw is another store's.
TEST_F(PriceGap, ACopyOfAnotherWayIsRefused) {
  const Assembly copy = Build({3, .02}), last = Build({30, .02});
  privacy::Ledger lost = LedgerOf(last.learners[0]);
  Charge(&lost, Steps(last.learners[0], kStepsBefore + kStepsAfter));
  const store::PriceTally tally(lost.entries());
  const LearnerPlan& plan = last.learners[0];
  privacy::Ledger ledger = LedgerOf(copy.learners[0]);
  Charge(&ledger, Steps(copy.learners[0], kStepsBefore));
  const LearnerTrail trail{
      .copy = {"it", kStepsBefore, train::EncodePosition(At(kStepsBefore))},
      .entries_of_copy = ledger.entries(),
      .later = {},
      .entries = {},
      .last = {.name = "it",
               .steps = kStepsBefore + kStepsAfter,
               .charged = store::ChargedIn(lost.entries().back()),
               .position = train::EncodePosition(At(kStepsBefore + kStepsAfter)),
               .prices = {tally.Of("it").begin(), tally.Of("it").end()}}};
  const auto gap = FindGap(plan, last.config.learners[0], trail, "log");
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, ErrorCode::kRefused);
  EXPECT_THAT(gap.error().message, HasSubstr("two stores that went different ways"));
}

// Sampled steps, of which a record may have been in each, are not charged as steps of `once`, nor
// as a user's. The copy does not know the learner, and the later ledger knows what it promised.
TEST_F(PriceGap, ALearnerThatPromisesSomethingElseByNowIsRefused) {
  const Assembly last = Build({3, .02});
  LearnerPlan plan = last.learners[0];
  privacy::Ledger lost = LedgerOf(plan);
  Charge(&lost, Steps(plan, kStepsBefore + kStepsAfter));
  LearnerTrail trail = OnlyWitnessed(plan);
  trail.later = {"it", kStepsBefore + kStepsAfter, *trail.last.position};
  trail.entries = lost.entries();
  const auto same = FindGap(plan, last.config.learners[0], trail, "log");
  EXPECT_TRUE(same && *same) << (same ? "no gap" : same.error().message);

  config::Learner learner = last.config.learners[0];
  learner.participation = config::Participation();
  plan.promise.participation = privacy::ParticipationMode::kOnce;
  const auto once = FindGap(plan, learner, trail, "log");
  ASSERT_FALSE(once);
  EXPECT_EQ(once.error().code, ErrorCode::kRefused);
  EXPECT_THAT(once.error().message, HasSubstr("promised something else"));

  plan = last.learners[0];
  plan.promise.unit = privacy::Unit::kUser;
  EXPECT_FALSE(FindGap(plan, last.config.learners[0], trail, "log"));
}

// A witness is a file like others: what no ledger can have is refused, and never added up.
TEST_F(PriceGap, AChargeThatNoLedgerCanHaveIsRefused) {
  const Assembly last = Build({3, .02});
  const LearnerPlan& plan = last.learners[0];
  const LearnerTrail trail = OnlyWitnessed(plan);
  const std::vector<std::function<void(privacy::Charge*)>> forgeries = {
      [](auto* charge) { charge->mechanism = static_cast<privacy::MechanismKind>(250); },
      [](auto* charge) { charge->noise_multiplier = std::nan(""); },
      [](auto* charge) { charge->noise_multiplier = -3; },
      [](auto* charge) { charge->sampling_rate = -.5; },
      [](auto* charge) { charge->block_steps = 1; },
  };
  for (size_t i = 0; i < forgeries.size(); ++i) {
    LearnerTrail forged = trail;
    store::WitnessedLearner::Priced other = forged.last.prices.front();
    forgeries[i](&other.charged.charge);
    other.steps = 1;
    forged.last.prices.front().steps -= 1;
    forged.last.prices.push_back(other);
    const auto gap = FindGap(plan, last.config.learners[0], forged, "log");
    ASSERT_FALSE(gap) << i;
    EXPECT_EQ(gap.error().code, ErrorCode::kCorruption) << i;
  }
  EXPECT_TRUE(FindGap(plan, last.config.learners[0], trail, "log"));
}

// A copy that went on by itself may have begun periods anew that the lost store never did.
TEST_F(PriceGap, ACopyThatHasComeFurtherIsRefused) {
  const Assembly last = Build({3, .02});
  const LearnerPlan& plan = last.learners[0];
  LearnerTrail trail = OnlyWitnessed(plan);
  stream::Position further = At(0);
  further.begun_anew = 1;
  trail.copy.position = train::EncodePosition(further);
  const auto gap = FindGap(plan, last.config.learners[0], trail, "log");
  ASSERT_FALSE(gap);
  EXPECT_THAT(gap.error().message, HasSubstr("two stores that went different ways"));
}

}  // namespace
}  // namespace tacit::wiring
