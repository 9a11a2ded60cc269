// The step loop against a store that only remembers: what it commits, what it refuses, when it
// ends.
#include "train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include "mechanism/private_step.h"
#include "noise/noise.h"
#include "privacy/gaussian.h"
#include "train/click_learner.h"
#include "train/distant_engine.h"
#include "train/host_click_engine.h"
#include "train/memory_rows.h"
#include "train/position.h"
#include "train/remembering_store.h"

namespace tacit::train {
namespace {

RowSpace SmallSpace() {
  RowSpace space;
  space.AddTable("a", 40, 3);
  space.AddTable("b", 10, 2);
  return space;
}

// The product's noise; counts its keys.
class CountingNoise final : public noise::NoiseSource {
 public:
  explicit CountingNoise(int* rekeys) : rekeys_(rekeys) {}
  void AddGaussian(double stddev, std::span<float> values) override {
    noise_->AddGaussian(stddev, values);
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    noise_->AddGridGaussian(stddev, values);
  }
  void FillGaussian(std::span<double> out) override { noise_->FillGaussian(out); }
  double Uniform() override { return noise_->Uniform(); }
  bool Bernoulli(double p) override { return noise_->Bernoulli(p); }
  double Gumbel() override { return noise_->Gumbel(); }
  void FillKey(std::span<uint8_t, 32> key) override { noise_->FillKey(key); }
  uint64_t GeometricSkip(double p) override { return noise_->GeometricSkip(p); }
  double GaussianTail(double lower) override { return noise_->GaussianTail(lower); }
  void Rekey() override {
    ++*rekeys_;
    noise_->Rekey();
  }

 private:
  const std::unique_ptr<noise::NoiseSource> noise_ = noise::MakeNoiseSource();
  int* const rekeys_;
};

// The system's time; something may happen whenever it is looked at.
class HookedClock final : public Clock {
 public:
  TimePoint Now() const override {
    if (hook) hook();
    return SystemClock().Now();
  }
  int64_t UnixMillis() const override { return SystemClock().UnixMillis(); }

  std::function<void()> hook;
};

// A trainer over random steps of 32 events, DP-AdaFEST with this noise.
class TrainerTest : public testing::Test {
 protected:
  explicit TrainerTest() {
    workers_ = std::make_unique<WorkerPool>(WorkerPool::Options{.workers = 1});
    backend_ = ops::MakeCpuBackend(*workers_);
  }

  void Make(double sigma, double epsilon, std::chrono::milliseconds interval) {
    Make({{"ctr", sigma, epsilon}}, interval, std::nullopt);
  }

  struct Setup {
    std::string id;
    double sigma = 0, epsilon = 0;
    bool adapts = false;  // its clip follows the norms
    float rate = OptimizerOptions().learning_rate;
    stream::Position position = {};  // of its last commit
  };
  void Make(const std::vector<Setup>& setups, std::chrono::milliseconds interval,
            std::optional<privacy::TotalBudget> total) {
    store_ = std::make_unique<RememberingStore>();
    TrainerOptions options{.budgets = {},
                           .total_budget = total,
                           .topic = "log",
                           .commit_interval = interval,
                           .idle_priority = false};
    options.advise = [this](std::span<const stream::PartitionOffset> reached,
                            const store::Snapshot&) {
      advised_.emplace_back(reached.begin(), reached.end());
    };
    options.on_published = [this] { ++published_; };
    options.on_exhausted = [this](LearnerIndex learner) { exhausted_.push_back(learner.value); };
    std::vector<ResumedLearner> learners;
    for (const Setup& setup : setups) {
      learners.push_back({MakeLearner(setup, learners.size()), setup.position});
      options.budgets.push_back({.epsilon = setup.epsilon, .delta = 1e-6});
    }
    trainer_ = std::make_unique<Trainer>(std::move(options), std::move(learners), *store_, clock_,
                                         registry_, progress_);
  }

