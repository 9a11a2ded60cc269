// The step loop with a breaker: what is committed around a window's end, and what is told of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "privacy/gaussian.h"
#include "train/learner/position.h"
#include "unit/train/trainer_rig.h"

namespace tacit::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// All that is before the window's end stands, and nothing behind it is learnt.
TEST_F(TrainerTest, AHaltEndsTraining) {
  breaker_ = BreakerOf(5);
  Make(1.0, 100, std::chrono::hours(1));
  const auto outcome = RunWindows({0, 0, 64, 0});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kHalted);
  ASSERT_EQ(store_->commits.size(), 1u);
  const store::CommitRequest& commit = store_->commits[0];
  ASSERT_EQ(commit.learners.size(), 2u) << "the steps and what was decided are one commit";
  EXPECT_EQ(DecodePosition(commit.learners[0].position)->step, 6u);
  EXPECT_EQ(commit.source_identity, "identity of window 2");
  const auto state = BreakerState::Of(*DecodePosition(commit.learners[1].position));
  EXPECT_EQ(state, (BreakerState{3, true, {{0, 192, 192}}}));
  EXPECT_EQ(commit.learners[1].charges[0].steps, 3u);
  EXPECT_THAT(trainer_->why_halted(),
              AllOf(HasSubstr("--past-halt 3"), HasSubstr("more than 50 % of its 64 records")));
  EXPECT_THAT(registry_.Scrape(metrics::Audience::kPublic),
              AllOf(HasSubstr("tacit_training_halted 1"),
                    HasSubstr("tacit_privacy_epsilon_budget{learner=\"source.halt_above\"} 5")));
}

TEST_F(TrainerTest, AHaltedStoreLearnsNothingUntilItsWindowIsNamed) {
  breaker_ = BreakerOf(5);
  breaker_->state = {.windows = 3, .halted = true, .next = {{0, 192, 192}}};
  Make(1.0, 100, std::chrono::milliseconds(0));
  EXPECT_THAT(trainer_->why_halted(), HasSubstr("--past-halt 3"));
  EXPECT_EQ(*RunWindows({0}), Outcome::kHalted);
  EXPECT_TRUE(store_->commits.empty());

  breaker_->past = 3;
  Make(1.0, 100, std::chrono::milliseconds(0));
  EXPECT_EQ(trainer_->why_halted(), "");
  EXPECT_EQ(*RunWindows({0, 0}), Outcome::kEndOfSource);
  EXPECT_FALSE(store_->commits.empty());
}

// A halt is told once it is committed and not before, since a crash lets the window be drawn anew.
TEST_F(TrainerTest, AHaltThatIsNotCommittedIsNotTold) {
  breaker_ = BreakerOf(5);
  Make(1.0, 100, std::chrono::hours(1));
  store_->fails = true;
  EXPECT_FALSE(RunWindows({64}));
  EXPECT_EQ(trainer_->why_halted(), "");
  EXPECT_THAT(registry_.Scrape(metrics::Audience::kPublic), HasSubstr("tacit_training_halted 0"));
}

// No commit is of steps behind a window that it does not have the decision of.
TEST_F(TrainerTest, ADecisionIsInTheFirstCommitBehindIt) {
  breaker_ = BreakerOf(5);
  Make(1.0, 100, std::chrono::milliseconds(0));
  EXPECT_EQ(*RunWindows({0, 0, 0, 0, 0}), Outcome::kEndOfSource);
  uint64_t windows = 0, steps = 0;
  for (const store::CommitRequest& commit : store_->commits) {
    for (const store::LearnerCommit& learner : commit.learners) {
      const auto position = DecodePosition(learner.position);
      (learner.learner == LearnerIndex(1) ? windows : steps) = position->step;
    }
    EXPECT_GE(windows, (steps == 0 ? 0 : steps - 1) / 2) << "after " << steps << " steps";
  }
  EXPECT_EQ(windows, 5u);
}

// The breaker looks at nothing that its budget, or that of all together, has no room for.
TEST_F(TrainerTest, AWindowThatMayNotBeChargedDecidesNothing) {
  breaker_ = BreakerOf(.5);  // one window costs 1.2
  Make(1.0, 100, std::chrono::milliseconds(0));
  EXPECT_EQ(*RunWindows({64, 64}), Outcome::kEndOfSource);
  for (const store::CommitRequest& commit : store_->commits) EXPECT_EQ(commit.learners.size(), 1u);

  breaker_ = BreakerOf(5);
  Make({{"ctr", 1.0, 100}}, std::chrono::milliseconds(0),
       privacy::TotalBudget{.epsilon = privacy::GaussianEpsilon(1, Delta(1e-6)).value + .01,
                            .delta = 1e-6});
  EXPECT_EQ(*RunWindows({64, 64}), Outcome::kEndOfSource);
  for (const store::CommitRequest& commit : store_->commits) EXPECT_EQ(commit.learners.size(), 1u);
}

// A period of a topic is decided before it is released.
TEST_F(TrainerTest, AHaltReleasesNothingOfItsPeriod) {
  breaker_ = BreakerOf(5);
  breaker_->window = 0;
  Make(1.0, 100, std::chrono::hours(1));
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t unreadable = i == 1 ? 32 : 0;
    EXPECT_TRUE(steps.Push({.learner = LearnerIndex(0),
                            .batch = {},
                            .source_identity = "identity",
                            .window_end = WindowEnd{{{0, 32 * i, 32 * (i + 1)}}, unreadable}}));
    EXPECT_TRUE(steps.Push(MakeStep(i, 32 * i)));
  }
  steps.Close();
  EXPECT_EQ(*trainer_->Run(steps), Outcome::kHalted);
  ASSERT_EQ(store_->commits.size(), 1u);
  const store::CommitRequest& commit = store_->commits[0];
  ASSERT_EQ(commit.learners.size(), 2u);
  EXPECT_EQ(commit.learners[0].charges[0].steps, 1u) << "the period before it";
  EXPECT_EQ(DecodePosition(commit.learners[0].position)->next,
            (std::vector<OffsetRange>{{0, 32, 32}}));
  const auto state = BreakerState::Of(*DecodePosition(commit.learners[1].position));
  EXPECT_EQ(state, (BreakerState{2, true, {{0, 64, 64}}}));
  EXPECT_EQ(commit.learners[1].charges[0].steps, 2u);
  EXPECT_THAT(trainer_->why_halted(), HasSubstr("more than 50 % of its records"));
}

// The noise would decide on a short period by itself, and each such decision would be seen.
TEST_F(TrainerTest, AShortPeriodIsNotDecided) {
  breaker_ = BreakerOf(5);
  breaker_->least = 65;
  Make(1.0, 100, std::chrono::milliseconds(0));
  EXPECT_EQ(*RunWindows({64, 64}), Outcome::kEndOfSource);
  for (const store::CommitRequest& commit : store_->commits) EXPECT_EQ(commit.learners.size(), 1u);
  breaker_->least = 64;
  Make(1.0, 100, std::chrono::milliseconds(0));
  EXPECT_EQ(*RunWindows({64, 64}), Outcome::kHalted);
}

}  // namespace
}  // namespace tacit::train
