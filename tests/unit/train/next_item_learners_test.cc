// The learners of the next item in the step loop's hands: each step is what the room's own trainers
// make of the same histories, nothing happens in one that is abandoned, and what was committed is
// resumed from to the last bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "model/carriers/carriers.h"
#include "support/silent_noise.h"
#include "train/counts/transitions_learner.h"
#include "train/counts/transitions_release.h"
#include "train/sequence/sequence_learner.h"

namespace tacit::train {
namespace {

constexpr uint32_t kCatalogue = 12, kUsers = 30;
const std::atomic<bool> kGoOn = false;

// User u goes round a circle of items; each step brings a number of them.
uint32_t ItemOf(uint32_t user, uint32_t place) { return (5 * user + place) % kCatalogue; }

stream::StepBatch StepOf(uint64_t step, uint32_t items) {
  stream::StepBatch batch;
  batch.examples.partition = 0;
  for (uint32_t u = 0; u < kUsers; ++u) {
    for (uint32_t i = 0; i < items; ++i) {
      batch.examples.user.Append(fmt::format("user-{}", u));
      batch.examples.item.push_back(ItemOf(u, static_cast<uint32_t>(step) * items + i));
      batch.examples.label.push_back(1);
      batch.examples.timestamp_ms.push_back(1);
      batch.unit_of.push_back(u);
    }
  }
  batch.units = kUsers;
  batch.after.step = step + 1;
  return batch;
}

// The same users' histories up to and with this step.
model::Histories UpTo(uint64_t step, uint32_t items) {
  model::Histories histories;
  histories.catalogue = kCatalogue;
  for (uint32_t u = 0; u < kUsers; ++u) {
    for (uint32_t i = 0; i < (step + 1) * items; ++i) histories.items.push_back(ItemOf(u, i));
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

class NextItemLearners : public ::testing::Test {
 protected:
  RecentHistories::Reader Reader() {
    return [this](std::span<store::UserHistory> users) -> Result<uint64_t> {
      for (store::UserHistory& user : users) user.items = stored_[user.user];
      return step_;
    };
  }
  void Commit(Learner& learner) {
    const auto histories = learner.TakeHistories();
    if (!histories) return;
    step_ = histories->step;
    for (const store::UserHistory& user : histories->appended)
      stored_[user.user].insert(stored_[user.user].end(), user.items.begin(), user.items.end());
  }
  static RecentHistoriesOptions Histories() { return {.catalogue = kCatalogue, .items_most = 100}; }

  SequenceTrainingOptions Training() const {
    SequenceTrainingOptions options;
    options.model.catalogue = kCatalogue;
    options.model.length = 6;
    options.model.width = 8;
    options.model.blocks = 1;
    options.expected_batch = kUsers;
    options.optimizer.kind = OptimizerNamed("adam");
    options.optimizer.average_decay = 0.5;
    options.privacy.sigma = 1;
    options.sum_map = sum_map_;
    return options;
  }
  std::unique_ptr<SequenceLearner> MakeSequence(const store::DenseState* resume = nullptr,
                                                uint64_t steps = 0) {
    return std::make_unique<SequenceLearner>(SequenceLearnerOptions{.id = "next",
                                                                    .index = LearnerIndex(0),
                                                                    .training = Training(),
                                                                    .histories = Histories()},
                                             Reader(), std::make_unique<noise::SilentNoise>(),
                                             *backend_, resume, steps);
  }
  std::unique_ptr<TransitionsLearner> MakeTransitions(double noise_multiplier) {
    return std::make_unique<TransitionsLearner>(
        TransitionsLearnerOptions{.id = "counts",
                                  .index = LearnerIndex(0),
                                  .catalogue = catalogue_,
                                  .model = {},
                                  .noise_multiplier = noise_multiplier,
                                  .histories = Histories()},
        Reader(), std::make_unique<noise::SilentNoise>(), workers_);
  }
  StepReport MustStep(Learner& learner, const stream::StepBatch& batch) {
    StepReport report;
    const auto taken = learner.TakeStep(batch, kGoOn, &report);
    EXPECT_TRUE(taken && *taken);
    return report;
  }

  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  std::shared_ptr<const model::transitions::PublicItems> catalogue_ =
      std::make_shared<const model::transitions::PublicItems>(kCatalogue);
  model::SumMapOptions sum_map_;
  uint64_t step_ = 0;
  std::map<Hash128, std::vector<store::HistoryItem>> stored_;
};

// Items of earlier steps are read, and not predicted again.
TEST_F(NextItemLearners, ASequenceStepIsTheTrainersOnTheSameHistories) {
  const auto learner = MakeSequence();
  std::vector<float> expected;
  std::vector<float> state;
  for (uint64_t step = 0; step < 3; ++step) {
    const StepReport report = MustStep(*learner, StepOf(step, 3));
    EXPECT_EQ(report.examples, 3 * kUsers);
    EXPECT_EQ(report.ranked.asked, step == 0 ? 0 : kUsers);  // nothing was before the first
    const model::Histories histories = UpTo(step, 3);
    SequenceStepper stepper(Training(), {}, *backend_, std::make_unique<noise::SilentNoise>());
    if (step > 0) stepper.Resume(expected, state, step);
    std::vector<uint64_t> everybody(kUsers);
    for (uint64_t u = 0; u < kUsers; ++u) everybody[u] = u;
    const std::vector<uint32_t> known(kUsers, static_cast<uint32_t>(3 * step));
    const auto units = [&](std::span<const uint32_t> of) {
      return model::HistoryUnits(stepper.model().layout().options(), histories, everybody, of);
    };
    SequenceStepReport ignored;
    if (step == 2) {
      // Planted: everything is predicted at every step.
      SequenceStepper fault(Training(), {}, *backend_, std::make_unique<noise::SilentNoise>());
      fault.Resume(expected, state, step);
      ASSERT_TRUE(fault.Step(units({}), &ignored));
      EXPECT_FALSE(std::ranges::equal(fault.parameters(), learner->CopyDense()->parameters));
    }
    ASSERT_TRUE(stepper.Step(units(known), &ignored));
    expected.assign(stepper.parameters().begin(), stepper.parameters().end());
    state.assign(stepper.optimizer_state().begin(), stepper.optimizer_state().end());
    EXPECT_EQ(learner->CopyDense()->parameters, expected) << "step " << step;
    EXPECT_EQ(learner->CopyDense()->optimizer, state) << "step " << step;
    if (step == 1) Commit(*learner);  // histories come from the store, or from what is pending
  }
}

TEST_F(NextItemLearners, AnAbandonedStepDidNotHappen) {
  const auto learner = MakeSequence();
  MustStep(*learner, StepOf(0, 3));
  Commit(*learner);
  const auto before = learner->CopyDense();
  const std::atomic<bool> abandon = true;
  StepReport report;
  const auto taken = learner->TakeStep(StepOf(1, 3), abandon, &report);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(learner->CopyDense()->parameters, before->parameters);
  EXPECT_FALSE(learner->TakeHistories());
  const auto counts = MakeTransitions(1);
  const auto counted = counts->TakeStep(StepOf(1, 3), abandon, &report);
  ASSERT_TRUE(counted);
  EXPECT_FALSE(*counted);
  EXPECT_EQ(counts->TakeReleased(), nullptr);
  EXPECT_FALSE(counts->TakeHistories());
}

// With carriers it does not go on so by chance: those of another step lead elsewhere.
TEST_F(NextItemLearners, ASequenceModelGoesOnToTheLastBit) {
  using Source = model::CarrierOptions::Source;
  const model::SumMapOptions kinds[] = {
      {},
      model::CarriersOf({.rank = 2, .power_steps = 2, .warm_up_steps = 3}),
      model::CarriersOf({.source = Source::kRandom, .rank = 2})};
  for (const auto& carriers : kinds) {
    sum_map_ = carriers;
    step_ = 0;
    stored_.clear();
    const auto whole = MakeSequence();
    std::shared_ptr<const store::DenseState> half;
    for (uint64_t step = 0; step < 4; ++step) {
      MustStep(*whole, StepOf(step, 2));
      if (step != 1) continue;
      half = whole->CopyDense();
      Commit(*whole);
    }
    const auto go_on = [&](uint64_t steps_taken) {
      const auto again = MakeSequence(half.get(), steps_taken);
      for (uint64_t step = 2; step < 4; ++step) MustStep(*again, StepOf(step, 2));
      return again->CopyDense();
    };
    EXPECT_EQ(go_on(2)->parameters, whole->CopyDense()->parameters);
    EXPECT_EQ(go_on(2)->optimizer, whole->CopyDense()->optimizer);
    if (carriers) {
      EXPECT_NE(go_on(0)->parameters, whole->CopyDense()->parameters);
    }
  }
}

TEST_F(NextItemLearners, APeriodOfCountsIsReleasedAndGoneOnFrom) {
  const auto learner = MakeTransitions(2);
  EXPECT_EQ(learner->charge().mechanism, privacy::MechanismKind::kCounts);
  EXPECT_DOUBLE_EQ(learner->charge().MuSquared(), 0.25);
  model::transitions::ReleasedModel model(*catalogue_, {}, workers_);
  noise::SilentNoise silent;
  std::string state;
  for (uint64_t step = 0; step < 3; ++step) {
    MustStep(*learner, StepOf(step, 4));
    const model::Histories histories = UpTo(step, 4);
    const std::vector<uint32_t> known(kUsers, static_cast<uint32_t>(4 * step));
    ASSERT_TRUE(ReleaseTransitionsPeriod({.histories = histories, .known = known}, 0.5, silent,
                                         workers_, &model));
    const auto taken = learner->TakeReleased();
    ASSERT_NE(taken, nullptr);
    EXPECT_TRUE(*taken == model.Encode()) << "step " << step;
    EXPECT_EQ(learner->TakeReleased(), nullptr);
    state = *taken;
  }
  Commit(*learner);
  const auto again = MakeTransitions(2);
  ASSERT_TRUE(again->LoadReleased(state));
  EXPECT_EQ(again->TakeReleased(), nullptr);
  MustStep(*again, StepOf(3, 4));
  MustStep(*learner, StepOf(3, 4));
  EXPECT_TRUE(*again->TakeReleased() == *learner->TakeReleased());
  const Status damaged = again->LoadReleased(state.substr(0, state.size() / 2));
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("counts"), std::string::npos);
}

// No user in a period: it is released and charged all the same, and histories stay what they were.
TEST_F(NextItemLearners, AnEmptyPeriodIsOneLikeAnyOther) {
  const auto counts = MakeTransitions(2);
  stream::StepBatch empty;
  empty.after.step = 1;
  MustStep(*counts, empty);
  EXPECT_NE(counts->TakeReleased(), nullptr);
  const auto histories = counts->TakeHistories();
  ASSERT_TRUE(histories);
  EXPECT_TRUE(histories->appended.empty());
  EXPECT_EQ(histories->step, 1u);
  const auto next = MakeSequence();
  MustStep(*next, empty);
}

// Circles are foreseen, once they have been counted.
TEST_F(NextItemLearners, WhatWasLearntIsHitBeforeItIsLearntAgain) {
  const auto counts = MakeTransitions(0);
  MustStep(*counts, StepOf(0, 3));
  const StepReport report = MustStep(*counts, StepOf(1, 3));
  EXPECT_EQ(report.ranked.asked, kUsers);
  EXPECT_EQ(report.ranked.model.hits, kUsers);
}

}  // namespace
}  // namespace tacit::train
