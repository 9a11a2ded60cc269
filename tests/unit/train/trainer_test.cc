// The step loop against a store that only remembers: what it commits, what it refuses, when it
// ends.
#include "train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include "mechanism/private_step.h"
#include "privacy/gaussian.h"
#include "train/learner/position.h"
#include "unit/train/trainer_rig.h"

namespace tacit::train {
namespace {

// Other readers learn what no learner will read again: the place of the slowest one.
TEST_F(TrainerTest, AdviceIsOfWhatEveryLearnerIsPast) {
  Make({{"ctr", 1, 100}, {"small", 1, 100}}, std::chrono::milliseconds(0), std::nullopt);
  BoundedQueue<LearnerStep> steps(100);
  ASSERT_TRUE(steps.Push(MakeStep(0, 0)));
  ASSERT_TRUE(steps.Push(MakeStep(0, 0, 32, 1)));
  ASSERT_TRUE(steps.Push(MakeStep(1, 32)));
  ASSERT_TRUE(steps.Push(MakeStep(2, 64)));
  ASSERT_TRUE(steps.Push(MakeStep(1, 32, 32, 1)));
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  std::vector<uint64_t> offsets;
  for (const auto& reached : advised_) {
    ASSERT_EQ(reached.size(), 1u);
    offsets.push_back(reached[0].offset);
  }
  EXPECT_EQ(offsets, (std::vector<uint64_t>{32, 32, 32, 64})) << "nothing before both have begun";
}

TEST_F(TrainerTest, EverythingTakenIsCommittedOnceAndCharged) {
  Make(1.0, 8, std::chrono::milliseconds(2));
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(steps.Push(MakeStep(i, i * 32)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kEndOfSource);
  uint64_t charged = 0, next = 0;
  for (const auto& commit : store_->commits) {
    const auto& learner = commit.learners.at(0);
    charged += learner.charges[0].steps;
    for (const OffsetRange& range : learner.charges[0].ranges) {
      EXPECT_EQ(range.begin, next);
      next = range.end;
    }
    const auto position = DecodePosition(learner.position);
    ASSERT_TRUE(position);
    EXPECT_EQ(position->step, charged);
    EXPECT_EQ(commit.source_identity, "identity " + std::to_string(charged - 1));
  }
  EXPECT_EQ(charged, 50u);
  EXPECT_EQ(next, 50u * 32);
  EXPECT_EQ(published_, store_->commits.size());
  EXPECT_EQ(progress_.view(0).events, 50u * 32);
}

TEST_F(TrainerTest, ACommitHoldsWhatTheEngineHasLearntAndNoLess) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  ASSERT_TRUE(RunSteps(10));
  ASSERT_EQ(store_->commits.size(), 10u);
  for (const auto& commit : store_->commits) {
    const store::LearnerCommit& learner = commit.learners.at(0);
    const uint64_t step = DecodePosition(learner.position)->step;
    EXPECT_EQ(learner.dense->parameters, distant_.after.at(step - 1)) << "step " << step;
  }
}

// Other processes wait for the model of a step.
TEST_F(TrainerTest, EachStepMayBeCommittedAtOnce) {
  commit_each_step_ = true;
  Make(1.0, 8, std::chrono::hours(1));
  ASSERT_TRUE(RunSteps(5));
  EXPECT_EQ(store_->commits.size(), 5u);
}

TEST_F(TrainerTest, SumsOfOthersAreForModelsThatAddUp) {
  Make(1.0, 8, std::chrono::hours(1));
  BoundedQueue<LearnerStep> steps(100);
  LearnerStep sums{.learner = LearnerIndex(0), .batch = {}, .source_identity = ""};
  sums.batch.kind = stream::StepBatch::Kind::kSums;
  sums.batch.sums = "a part";
  ASSERT_TRUE(steps.Push(std::move(sums)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message,
            "learner 'ctr', after step 0: models of this kind are not summed in parts");
  EXPECT_TRUE(store_->commits.empty());
}

// A learner whose own sums are "right", and have 7 examples.
class AddingLearner final : public Learner {
 public:
  using Learner::Learner;

  privacy::Charge charge() const override { return {}; }
  Result<bool> TakeStep(const stream::StepBatch&, const std::atomic<bool>&, StepReport*) override {
    return true;
  }
  Status Preview(const stream::StepBatch&, StepReport*) override { return {}; }
  Result<PartFigures> AddPart(std::string_view) override {
    return PartFigures{.examples = 7, .losses = 65536, .predicted = 3 * 65536, .bins = {4, 3}};
  }
  Result<bool> EndRecount(std::string_view bytes) override {
    return bytes.empty() || bytes == "right";
  }
  std::shared_ptr<const store::DenseState> CopyDense() const override { return nullptr; }
  Status LoadReleased(std::string_view) override { return {}; }
  void Rekey() override {}
};

TEST_F(TrainerTest, OtherSumsOfTheSameRecordsStopLearningAndNameTheirWorker) {
  Make(1.0, 8, std::chrono::hours(1));
  std::vector<ResumedLearner> learners;
  learners.push_back({std::make_unique<AddingLearner>("sums", LearnerIndex(0)), {}});
  trainer_ = std::make_unique<Trainer>(
      TrainerOptions{
          .budgets = {{.epsilon = 8, .delta = 1e-6}}, .total_budget = std::nullopt, .topic = "log"},
      std::move(learners), *store_, clock_, registry_, progress_);
  BoundedQueue<LearnerStep> steps(100);
  const auto push = [&](const std::string& bytes, bool recount) {
    LearnerStep sums{.learner = LearnerIndex(0), .batch = {}, .source_identity = ""};
    sums.batch.kind = stream::StepBatch::Kind::kSums;
    sums.batch.sums = bytes;
    sums.batch.sums_from = "w-" + bytes;
    sums.batch.recount = recount;
    ASSERT_TRUE(steps.Push(std::move(sums)));
  };
  push("a part", false);
  push("right", true);
  push("", true);
  push("wrong", true);
  push("a part", false);
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kRefused);
  EXPECT_EQ(outcome.error().message,
            "learner 'sums', after step 0: worker 'w-wrong' has sent other sums than this process "
            "has of the same records: one of the two is wrong");
  EXPECT_EQ(registry_.AddCounter("tacit_slices_incomparable_total").value(), 1);
  // Predictions of the first part count; those of records that were read here do not come twice.
  EXPECT_EQ(progress_.view(0).events, 7u);
  EXPECT_NEAR(progress_.view(0).calibration, 1, 1e-9);
}

TEST_F(TrainerTest, AnEngineThatCannotBringItsModelHomeEndsTrainingWithNothingCommitted) {
  Make(1.0, 8, std::chrono::hours(1));
  distant_.settling_fails = true;
  const auto outcome = RunSteps(3);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "learner 'ctr', after step 3: the device is lost");
  EXPECT_TRUE(store_->commits.empty());
  EXPECT_EQ(rekeys_, 0) << "nothing was taken from the learner";
}

TEST_F(TrainerTest, AStepThatFailsEndsTrainingAndIsNamed) {
  Make(1.0, 8, std::chrono::hours(1));
  distant_.releasing_fails_at = 4;
  const auto outcome = RunSteps(9);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "learner 'ctr', step 5: the device is lost");
  EXPECT_EQ(outcome.error().code, ErrorCode::kInternal);
  EXPECT_TRUE(store_->commits.empty());
}

