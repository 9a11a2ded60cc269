// A restore's charges where allowances and the lengths of periods changed after the copy and
// changed back: the last ones say nothing of what was spent between.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/witness/price_tally.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "train/learner/position.h"
#include "wiring/assembly.h"
#include "wiring/restore/gap.h"

namespace tacit::wiring {
namespace {

constexpr double kSlackOfBounds = 1e-3;
constexpr uint64_t kOffsetsOfPeriod = 100;

// A configuration, and the periods that were learnt under it.
struct Phase {
  std::string participation;
  int periods = 1;
};

class BoundsGap : public ::testing::Test {
 protected:
  BoundsGap() { test::WriteFile(dir_ / "log.jsonl", ""); }

  Assembly Build(const std::string& unit, const Phase& phase) const {
    auto config =
        config::Parse(fmt::format("source: {{kind: log, format: json, files: {}}}\n"
                                  "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                                  "learners:\n"
                                  "  - id: it\n"
                                  "    model: {{kind: pctr, hidden: [4]}}\n"
                                  "    mechanism: {{kind: dp-sgd, noise_multiplier: 4}}\n"
                                  "    participation: {{batch: 25, period: {}, {}}}\n"
                                  "    privacy: {{unit: {}, epsilon: 500, delta: 1.0e-6}}\n"
                                  "store: {{path: {}}}\n",
                                  dir_ / "log.jsonl", kOffsetsOfPeriod, phase.participation, unit,
                                  dir_ / "store"),
                      "gap", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return *std::move(assembly);
  }

  // Learns these phases, as a store would, into the ledger and the position.
  void Learn(const std::string& unit, const std::vector<Phase>& phases, privacy::Ledger* ledger,
             stream::Position* position) const {
    for (const Phase& phase : phases) {
      const Assembly assembly = Build(unit, phase);
      const LearnerPlan& plan = assembly.learners[0];
      const uint64_t steps = assembly.config.learners[0].participation.PeriodSteps();
      ASSERT_TRUE(ledger->Declare(plan.promise));
      position->longest_period = std::max(position->longest_period, steps);
      for (int period = 0; period < phase.periods; ++period) {
        const uint64_t begin = position->period * kOffsetsOfPeriod, end = begin + kOffsetsOfPeriod;
        const privacy::CommitCharge charge{.learner = "it",
                                           .charge = plan.charge,
                                           .steps = steps,
                                           .steps_per_offset = steps,
                                           .topic = "log",
                                           .ranges = {{0, begin, end}}};
        ledger->Append(CommitSeq(++commits_), 0, {&charge, 1}, {}, "");
        position->step += steps;
        position->period += 1;
        position->next = {{0, end, end}};
      }
    }
  }

  enum class Known { kByWitness, kByLedger };
  // Learns all phases, loses them except for the first one, and returns what a restore's ledger has
  // spent for what the lost one had.
  double PaidForSpent(const std::string& unit, const std::vector<Phase>& phases,
                      Known known = Known::kByWitness, bool without_lengths = false) const {
    privacy::Ledger copy;
    stream::Position at_copy, at_end;
    Learn(unit, {phases[0]}, &copy, &at_copy);
    privacy::Ledger lost = copy;
    at_end = at_copy;
    Learn(unit, {phases.begin() + 1, phases.end()}, &lost, &at_end);
    if (without_lengths) at_copy.longest_period = at_end.longest_period = 0;
    const Assembly last = Build(unit, phases.back());
    const store::PriceTally tally(lost.entries());
    const uint64_t steps = lost.Learners()[0].steps;
    const store::RemainingLearner then{"it", copy.Learners()[0].steps,
                                       train::EncodePosition(at_copy)};
    LearnerTrail trail{.copy = then,
                       .entries_of_copy = copy.entries(),
                       .later = {},
                       .entries = {},
                       .last = {.name = "it",
                                .steps = steps,
                                .charged = store::ChargedIn(lost.entries().back()),
                                .position = train::EncodePosition(at_end),
                                .prices = {tally.Of("it").begin(), tally.Of("it").end()}}};
    if (known == Known::kByLedger) {
      trail.later = {"it", steps, train::EncodePosition(at_end)};
      trail.entries = lost.entries();
    }
    const auto found = FindGap(last.learners[0], last.config.learners[0], trail, "log");
    EXPECT_TRUE(found && *found) << (found ? "no gap" : found.error().message);
    if (!found || !*found) return 0;
    privacy::Ledger restored = copy;
    const store::LearnerGap& gap = (**found).gap;
    for (const store::LearnerGap::Earlier& earlier : gap.earlier) {
      privacy::Promise promise = last.learners[0].promise;
      promise.bounds = earlier.bounds;
      EXPECT_TRUE(restored.Declare(promise));
      restored.Append(CommitSeq(++commits_), 0, earlier.charges, {}, "");
    }
    EXPECT_TRUE(restored.Declare(last.learners[0].promise));
    restored.Append(CommitSeq(++commits_), 0, gap.charges, {}, "");
    EXPECT_EQ(restored.Learners()[0].steps, steps);
    return restored.Learners()[0].epsilon / lost.Learners()[0].epsilon;
  }

  const test::TempDir dir_;
  mutable uint64_t commits_ = 0;
};

std::string Poisson(int steps, int allowance = 0) {
  return fmt::format("mode: poisson, sampling_rate: 0.1, steps_per_period: {}{}", steps,
                     allowance == 0 ? "" : fmt::format(", max_participations: {}", allowance));
}
std::string Allocate(int blocks) {
  return fmt::format("mode: allocate, steps_per_period: 4, blocks: {}", blocks);
}

TEST_F(BoundsGap, WhereNothingChangedEachPeriodIsPaidOnce) {
  EXPECT_NEAR(PaidForSpent("event", {{Poisson(20)}, {Poisson(20), 8}}), 1, kSlackOfBounds);
  EXPECT_NEAR(PaidForSpent("event", {{Allocate(3)}, {Allocate(3), 8}}), 1, kSlackOfBounds);
  EXPECT_NEAR(PaidForSpent("user", {{Poisson(20, 60)}, {Poisson(20, 60), 8}}), 1, kSlackOfBounds);
}

TEST_F(BoundsGap, ALongPeriodBetweenShortOnesIsPaid) {
  for (const Known known : {Known::kByWitness, Known::kByLedger}) {
    EXPECT_GE(PaidForSpent("event", {{Poisson(2)}, {Poisson(100)}, {Poisson(2), 3}}, known),
              1 - kSlackOfBounds);
    EXPECT_GE(PaidForSpent("event", {{Allocate(1)}, {Allocate(9)}, {Allocate(1), 3}}, known),
              1 - kSlackOfBounds);
  }
}

TEST_F(BoundsGap, ALargeAllowanceBetweenSmallOnesIsPaid) {
  const std::vector<Phase> phases = {{Poisson(10, 20)}, {Poisson(10, 100), 6}, {Poisson(10, 20)}};
  for (const Known known : {Known::kByWitness, Known::kByLedger})
    EXPECT_NEAR(PaidForSpent("user", phases, known), 1, kSlackOfBounds);
}

// A position that notes no lengths: every offset may have been in all of the steps.
TEST_F(BoundsGap, UnknownLengthsAreTheWorst) {
  const std::vector<Phase> phases = {{Poisson(2)}, {Poisson(100)}, {Poisson(2), 3}};
  EXPECT_GE(PaidForSpent("event", phases, Known::kByWitness, /*without_lengths=*/true),
            1 - kSlackOfBounds);
}

}  // namespace
}  // namespace tacit::wiring
