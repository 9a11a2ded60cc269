// Tests the release of a sequence model at a period's opening: it is made once, about all users of
// the period, and gone on from to the last bit wherever the process goes down.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "model/sequence/popularity.h"
#include "privacy/query_table.h"
#include "support/silent_noise.h"
#include "train/counts/item_histogram.h"
#include "train/counts/transitions_release.h"
#include "train/sequence/sequence_learner.h"

namespace tacit::train {
namespace {

using Start = SequenceStartOptions;
using Batch = stream::StepBatch;

constexpr uint32_t kStarted = 12, kPeople = 30, kStepsOfPeriod = 3, kPeriods = 2;
const std::atomic<bool> kKeepOn = false;

// In each period the people go on round circles of items: three items each.
uint32_t Place(uint32_t user, uint32_t place) { return (5 * user + place * place) % kStarted; }

Batch BatchOf(uint32_t period, Batch::Kind kind, uint32_t every = 1) {
  Batch batch;
  batch.kind = kind;
  for (uint32_t u = 0; u < kPeople; u += every) {
    for (uint32_t i = 3 * period; i < 3 * period + 3; ++i) {
      batch.examples.user.Append(fmt::format("user-{}", u));
      batch.examples.item.push_back(Place(u, i));
      batch.examples.label.push_back(1);
      batch.examples.timestamp_ms.push_back(1);
      batch.unit_of.push_back(batch.units);
    }
    ++batch.units;
  }
  return batch;
}

// The contents of a store after a commit.
struct Committed {
  uint64_t step = 0;
  std::map<Hash128, std::vector<store::HistoryItem>> histories;
  std::shared_ptr<const store::DenseState> dense;
  std::shared_ptr<const std::string> released;
};

class SequenceStartTest : public testing::Test {
 protected:
  SequenceLearnerOptions Options(Start::Kind kind, double kappa = 0) const {
    SequenceLearnerOptions options{.id = "next",
                                   .index = LearnerIndex(0),
                                   .training = {},
                                   .start = {.kind = kind, .noise_multiplier = 2, .forget = 0.5},
                                   .histories = {.catalogue = kStarted, .items_most = 100}};
    SequenceTrainingOptions& training = options.training;
    training.model.catalogue = kStarted;
    training.model.length = 6;
    training.model.width = 8;
    training.model.blocks = 1;
    training.model.re_attention.kappa = static_cast<float>(kappa);
    training.expected_batch = kPeople;
    training.schedule = {.steps = 4, .warm_up = 1};
    training.optimizer.average_decay = 0.5;
    training.privacy.sigma = 1;
    if (kind == Start::Kind::kCounts) options.start.catalogue = catalogue_;
    return options;
  }
  // A learner that goes on from the commit, which outlives it.
  std::unique_ptr<SequenceLearner> Make(const SequenceLearnerOptions& options, Committed& at,
                                        bool load = true) {
    EXPECT_TRUE(CheckOptions(options));
    auto learner = std::make_unique<SequenceLearner>(
        options,
        [&at](std::span<store::UserHistory> users) -> Result<uint64_t> {
          for (store::UserHistory& user : users) user.items = at.histories[user.user];
          return at.step;
        },
        std::make_unique<noise::SilentNoise>(), *backend_, at.dense.get(), at.step);
    if (load && at.released) {
      const Status loaded = learner->LoadReleased(*at.released);
      EXPECT_TRUE(loaded) << loaded.error().message;
    }
    return learner;
  }
  static void Commit(SequenceLearner& learner, Committed* at) {
    at->dense = learner.CopyDense();
    if (auto released = learner.TakeReleased()) at->released = std::move(released);
    const auto histories = learner.TakeHistories();
    ASSERT_TRUE(histories);
    at->step = histories->step;
    for (const store::UserHistory& user : histories->appended) {
      auto& kept = at->histories[user.user];
      kept.insert(kept.end(), user.items.begin(), user.items.end());
    }
  }
  static void Preview(SequenceLearner& learner, uint32_t period, Batch::Kind kind) {
    StepReport report;
    ASSERT_TRUE(learner.Preview(BatchOf(period, kind), &report));
  }
  // Takes a step of a period, with its previews where it is the first since the start.
  static void Take(SequenceLearner& learner, uint64_t step, bool since_start, uint32_t every = 1) {
    const auto period = static_cast<uint32_t>(step / kStepsOfPeriod);
    const bool first = step % kStepsOfPeriod == 0;
    if (first || since_start)
      Preview(learner, period, first ? Batch::Kind::kPreview : Batch::Kind::kPreviewAgain);
    Batch batch =
        BatchOf(period, first ? Batch::Kind::kPeriodFirst : Batch::Kind::kPeriodNext, every);
    batch.after.step = step + 1;
    batch.after.period_step = (step + 1) % kStepsOfPeriod;
    StepReport report;
    const auto taken = learner.TakeStep(batch, kKeepOn, &report);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_TRUE(*taken);
  }
  // The period's histories, with the items from before.
  static StepHistories PeriodOf(uint32_t period) {
    StepHistories histories;
    histories.histories.catalogue = kStarted;
    for (uint32_t u = 0; u < kPeople; ++u) {
      for (uint32_t i = 0; i < 3 * period + 3; ++i)
        histories.histories.items.push_back(Place(u, i));
      histories.histories.end.push_back(histories.histories.items.size());
      histories.before.push_back(3 * period);
    }
    return histories;
  }
  std::string Refusal(const std::function<void(SequenceLearnerOptions*)>& change,
                      Start::Kind kind = Start::Kind::kPopularity) {
    SequenceLearnerOptions options = Options(kind);
    change(&options);
    const Status status = CheckOptions(options);
    return status ? "" : status.error().message;
  }

  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  std::shared_ptr<const model::transitions::PublicItems> catalogue_ =
      std::make_shared<const model::transitions::PublicItems>(kStarted);
};

TEST_F(SequenceStartTest, EveryPeriodIsOpenedOnceWhoeverIsInItsFirstStep) {
  Committed store;
  const auto learner = Make(Options(Start::Kind::kPopularity), store);
  ASSERT_TRUE(learner->opening_charge());
  EXPECT_DOUBLE_EQ(learner->opening_charge()->MuSquared(), 0.25);
  EXPECT_EQ(learner->opening_charge()->sampling_rate, 1) << "all users of the period are in it";
  EXPECT_TRUE(privacy::IsOfPeriod(*learner->opening_charge()));
  model::RunningItems running(kStarted);
  noise::SilentNoise silence;
  for (uint64_t step = 0; step < kPeriods * kStepsOfPeriod; ++step) {
    Take(*learner, step, step == 0, 2);
    const auto released = learner->TakeReleased();
    ASSERT_EQ(released != nullptr, step % kStepsOfPeriod == 0) << step;
    if (!released) continue;
    const StepHistories period = PeriodOf(static_cast<uint32_t>(step / kStepsOfPeriod));
    const ItemHistogram histogram = ReleaseItems(period.histories, period.before,
                                                 std::numeric_limits<size_t>::max(), 0.5, silence);
    running.Add(histogram.sums, histogram.stddev, kPeople, 0.5);
    EXPECT_TRUE(*released == running.Encode()) << step;
  }
}

TEST_F(SequenceStartTest, CountsAreThoseOfThePeriodsPairs) {
  Committed store;
  const auto learner = Make(Options(Start::Kind::kCounts), store);
  model::transitions::ReleasedModel model(*catalogue_, {}, workers_);
  noise::SilentNoise silence;
  for (uint64_t step = 0; step < kPeriods * kStepsOfPeriod; ++step) {
    Take(*learner, step, step == 0);
    const auto released = learner->TakeReleased();
    if (!released) continue;
    const StepHistories period = PeriodOf(static_cast<uint32_t>(step / kStepsOfPeriod));
    ASSERT_TRUE(ReleaseTransitionsPeriod({.histories = period.histories, .known = period.before},
                                         0.5, silence, workers_, &model));
    EXPECT_TRUE(*released == model.Encode()) << step;
  }
}

// Killed after any step, in the middle of a period too.
TEST_F(SequenceStartTest, WhereverItIsKilledItGoesOnToTheLastBit) {
  for (const auto& [kind, kappa] : {std::pair{Start::Kind::kPopularity, 0.0},
                                    {Start::Kind::kPopularity, 1.0},
                                    {Start::Kind::kCounts, 0.0}}) {
    const SequenceLearnerOptions options = Options(kind, kappa);
    constexpr uint64_t kAll = kPeriods * kStepsOfPeriod;
    Committed whole;
    const auto uninterrupted = Make(options, whole);
    for (uint64_t step = 0; step < kAll; ++step) Take(*uninterrupted, step, step == 0);
    Commit(*uninterrupted, &whole);
    for (uint64_t killed = 1; killed < kAll; ++killed) {
      const auto end = [&](bool load) {
        Committed store;
        auto learner = Make(options, store);
        for (uint64_t step = 0; step < killed; ++step) Take(*learner, step, step == 0);
        Commit(*learner, &store);
        learner = Make(options, store, load);
        for (uint64_t step = killed; step < kAll; ++step) Take(*learner, step, step == killed);
        Commit(*learner, &store);
        return store;
      };
      const Committed again = end(true);
      EXPECT_EQ(again.dense->parameters, whole.dense->parameters) << killed;
      EXPECT_EQ(again.dense->optimizer, whole.dense->optimizer) << killed;
      EXPECT_TRUE(*again.released == *whole.released) << killed;
      // Planted: the state is not read.
      EXPECT_NE(end(false).dense->parameters, whole.dense->parameters) << killed;
    }
  }
}

TEST_F(SequenceStartTest, AnAbandonedOpeningDidNotHappen) {
  Committed store;
  const auto learner = Make(Options(Start::Kind::kPopularity), store);
  Preview(*learner, 0, Batch::Kind::kPreview);
  const auto before = learner->CopyDense();
  const std::atomic<bool> abandon = true;
  StepReport report;
  const auto taken = learner->TakeStep(BatchOf(0, Batch::Kind::kPeriodFirst), abandon, &report);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(learner->TakeReleased(), nullptr);
  EXPECT_EQ(learner->CopyDense()->parameters, before->parameters);
}

// A model that has learnt nothing yet recommends what is popular, to strangers too.
TEST_F(SequenceStartTest, LogitsBeginAsWhatIsPopular) {
  SequenceLearnerOptions options = Options(Start::Kind::kPopularity);
  options.training.optimizer.learning_rate = 0;
  Committed store;
  const auto learner = Make(options, store);
  Batch preview = BatchOf(0, Batch::Kind::kPreview);
  for (size_t i = 0; i < preview.examples.item.size(); i += 3) preview.examples.item[i] = 7;
  StepReport report;
  ASSERT_TRUE(learner->Preview(preview, &report));
  Batch first = BatchOf(0, Batch::Kind::kPeriodFirst);
  first.after.step = 1;
  ASSERT_TRUE(learner->TakeStep(first, kKeepOn, &report));
  model::TrainedScorer scorer;
  learner->Publish(&scorer);
  std::vector<float> scores(kStarted);
  ASSERT_TRUE(scorer.Score({}, scores));
  EXPECT_EQ(std::ranges::max_element(scores) - scores.begin(), 7);
}

TEST_F(SequenceStartTest, StatesThatAreNotItsOwnAreRefusedByName) {
  Committed store;
  const auto popular = Make(Options(Start::Kind::kPopularity), store);
  Take(*popular, 0, true);
  const std::string state = *popular->TakeReleased();
  const auto counts = Make(Options(Start::Kind::kCounts), store);
  const auto none = Make(Options(Start::Kind::kNone), store);
  EXPECT_FALSE(none->opening_charge());
  for (const auto& [learner, bytes] :
       {std::pair{counts.get(), state},
        {none.get(), state},
        {popular.get(), state.substr(0, state.size() - 1)},
        {popular.get(), state + "x"},
        {popular.get(), std::string()},
        {popular.get(), model::RunningItems(kStarted + 1).Encode()}}) {
    const Status loaded = learner->LoadReleased(bytes);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find("learner 'next'"), std::string::npos);
  }
  EXPECT_TRUE(popular->LoadReleased(state));
}

TEST_F(SequenceStartTest, WhatDoesNotGoTogetherIsRefused) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(Refusal([](auto*) {}), "");
  EXPECT_TRUE(has(Refusal([](auto* o) { o->training.model.label_smoothing = 0.1f; }), "smoothing"));
  EXPECT_TRUE(has(Refusal([](auto* o) { o->training.model.negatives = 4; }), "negatives"));
  EXPECT_TRUE(has(Refusal([](auto* o) { o->start.noise_multiplier = 0; }), "both noised"));
  EXPECT_TRUE(has(Refusal([](auto* o) { o->start.forget = 2; }), "forget 2"));
  EXPECT_TRUE(has(Refusal([](auto* o) { o->start.counts_weight = -1; }, Start::Kind::kCounts),
                  "counts_weight -1"));
  EXPECT_TRUE(has(Refusal([](auto* o) { o->start.catalogue = nullptr; }, Start::Kind::kCounts),
                  "catalogue"));
}

}  // namespace
}  // namespace tacit::train