TEST_F(TrainerTest, TheStepThatWaitsIsAnnouncedBeforeTheOneInFrontIsTaken) {
  Make(1.0, 8, std::chrono::hours(1));
  ASSERT_TRUE(RunSteps(5));
  ASSERT_EQ(distant_.begun.size(), 5u);
  EXPECT_EQ(distant_.announced,
            std::vector<uint64_t>(distant_.begun.begin() + 1, distant_.begun.end()));
  // Each is withdrawn behind the step in front, before it moves out of the queue.
  EXPECT_EQ(distant_.withdrawn, (std::vector<uint64_t>{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST_F(TrainerTest, WhatIsAnnouncedIsWithdrawnThoughTheStepInFrontFails) {
  Make(1.0, 8, std::chrono::hours(1));
  distant_.releasing_fails_at = 1;
  ASSERT_FALSE(RunSteps(5));
  EXPECT_EQ(distant_.withdrawn, (std::vector<uint64_t>{1, 1, 2, 2}));
}

// At the first rate a parameter is too large to be one; at the second each of them is a number, and
// what the model makes of them is none.
TEST_F(TrainerTest, AModelThatStopsBeingNumbersIsChargedAndNotCommitted) {
  // The weights overflow, or only the products of two layers do. Three layers of smaller ones need
  // not: noise may leave every unit of a layer below zero.
  for (const float rate : {1e30f, 1e22f}) {
    Make({{"ctr", 1, 100}, {"wild", 1, 100, false, rate}}, std::chrono::hours(1), std::nullopt);
    BoundedQueue<LearnerStep> steps(100);
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(steps.Push(MakeStep(i, 32 * i)));
      ASSERT_TRUE(steps.Push(MakeStep(i, 32 * i, 32, 1)));
    }
    steps.Close();
    const auto outcome = trainer_->Run(steps);
    ASSERT_FALSE(outcome) << rate;
    EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("learner 'wild'"));
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("the last 3 steps"));
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("learning_rate"));
    ASSERT_EQ(store_->commits.size(), 1u);
    const store::LearnerCommit& good = store_->commits[0].learners.at(0);
    EXPECT_TRUE(good.rows && good.dense) << "the other learner is as it was";
    const store::LearnerCommit& wild = store_->commits[0].learners.at(1);
    EXPECT_EQ(wild.rows, nullptr);
    EXPECT_EQ(wild.dense, nullptr);
    EXPECT_EQ(wild.charges.at(0).steps, 3u) << "that it went wrong is told";
    EXPECT_EQ(DecodePosition(wild.position)->step, 3u);
  }
}

