// The charges of a restore to a learner whose steps come in blocks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"
#include "train/learner/position.h"
#include "wiring/assembly.h"
#include "wiring/restore/gap.h"

namespace tacit::wiring {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kOfPeriod = 8;  // 2 blocks of 4 steps

class AllocationGap : public ::testing::Test {
 protected:
  AllocationGap() { test::WriteFile(dir_ / "log.jsonl", ""); }

  Assembly Build(const std::string& unit, int blocks = 2,
                 const std::string& mechanism = "{kind: dp-sgd, noise_multiplier: 20}") const {
    auto config = config::Parse(
        fmt::format("source: {{kind: log, format: json, files: {}}}\n"
                    "schema: {{features: [{{name: n, kind: dense}}, {{name: c, kind: categorical, "
                    "buckets: 50, dim: 4}}]}}\n"
                    "learners:\n"
                    "  - id: it\n"
                    "    model: {{kind: pctr, hidden: [4]}}\n"
                    "    mechanism: {}\n"
                    "    participation: {{mode: allocate, batch: 25, steps_per_period: 4, blocks: "
                    "{}, period: 100{}}}\n"
                    "    privacy: {{unit: {}, epsilon: 8, delta: 1.0e-6}}\n"
                    "store: {{path: {}}}\n",
                    dir_ / "log.jsonl", mechanism, blocks,
                    unit == "user" ? ", max_participations: 160" : "", unit, dir_ / "store"),
        "gap", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return *std::move(assembly);
  }

  // The checkpoint is of the third step of the second period, and was charged for two.
  static stream::Position At() {
    return {.period = 1,
            .period_start = {},
            .next = {{0, 100, 200}},
            .step = 11,
            .period_step = 3,
            .longest_period = kOfPeriod};
  }
  // Later in the same period, which a store that was itself restored had begun anew.
  static stream::Position AtBegunAnew() {
    stream::Position at = At();
    at.period = 2;
    at.step = 15;
    at.period_step = 4;
    at.begun_anew = 1;
    return at;
  }
  static constexpr uint64_t kCharged = 2 * kOfPeriod;

  static Result<std::optional<FoundGap>> Gap(const Assembly& assembly, const stream::Position& to,
                                             uint64_t steps, const Assembly& charged_as) {
    const LearnerPlan &plan = assembly.learners[0], &was = charged_as.learners[0];
    const store::WitnessedLearner::Charged charged{.charge = was.charge,
                                                   .unit = was.promise.unit,
                                                   .adjacency = was.promise.adjacency,
                                                   .participation = was.promise.participation,
                                                   .bounds = was.promise.bounds,
                                                   .delta = was.promise.delta};
    const store::WitnessedLearner lost{.name = "it",
                                       .steps = steps,
                                       .charged = charged,
                                       .position = train::EncodePosition(to),
                                       .prices = {{charged, steps - kCharged}}};
    const LearnerTrail trail{.copy = {"it", kCharged, train::EncodePosition(At())},
                             .entries_of_copy = {},
                             .later = {},
                             .entries = {},
                             .last = lost};
    return FindGap(plan, assembly.config.learners[0], trail, "log");
  }
  static store::LearnerGap MustFind(const Assembly& assembly, const stream::Position& to,
                                    uint64_t steps) {
    auto gap = Gap(assembly, to, steps, assembly);
    EXPECT_TRUE(gap) << gap.error().message;
    EXPECT_TRUE(gap->has_value());
    return (**std::move(gap)).gap;
  }

  const test::TempDir dir_;
};

TEST_F(AllocationGap, NothingWhereNothingWasDone) {
  const Assembly assembly = Build("event");
  const auto gap = Gap(assembly, At(), kCharged, assembly);
  ASSERT_TRUE(gap) << gap.error().message;
  EXPECT_FALSE(*gap);
}

TEST_F(AllocationGap, TheRestOfAPeriodIsPaidForAndMovesTheLearnerOn) {
  stream::Position within = At(), behind = At();
  within.step = 13, within.period_step = 5;
  behind.step = 16, behind.period_step = 0, behind.period = 2, behind.next = {{0, 200, 200}};
  for (const char* unit : {"event", "user"}) {
    const Assembly assembly = Build(unit);
    for (const stream::Position& to : {within, behind}) {
      const store::LearnerGap gap = MustFind(assembly, to, kCharged);
      ASSERT_EQ(gap.charges.size(), 1u);
      EXPECT_EQ(gap.charges[0].steps, 0u);
      EXPECT_EQ(gap.charges[0].paid_steps, to.step - 11);
      EXPECT_EQ(gap.step, to.step);
      EXPECT_EQ(gap.gap.steps, 0u);
      EXPECT_EQ(gap.position, train::EncodePosition(to));
    }
  }
}

TEST_F(AllocationGap, PeriodsThatBeganAreChargedWhole) {
  const stream::Position to{.period = 3,
                            .period_start = {},
                            .next = {{0, 300, 400}},
                            .step = 26,
                            .period_step = 2,
                            .longest_period = kOfPeriod};
  for (const char* unit : {"event", "user"}) {
    const store::LearnerGap gap = MustFind(Build(unit), to, kCharged + 2 * kOfPeriod);
    ASSERT_EQ(gap.charges.size(), 1u);
    EXPECT_EQ(gap.charges[0].steps, 2 * kOfPeriod);
    EXPECT_EQ(gap.charges[0].steps_per_offset, kOfPeriod) << "each record is in one period";
    EXPECT_EQ(gap.charges[0].ranges, (std::vector<OffsetRange>{{0, 100, 400}}));
    if (std::string_view(unit) == "user") {
      EXPECT_EQ(gap.gap.steps, 2 * kOfPeriod);
    }
  }
}

// The lost store was a restored one itself, and had begun a period anew: both were on its records.
TEST_F(AllocationGap, APeriodThatWasBegunAnewIsChargedTwiceToItsRecords) {
  const store::LearnerGap gap = MustFind(Build("event"), AtBegunAnew(), kCharged + 2 * kOfPeriod);
  EXPECT_EQ(gap.charges[0].steps, 2 * kOfPeriod);
  EXPECT_EQ(gap.charges[0].steps_per_offset, 2 * kOfPeriod);
}

TEST_F(AllocationGap, SoIsItsOpening) {
  const Assembly assembly =
      Build("event", 2,
            "{kind: fest, noise_multiplier: 20, vocabulary: {source: running, keep: 9, "
            "noise_multiplier: 30}}");
  const LearnerPlan& plan = assembly.learners[0];
  ASSERT_TRUE(plan.opening_charge);
  store::WitnessedLearner::Charged steps{.charge = plan.charge,
                                         .unit = plan.promise.unit,
                                         .adjacency = plan.promise.adjacency,
                                         .participation = plan.promise.participation,
                                         .bounds = plan.promise.bounds,
                                         .delta = plan.promise.delta};
  store::WitnessedLearner::Charged openings = steps;
  openings.charge = *plan.opening_charge;
  const LearnerTrail trail{.copy = {"it", kCharged, train::EncodePosition(At())},
                           .entries_of_copy = {},
                           .later = {},
                           .entries = {},
                           .last = {.name = "it",
                                    .steps = kCharged + 2 + 2 * kOfPeriod,
                                    .charged = steps,
                                    .position = train::EncodePosition(AtBegunAnew()),
                                    .prices = {{openings, 2}, {steps, 2 * kOfPeriod}}}};
  const auto gap = FindGap(plan, assembly.config.learners[0], trail, "log");
  ASSERT_TRUE(gap && *gap) << gap.error().message;
  const auto& charges = (**gap).gap.charges;
  ASSERT_EQ(charges.size(), 2u);
  EXPECT_EQ(charges[0].charge, *plan.opening_charge);
  EXPECT_EQ(charges[0].steps_per_offset, 2u);
  EXPECT_EQ(charges[1].steps_per_offset, 2 * kOfPeriod);
}

TEST_F(AllocationGap, AnotherNumberOfBlocksIsAnotherPrice) {
  const auto gap = Gap(Build("event"), At(), kCharged + 2 * kOfPeriod, Build("event", 4));
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, ErrorCode::kRefused);
  EXPECT_THAT(gap.error().message, HasSubstr("at another price"));
}

}  // namespace
}  // namespace tacit::wiring
