// A restore's charges where a learner's price changed after the copy.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/price_tally.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "train/position.h"
#include "wiring/assembly.h"
#include "wiring/gap.h"

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

}  // namespace
}  // namespace tacit::wiring