  std::unique_ptr<Learner> MakeLearner(const Setup& setup, size_t index) {
    ClickOptions options{
        .id = setup.id,
        .index = LearnerIndex(static_cast<uint16_t>(index)),
        .model = {.space = SmallSpace(), .dense_width = 2, .hidden = {8, 4}},
        .seed = 3,
        .optimizer = {.learning_rate = setup.rate, .row_learning_rate = setup.rate}};
    space_ = options.model.space;
    const model::Pctr shape(options.model, *backend_);
    store_->Add(setup.id, MakeRowLayout(options, shape));
    const double sigma = setup.sigma * std::sqrt(2.0);
    const mechanism::QuantileOptions quantile = {.sigma_query = 10, .expected_batch = 32};
    auto mechanism = mechanism::MakePrivateStep(
        space_, mechanism::MakeThresholdRows(space_, {.sigma = sigma, .clip = 1, .threshold = 1}),
        setup.adapts ? mechanism::MakeQuantileClipper(quantile, sigma)
                     : mechanism::MakeFlatClipper(1, sigma),
        {.sigma_gradient = sigma, .expected_batch = 32});
    mechanism_ = mechanism.get();
    auto noise = std::make_unique<CountingNoise>(&rekeys_);
    auto engine = std::make_unique<DistantEngine>(
        MakeHostClickEngine({options.model, options.optimizer}, *mechanism, *noise, *backend_,
                            store_->working_rows(options.index), InitialDense(options, shape)),
        &distant_);
    return std::make_unique<ClickLearner>(options, std::move(mechanism), std::move(noise),
                                          std::move(engine));
  }

  // Runs this many steps; each is a commit.
  Result<Outcome> RunSteps(uint64_t count) {
    BoundedQueue<LearnerStep> steps(100);
    for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(steps.Push(MakeStep(i, i * 32)));
    steps.Close();
    return trainer_->Run(steps);
  }

  LearnerStep MakeStep(uint64_t index, uint64_t first_offset, size_t events = 32,
                       uint16_t learner = 0) {
    LearnerStep step;
    step.learner = LearnerIndex(learner);
    step.source_identity = "identity " + std::to_string(index);
    event::Batch& batch = step.batch.examples;
    batch.dense_width = 2;
    batch.slots = 2;
    for (size_t i = 0; i < events; ++i) {
      batch.offset.push_back(first_offset + i);
      batch.timestamp_ms.push_back(0);
      batch.label.push_back(static_cast<float>(random_() % 2));
      batch.dense.insert(batch.dense.end(), {1.0f, 0.5f});
      batch.row.insert(batch.row.end(), {random_() % 40, 40 + random_() % 10});
      const auto end = static_cast<uint32_t>(batch.row.size());
      batch.slot_end.insert(batch.slot_end.end(), {end - 1, end});
      step.batch.unit_of.push_back(static_cast<uint32_t>(i));
    }
    step.batch.units = static_cast<uint32_t>(events);
    step.batch.ranges = {{0, first_offset, first_offset + 32}};
    step.batch.after.step = index + 1;
    step.batch.after.next = {{0, first_offset + 32, first_offset + 32}};
    return step;
  }

  std::mt19937_64 random_{11};
  HookedClock clock_;
  DistantEngine::Record distant_;
  metrics::Registry registry_;
  Progress progress_{2};
  RowSpace space_;
  int rekeys_ = 0;
  std::vector<uint16_t> exhausted_;
  size_t published_ = 0;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<RememberingStore> store_;
  std::unique_ptr<Trainer> trainer_;
  mechanism::Mechanism* mechanism_ = nullptr;                  // of the learner made last
  std::vector<std::vector<stream::PartitionOffset>> advised_;  // commit by commit
};

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

TEST_F(TrainerTest, AnEngineThatCannotBringItsModelHomeEndsTrainingWithNothingCommitted) {
  Make(1.0, 8, std::chrono::hours(1));
  distant_.settling_fails = true;
  const auto outcome = RunSteps(3);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "the device is lost");
  EXPECT_TRUE(store_->commits.empty());
  EXPECT_EQ(rekeys_, 0) << "nothing was taken from the learner";
}

TEST_F(TrainerTest, TheStepThatWaitsIsAnnouncedBeforeTheOneInFrontIsTaken) {
  Make(1.0, 8, std::chrono::hours(1));
  ASSERT_TRUE(RunSteps(5));
  ASSERT_EQ(distant_.begun.size(), 5u);
  EXPECT_EQ(distant_.announced,
            std::vector<uint64_t>(distant_.begun.begin() + 1, distant_.begun.end()));
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
  clock_.hook = [&, pushed = false]() mutable {
    if (pushed || store_->commits.size() < 2) return;
    pushed = true;
    EXPECT_TRUE(steps.Push(MakeStep(2, 64)));
    steps.Close();
  };
  ASSERT_TRUE(trainer_->Run(steps));
  EXPECT_EQ(store_->commits.size(), 3u);
  const std::string told = registry_.Scrape(metrics::Audience::kOperator);
  EXPECT_NE(told.find("tacit_step_waits_total 1\n"), std::string::npos) << told;
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
  EXPECT_EQ(trainer_->spent(LearnerIndex(0)), Spent::kOwn);
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
  EXPECT_EQ(trainer_->spent(LearnerIndex(0)), Spent::kTotal);
  EXPECT_EQ(trainer_->spent(LearnerIndex(1)), Spent::kTotal);
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
