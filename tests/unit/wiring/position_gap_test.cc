// A witness is a file like others: a restore takes no position from it that the learner of the copy
// cannot have come to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "store/witness/price_tally.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "train/learner/position.h"
#include "wiring/assembly.h"
#include "wiring/restore/gap.h"

namespace tacit::wiring {
namespace {

using ::testing::HasSubstr;

class PositionGap : public ::testing::Test {
 protected:
  static constexpr uint64_t kStepsBefore = 20, kStepsAfter = 12, kBatch = 25;
  static constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  static constexpr const char* kOnce = "mode: once, batch: 25, max_participations: 36";
  static constexpr const char* kPoisson =
      "mode: poisson, batch: 25, sampling_rate: 0.02, period: 1000, steps_per_period: 12";
  static constexpr const char* kPoissonOfUsers =
      "mode: poisson, batch: 25, sampling_rate: 0.02, period: 1000, steps_per_period: 12, "
      "max_participations: 36";

  PositionGap() { test::WriteFile(dir_ / "log.jsonl", ""); }

  Assembly Build(const std::string& participation, const std::string& unit = "event") const {
    auto config =
        config::Parse(fmt::format("source: {{kind: log, format: json, files: {}}}\n"
                                  "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                                  "learners:\n"
                                  "  - id: it\n"
                                  "    model: {{kind: pctr, hidden: [4]}}\n"
                                  "    mechanism: {{kind: dp-sgd, noise_multiplier: 9}}\n"
                                  "    participation: {{{}}}\n"
                                  "    privacy: {{unit: {}, epsilon: 50, delta: 1.0e-6}}\n"
                                  "store: {{path: {}}}\n",
                                  dir_ / "log.jsonl", participation, unit, dir_ / "store"),
                      "gap", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return *std::move(assembly);
  }

  // The copy had read two partitions, and was in its second pass.
  static stream::Position Copy() {
    return {.pass = 1,
            .period = 4,
            .period_start = {},
            .next = {{0, 300, 300}, {3, 200, 200}},
            .step = kStepsBefore,
            .longest_period = 12,
            .begun_anew = 2};
  }
  // The lost store had read on in one of them, a batch a step.
  static stream::Position Last() {
    stream::Position last = Copy();
    last.step += kStepsAfter;
    last.next[0] = {0, 300 + kStepsAfter * kBatch, 300 + kStepsAfter * kBatch};
    return last;
  }

  static Result<std::optional<FoundGap>> Gap(const Assembly& assembly, const stream::Position& to) {
    const LearnerPlan& plan = assembly.learners[0];
    const store::WitnessedLearner::Charged charged{.charge = plan.charge,
                                                   .unit = plan.promise.unit,
                                                   .adjacency = plan.promise.adjacency,
                                                   .participation = plan.promise.participation,
                                                   .bounds = plan.promise.bounds,
                                                   .delta = plan.promise.delta};
    const LearnerTrail trail{.copy = {"it", kStepsBefore, train::EncodePosition(Copy())},
                             .entries_of_copy = {},
                             .later = {},
                             .entries = {},
                             .last = {.name = "it",
                                      .steps = kStepsBefore + kStepsAfter,
                                      .charged = charged,
                                      .position = train::EncodePosition(to),
                                      .prices = {{charged, kStepsAfter}}}};
    return FindGap(plan, assembly.config.learners[0], trail, "log");
  }

  const test::TempDir dir_;
};

TEST_F(PositionGap, WhatTheLostStoreReadIsCharged) {
  const auto gap = Gap(Build(kOnce), Last());
  ASSERT_TRUE(gap && *gap) << (gap ? "no gap" : gap.error().message);
  const auto& charges = (**gap).gap.charges;
  ASSERT_EQ(charges.size(), 1u);
  EXPECT_EQ(charges[0].steps, kStepsAfter);
  EXPECT_EQ(charges[0].ranges, (std::vector<OffsetRange>{{0, 300, 600}}));
}

TEST_F(PositionGap, WhatNoLearnerCanHaveComeToIsRefused) {
  struct Forgery {
    std::function<void(stream::Position*)> forge;
    std::string said;
  };
  const std::vector<Forgery> forgeries = {
      {[](auto* at) { at->pass = 0; }, "position.pass is 0, and 1 in the copy"},
      {[](auto* at) { at->period = 3; }, "position.period is 3, and 4 in the copy"},
      {[](auto* at) { at->step = 19; }, "position.step is 19, and 20 in the copy"},
      {[](auto* at) { at->begun_anew = 1; }, "position.begun_anew is 1, and 2 in the copy"},
      {[](auto* at) { at->longest_period = 0; },
       "position.longest_period is 0, and 12 in the copy"},
      {[](auto* at) { at->next[1].partition = -1; }, "position.next has partition -1"},
      {[](auto* at) { at->next.push_back(at->next[0]); }, "position.next has partition 0 twice"},
      {[](auto* at) { at->next.pop_back(); }, "position.next has no partition 3"},
      {[](auto* at) { at->next[1].partition = 4; }, "position.next has no partition 3"},
      {[](auto* at) { at->next[1].begin = 199; },
       "position.next is at offset 199 of partition 3, and at 200 in the copy"},
      // Nothing would be charged, or one record for all steps.
      {[](auto* at) { at->next = Copy().next; },
       "position.next is 0 offsets after the copy's, and 12 steps were charged"},
      {[](auto* at) {
         at->longest_period = 12;
         at->next[0] = {0, 300, 300};
         at->begun_anew = 3;
       },
       "position.next is 0 offsets after the copy's, and 12 steps were charged"},
  };
  const Assembly assembly = Build(kPoisson);
  for (const auto& [forge, said] : forgeries) {
    stream::Position position = Last();
    forge(&position);
    const auto gap = Gap(assembly, position);
    ASSERT_FALSE(gap) << said;
    EXPECT_EQ(gap.error().code, ErrorCode::kRefused) << said;
    EXPECT_THAT(gap.error().message, HasSubstr("learner 'it': " + said));
  }
}

// Each step of `once` is on offsets of its own. Otherwise twelve steps would be one record's, and
// no other user would be charged.
TEST_F(PositionGap, StepsNeedOffsets) {
  for (const char* unit : {"event", "user"}) {
    stream::Position position = Last();
    position.begun_anew = Copy().begun_anew;
    position.longest_period = Copy().longest_period;
    position.next[0] = {0, 300, 300};
    const auto gap = Gap(Build(kOnce, unit), position);
    ASSERT_FALSE(gap) << unit;
    EXPECT_THAT(gap.error().message, HasSubstr("12 steps were charged"));
  }
}

// Sums and products of such numbers would come to 0.
TEST_F(PositionGap, NumbersOfAnySizeMakeNoChargeSmaller) {
  const std::vector<std::function<void(stream::Position*)>> forgeries = {
      [](auto* at) { at->begun_anew = kMost; },
      [](auto* at) { at->begun_anew = Copy().begun_anew + kMost / 2 + 1; },
      [](auto* at) { at->longest_period = kMost; },
      [](auto* at) {
        at->longest_period = kMost / 2 + 1;
        at->begun_anew = Copy().begun_anew + 1;
      },
  };
  for (size_t i = 0; i < forgeries.size(); ++i) {
    stream::Position position = Last();
    forgeries[i](&position);
    const auto of_events = Gap(Build(kPoisson), position);
    ASSERT_TRUE(of_events && *of_events) << i << ": " << of_events.error().message;
    EXPECT_EQ((**of_events).gap.charges.at(0).steps_per_offset, kStepsAfter) << i;
    const auto of_users = Gap(Build(kPoissonOfUsers, "user"), position);
    ASSERT_TRUE(of_users && *of_users) << i << ": " << of_users.error().message;
    EXPECT_GE((**of_users).gap.gap.steps, kStepsAfter) << i;
    EXPECT_GE((**of_users).steps_per_record, kStepsAfter) << i;
  }
}

}  // namespace
}  // namespace tacit::wiring