TEST_F(TrainerTest, RowsOnTheirWayThatAreNoNumbersAreChargedAndNotCommitted) {
  Make(1.0, 8, std::chrono::hours(1));
  distant_.settles_no_numbers = true;
  const auto outcome = RunSteps(3);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
  ASSERT_EQ(store_->commits.size(), 1u);
  const store::LearnerCommit& commit = store_->commits[0].learners.at(0);
  EXPECT_EQ(commit.rows, nullptr);
  EXPECT_EQ(commit.dense, nullptr);
  EXPECT_EQ(commit.charges.at(0).steps, 3u);
}

// One record whose numbers are as large as a float can be.
TEST_F(TrainerTest, AHugeNumberLeavesTheFiguresOfItsDayNumbers) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  BoundedQueue<LearnerStep> steps(10);
  for (uint64_t i = 0; i < 3; ++i) {
    LearnerStep step = MakeStep(i, 32 * i);
    if (i == 1) step.batch.examples.dense[10] = step.batch.examples.dense[11] = 3e38f;
    ASSERT_TRUE(steps.Push(std::move(step)));
  }
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  const auto days = progress_.days(0);
  ASSERT_EQ(days.size(), 1u);
  EXPECT_EQ(days[0].events, 96u);
  EXPECT_LT(days[0].loss_sum, 95 * 5 + 100.0) << "it counts no more than 100";
  EXPECT_GT(days[0].loss_sum, 0);
  EXPECT_TRUE(std::isfinite(progress_.view(0).auc));
}

// Users' counts go into the commit of the steps, as of the last of them.
TEST_F(TrainerTest, UsersAreCountedInTheCommitOfTheirSteps) {
  Make(1.0, 8, std::chrono::hours(1));
  BoundedQueue<LearnerStep> steps(10);
  const auto push = [&](uint64_t index, std::vector<UserUses> uses) {
    LearnerStep step = MakeStep(index, index * 32);
    step.batch.counts_users = true;
    step.batch.uses = std::move(uses);
    ASSERT_TRUE(steps.Push(std::move(step)));
  };
  push(0, {{.user = {1, 1}, .used = 1}, {.user = {2, 2}, .used = 7}});
  push(1, {{.user = {1, 1}, .used = 2}});
  push(2, {});
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  ASSERT_EQ(store_->commits.size(), 1u);
  const auto& allowances = store_->commits[0].learners.at(0).allowances;
  ASSERT_TRUE(allowances);
  EXPECT_EQ(allowances->step, 3u);
  std::map<Hash128, uint32_t> used;
  for (const UserUses& uses : allowances->uses) used[uses.user] = uses.used;
  EXPECT_EQ(used, (std::map<Hash128, uint32_t>{{{1, 1}, 2}, {{2, 2}, 7}}));
  EXPECT_EQ(allowances->uses.size(), 2u);
}

TEST_F(TrainerTest, WithoutUsersNobodyIsCounted) {
  Make(1.0, 8, std::chrono::hours(1));
  ASSERT_TRUE(RunSteps(2));
  EXPECT_FALSE(store_->commits.at(0).learners.at(0).allowances);
}

TEST_F(TrainerTest, AnEmptyStepIsTakenAndCharged) {
  Make(1.0, 8, std::chrono::milliseconds(1000));
  BoundedQueue<LearnerStep> steps(10);
  ASSERT_TRUE(steps.Push(MakeStep(0, 0, 0)));
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  ASSERT_EQ(store_->commits.size(), 1u);
  const auto& learner = store_->commits[0].learners.at(0);
  EXPECT_EQ(learner.charges[0].steps, 1u);
  // Its noise is in the model: its silence does not tell the empty step from a full one.
  const auto& moments = learner.dense->optimizer;
  const auto first_end = moments.begin() + static_cast<ptrdiff_t>(moments.size() / 2);
  EXPECT_EQ(std::count(moments.begin(), first_end, 0.0f), 0);
}

TEST_F(TrainerTest, EveryCommitIsFollowedByANewKey) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  BoundedQueue<LearnerStep> steps(10);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(steps.Push(MakeStep(i, i * 32)));
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  ASSERT_EQ(store_->commits.size(), 3u);
  EXPECT_EQ(rekeys_, 3);
}

// The third step comes only when training has looked for it in vain.
TEST_F(TrainerTest, StepsThatWereWaitedForAreCounted) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  BoundedQueue<LearnerStep> steps(10);
  for (uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(steps.Push(MakeStep(i, i * 32)));
  // The first reading behind the second commit ends the time that the commit took; at the next one
  // the trainer has seen that no step is there.
  clock_.hook = [&, readings = 0]() mutable {
    if (store_->commits.size() < 2 || ++readings != 2) return;
    EXPECT_TRUE(steps.Push(MakeStep(2, 64)));
    steps.Close();
  };
  ASSERT_TRUE(trainer_->Run(steps));
  EXPECT_EQ(store_->commits.size(), 3u);
  const std::string told = registry_.Scrape(metrics::Audience::kOperator);
  EXPECT_NE(told.find("tacit_step_waits_total 1\n"), std::string::npos) << told;
}

// Each figure is that of the thing it is of: steps, their phases, commits, and what is left.
TEST_F(TrainerTest, MetricsAreOfWhatWasDone) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  const auto value = [&](const std::string& name) {
    const std::string page = "\n" + registry_.Scrape(metrics::Audience::kOperator);
    const size_t at = page.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << name << " in " << page;
    return at == std::string::npos ? -1 : std::strtod(&page[at + name.size() + 2], nullptr);
  };
  EXPECT_TRUE(std::isnan(value("tacit_training_loss{learner=\"ctr\"}"))) << "before any step";
  EXPECT_EQ(value("tacit_last_commit_timestamp_seconds"), 0);
  EXPECT_EQ(value("tacit_privacy_epsilon_left{learner=\"ctr\"}"), 8);
  const auto begin = static_cast<double>(clock_.UnixMillis()) / 1000;
  ASSERT_TRUE(RunSteps(3));
  EXPECT_GE(value("tacit_last_commit_timestamp_seconds"), begin);
  EXPECT_LE(value("tacit_last_commit_timestamp_seconds"),
            static_cast<double>(clock_.UnixMillis()) / 1000);
  EXPECT_EQ(value("tacit_steps_committed_total{learner=\"ctr\"}"), 3);
  EXPECT_EQ(value("tacit_step_seconds_count{learner=\"ctr\"}"), 3);
  EXPECT_NEAR(value("tacit_privacy_epsilon_left{learner=\"ctr\"}"),
              8 - value("tacit_privacy_epsilon{learner=\"ctr\"}"), 1e-9);
  double phases = 0;
  for (const std::string_view name : kStepPhaseNames) {
    const double seconds =
        value(fmt::format("tacit_step_phase_seconds_total{{learner=\"ctr\",phase=\"{}\"}}", name));
    EXPECT_GT(seconds, 0) << name;
    phases += seconds;
  }
  EXPECT_LE(phases, value("tacit_step_seconds_sum{learner=\"ctr\"}"));
}

// All passes lie within one commit interval: what is pending is spent as well.
TEST_F(TrainerTest, TheStepThatWouldCrossTheBudgetIsNotTaken) {
  const double sigma = 1.0;
  // Room for two participations of one record, not for three.
  const double epsilon = privacy::GaussianEpsilon(std::sqrt(2.5) / sigma, Delta(1e-6)).value;
  Make(sigma, epsilon, std::chrono::milliseconds(1000));
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t pass = 0; pass < 3; ++pass)
    for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(steps.Push(MakeStep(pass * 4 + i, i * 32)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kBudgetExhausted);
  EXPECT_EQ(trainer_->spent(LearnerIndex(0)), privacy::Spent::kOwn);
  EXPECT_EQ(exhausted_, std::vector<uint16_t>{0}) << "no step need be cut for it any more";
  uint64_t charged = 0;
  for (const auto& commit : store_->commits) charged += commit.learners.at(0).charges[0].steps;
  EXPECT_EQ(charged, 8u);
  EXPECT_LE(store_->Latest()->total().epsilon, epsilon);
}

// Both learn from the same records, each with room for three of its steps; together there is room
// for a mu^2 of 1.6. Nothing is committed before the end: what the other has pending is spent too.
TEST_F(TrainerTest, TheStepThatWouldBringTheTotalOverItsBudgetIsNotTaken) {
  const auto epsilon = [](double mu_squared) {
    return privacy::GaussianEpsilon(std::sqrt(mu_squared), Delta(1e-6)).value;
  };
  const double total = epsilon(1.6);
  Make({{"ctr", 1.0, epsilon(3.5)}, {"small", 2.0, epsilon(0.9)}}, std::chrono::hours(1),
       privacy::TotalBudget{.epsilon = total, .delta = 1e-6});
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t pass = 0; pass < 3; ++pass)
    for (uint16_t learner = 0; learner < 2; ++learner)
      ASSERT_TRUE(steps.Push(MakeStep(pass, 0, 32, learner)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kBudgetExhausted);
  EXPECT_EQ(trainer_->spent(LearnerIndex(0)), privacy::Spent::kTotal);
  EXPECT_EQ(trainer_->spent(LearnerIndex(1)), privacy::Spent::kTotal);
  ASSERT_EQ(store_->commits.size(), 1u);
  // 1 + 1/4, then 1 more is too much, but 1/4 is not; then even that is.
  EXPECT_EQ(store_->commits[0].learners.at(0).charges.at(0).steps, 1u);
  EXPECT_EQ(store_->commits[0].learners.at(1).charges.at(0).steps, 2u);
  EXPECT_NEAR(store_->Latest()->total().epsilon, epsilon(1.5), 1e-9);
  const std::string told = registry_.Scrape(metrics::Audience::kPublic);
  EXPECT_NE(told.find(fmt::format("tacit_privacy_total_epsilon_budget {}", total).substr(0, 42)),
            std::string::npos)
      << told;
  EXPECT_NE(
      told.find("tacit_privacy_total_epsilon " + fmt::format("{}", epsilon(1.5)).substr(0, 8)),
      std::string::npos)
      << told;
}

// Records of one are none of the other's: the total is that of the worse one.
TEST_F(TrainerTest, TheTotalIsOfOneRecord) {
  const double two = privacy::GaussianEpsilon(std::sqrt(1.2), Delta(1e-6)).value;
  Make({{"ctr", 1.0, two}, {"small", 1.0, two}}, std::chrono::hours(1),
       privacy::TotalBudget{.epsilon = two, .delta = 1e-6});
  BoundedQueue<LearnerStep> steps(100);
  for (uint16_t learner = 0; learner < 2; ++learner)
    for (uint64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(steps.Push(MakeStep(i, (learner * 3 + i) * 32, 32, learner)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kEndOfSource);
}

// A clip that adapts was paid for; a restart must not begin anew, nor from anything uncommitted.
TEST_F(TrainerTest, WhatAMechanismReleasedIsCommittedAndGoneOnFrom) {
  Make({{"ctr", 1.0, 8, true}}, std::chrono::milliseconds(0), std::nullopt);
  ASSERT_TRUE(RunSteps(3));
  ASSERT_EQ(store_->commits.size(), 3u);
  std::set<std::string> states;
  for (const auto& commit : store_->commits) {
    ASSERT_NE(commit.learners.at(0).released, nullptr);
    states.insert(*commit.learners.at(0).released);
  }
  EXPECT_EQ(states.size(), 3u);
  const auto last = store_->commits.back().learners.at(0).released;
  EXPECT_EQ(mechanism_->SaveState(), *last);

  store_ = std::make_unique<RememberingStore>();
  const auto again = MakeLearner({"ctr", 1.0, 8, true}, 0);
  EXPECT_NE(mechanism_->SaveState(), *last);
  ASSERT_TRUE(again->LoadReleased(*last));
  EXPECT_EQ(mechanism_->SaveState(), *last);
  EXPECT_EQ(again->TakeReleased(), nullptr) << "it is committed already";
}

TEST_F(TrainerTest, AStateThatIsNoneOfTheMechanismNamesTheLearner) {
  store_ = std::make_unique<RememberingStore>();
  const Status loaded = MakeLearner({"ctr", 1.0, 8, true}, 0)->LoadReleased("torn");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorruption);
  EXPECT_NE(loaded.error().message.find("learner 'ctr'"), std::string::npos)
      << loaded.error().message;
}

// A learner that takes no step in this run is where its last commit left it.
TEST_F(TrainerTest, GoesOnFromThePositionsThatItIsGiven) {
  stream::Position reached;
  reached.step = 2;
  reached.next = {{0, 64, 64}};
  Make({{"ctr", 1, 100}, {.id = "small", .sigma = 1, .epsilon = 100, .position = reached}},
       std::chrono::milliseconds(0), std::nullopt);
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(steps.Push(MakeStep(i, i * 32)));
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  std::vector<uint64_t> offsets;
  for (const auto& advised : advised_) {
    ASSERT_EQ(advised.size(), 1u);
    offsets.push_back(advised[0].offset);
  }
  EXPECT_EQ(offsets, (std::vector<uint64_t>{32, 64, 64}));
}

TEST_F(TrainerTest, AMechanismThatReleasesNothingToGoOnFromWritesNoState) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  ASSERT_TRUE(RunSteps(2));
  for (const auto& commit : store_->commits) EXPECT_EQ(commit.learners.at(0).released, nullptr);
}

TEST_F(TrainerTest, AFailedCommitEndsTrainingWithItsReason) {
  Make(1.0, 8, std::chrono::milliseconds(0));
  store_->fails = true;
  BoundedQueue<LearnerStep> steps(10);
  ASSERT_TRUE(steps.Push(MakeStep(0, 0)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "no space left on device");
}

TEST_F(TrainerTest, StopCommitsWhatWasLearnt) {
  Make(1.0, 8, std::chrono::hours(1));
  BoundedQueue<LearnerStep> steps(10);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(steps.Push(MakeStep(i, i * 32)));
  std::thread stopper([&] {
    while (progress_.view(0).steps < 3) std::this_thread::yield();
    trainer_->RequestStop();
    steps.Close();
  });
  const auto outcome = trainer_->Run(steps);
  stopper.join();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kStopped);
  ASSERT_EQ(store_->commits.size(), 1u);
  EXPECT_EQ(store_->commits[0].learners.at(0).charges[0].steps, 3u);
}

}  // namespace
}  // namespace tacit::train
