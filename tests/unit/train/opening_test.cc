// A release at a period's opening is charged once, with the period's first step, whenever the
// process goes down: through a real store.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "mechanism/choice/choice.h"
#include "mechanism/private_step.h"
#include "noise/noise.h"
#include "privacy/gaussian.h"
#include "store/store.h"
#include "support/process.h"
#include "train/click/click_learner.h"
#include "train/learner/position.h"
#include "train/trainer.h"

namespace tacit::train {
namespace {

using mechanism::VocabularyOptions;
using Source = VocabularyOptions::Source;

constexpr uint64_t kEvents = 64, kSteps = 3;  // of a period
constexpr double kSigma = 4, kVocabularySigma = 8, kRate = 0.5;
const std::atomic<bool> kGoOn = false;

class OpeningTest : public testing::Test {
 protected:
  // A run of FEST on the rows of a histogram of `source`; each run opens the store anew.
  struct Run {
    Source source = Source::kRunning;
    std::vector<std::pair<uint64_t, uint64_t>> steps;  // period, step of it
    std::chrono::milliseconds interval{0};
    double epsilon = 50;
  };

  OpeningTest() {
    options_.id = "ctr";
    options_.index = LearnerIndex(0);
    options_.model.space.AddTable("a", 40, 3);
    options_.model.space.AddTable("b", 10, 2);
    options_.model.dense_width = 2;
    options_.model.hidden = {8};
    options_.seed = 3;
  }

  std::unique_ptr<store::Store> Open() {
    store::StoreOptions options;
    options.path = folder_ / name_ + "-store";
    options.witness = folder_ / name_ + "-witness";
    options.shards = 4;
    options.memory_bytes = uint64_t{32} << 20;
    options.row_cache_bytes = uint64_t{1} << 20;
    options.code_version = "test";
    options.learners = {{.name = "ctr",
                         .rows = MakeRowLayout(options_, model::Pctr(options_.model, *backend_)),
                         .promise = {.learner = "ctr",
                                     .participation = privacy::ParticipationMode::kPoisson,
                                     .epsilon = 100,
                                     .delta = 1e-6}}};
    auto store = store::Store::Open(options);
    if (!store) ADD_FAILURE() << store.error().message;
    return *std::move(store);
  }

  std::unique_ptr<mechanism::Mechanism> Fest(Source source) const {
    const RowSpace& space = options_.model.space;
    VocabularyOptions options{.source = source, .keep = 5, .noise_multiplier = kVocabularySigma};
    return mechanism::MakePrivateStep(
        space, mechanism::MakeVocabularyRows(mechanism::MakeVocabulary(space, options)),
        mechanism::MakeFlatClipper(1, kSigma),
        {.sigma_gradient = kSigma, .expected_batch = kEvents * kRate, .sampling_rate = kRate});
  }
  std::unique_ptr<Learner> MakeLearner(store::Store& store,
                                       std::unique_ptr<mechanism::Mechanism> mechanism) {
    const auto dense = store.State(options_.index).dense;
    return std::make_unique<ClickLearner>(options_, std::move(mechanism), noise::MakeNoiseSource(),
                                          *backend_, store.working_rows(options_.index),
                                          dense.get());
  }

  // All of the period's events, or about half of them.
  stream::StepBatch Events(uint64_t period, bool all) {
    std::mt19937_64 random(period);
    stream::StepBatch step;
    event::Batch& batch = step.examples;
    batch.dense_width = 2;
    batch.slots = 2;
    for (uint64_t i = 0; i < kEvents; ++i) {
      const uint64_t a = random() % 40, b = 40 + random() % 10, label = random() % 2;
      if (!all && random() % 2) continue;
      batch.offset.push_back(period * kEvents + i);
      batch.timestamp_ms.push_back(0);
      batch.label.push_back(static_cast<float>(label));
      batch.dense.insert(batch.dense.end(), {1.0f, 0.5f});
      batch.row.insert(batch.row.end(), {a, b});
      const auto end = static_cast<uint32_t>(batch.row.size());
      batch.slot_end.insert(batch.slot_end.end(), {end - 1, end});
      step.unit_of.push_back(step.units++);
    }
    if (all) step.kind = stream::StepBatch::Kind::kPreview;
    return step;
  }
  stream::StepBatch Step(uint64_t period, uint64_t of_period) {
    stream::StepBatch step = Events(period, false);
    step.ranges = {{0, period * kEvents, (period + 1) * kEvents}};
    step.kind = of_period == 0 ? stream::StepBatch::Kind::kPeriodFirst
                               : stream::StepBatch::Kind::kPeriodNext;
    step.after.step = period * kSteps + of_period + 1;
    return step;
  }

  Outcome Train(const Run& run) {
    const auto store = Open();
    const store::LearnerState state = store->State(options_.index);
    std::vector<ResumedLearner> learners;
    learners.push_back({MakeLearner(*store, Fest(run.source)), *DecodePosition(state.position)});
    if (state.released) {
      EXPECT_TRUE(learners[0].learner->LoadReleased(*state.released));
    }
    Progress progress{1};
    metrics::Registry registry;
    Trainer trainer({.budgets = {{.epsilon = run.epsilon, .delta = 1e-6}},
                     .total_budget = {},
                     .topic = "log",
                     .commit_interval = run.interval,
                     .idle_priority = false},
                    std::move(learners), *store, clock_, registry, progress);
    BoundedQueue<LearnerStep> steps(100);
    for (const auto& [period, of_period] : run.steps) {
      if (of_period == 0) {
        EXPECT_TRUE(steps.Push({options_.index, Events(period, true), "identity"}));
      }
      EXPECT_TRUE(steps.Push({options_.index, Step(period, of_period), "identity"}));
    }
    steps.Close();
    const auto outcome = trainer.Run(steps);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return *outcome;
  }

  // Steps that the ledger charges to a mechanism.
  uint64_t Charged(privacy::MechanismKind mechanism) const {
    const auto read =
        store::OpenReadOnly(folder_ / name_ + "-store", folder_ / name_ + "-witness", {});
    EXPECT_TRUE(read);
    uint64_t steps = 0;
    for (const privacy::LedgerEntry& entry : read->entries) {
      if (entry.charge.mechanism != mechanism) continue;
      steps += entry.steps;
      const bool release = mechanism == privacy::MechanismKind::kVocabulary;
      EXPECT_EQ(entry.charge.sampling_rate, release ? 1 : kRate);
      EXPECT_EQ(entry.charge.noise_multiplier, release ? kVocabularySigma : kSigma);
    }
    return steps;
  }
  uint64_t Openings() const { return Charged(privacy::MechanismKind::kVocabulary); }
  uint64_t Steps() const { return Charged(privacy::MechanismKind::kFest); }
  std::string Released() {
    const auto state = Open()->State(options_.index).released;
    return state ? *state : "";
  }
  static std::vector<std::pair<uint64_t, uint64_t>> Periods(uint64_t from, uint64_t to) {
    std::vector<std::pair<uint64_t, uint64_t>> steps;
    for (uint64_t period = from; period < to; ++period)
      for (uint64_t step = 0; step < kSteps; ++step) steps.emplace_back(period, step);
    return steps;
  }

  test::TempDir folder_;
  std::string name_ = "one";  // of the store in it
  SystemClock clock_;
  WorkerPool workers_{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  ClickOptions options_;
};

TEST_F(OpeningTest, IsChargedOncePerPeriod) {
  Train({.steps = Periods(0, 3)});
  EXPECT_EQ(Openings(), 3u);
  EXPECT_EQ(Steps(), 3 * kSteps);
}

TEST_F(OpeningTest, IsChargedOnceWhereTheFirstPeriodIsReleasedAlone) {
  Train(
      {.source = Source::kFirstPeriod, .steps = Periods(0, 3), .interval = std::chrono::hours(1)});
  EXPECT_EQ(Openings(), 1u);
  EXPECT_EQ(Steps(), 3 * kSteps);
}

// The worst event is in one release and is eligible for the steps of one period; a second pass over
// the same events within one commit interval doubles both.
TEST_F(OpeningTest, CountsForEveryEventOfThePeriod) {
  auto steps = Periods(0, 1);
  Train({.steps = steps, .interval = std::chrono::hours(1)});
  const double once = Open()->Latest()->total().epsilon;
  Train({.steps = Periods(1, 2), .interval = std::chrono::hours(1)});
  EXPECT_EQ(Open()->Latest()->total().epsilon, once) << "other events";
  EXPECT_GT(once, privacy::GaussianEpsilon(1 / kVocabularySigma, Delta(1e-6)).value);
  steps.insert(steps.end(), steps.begin(), steps.end());
  Train({.steps = steps, .interval = std::chrono::hours(1)});
  EXPECT_EQ(Openings(), 4u);
  EXPECT_GT(Open()->Latest()->total().epsilon, 1.3 * once);
}

TEST_F(OpeningTest, IsNotRepeatedAfterARestart) {
  Train({.steps = {{0, 0}}});
  const std::string released = Released();
  EXPECT_NE(released, "");
  // The period is read again from its beginning, without its previews, and its steps continue.
  Train({.steps = {{0, 1}, {0, 2}}});
  EXPECT_EQ(Openings(), 1u);
  EXPECT_EQ(Steps(), kSteps);
  EXPECT_EQ(Released(), released);
  // The next period adds to what there was.
  Train({.steps = Periods(1, 2)});
  EXPECT_EQ(Openings(), 2u);
  EXPECT_NE(Released(), released);
}

TEST_F(OpeningTest, OfTheFirstPeriodIsNotRepeatedAfterARestart) {
  Train({.source = Source::kFirstPeriod, .steps = Periods(0, 1)});
  const std::string released = Released();
  Train({.source = Source::kFirstPeriod, .steps = Periods(1, 3)});
  EXPECT_EQ(Openings(), 1u);
  EXPECT_EQ(Steps(), 3 * kSteps);
  EXPECT_EQ(Released(), released);
}

// The process goes down after the opening step, before its commit: no reader saw what it released.
TEST_F(OpeningTest, ThatWasNeverCommittedIsReleasedAgainWithFreshNoiseAndChargedOnce) {
  std::string lost;
  {
    const auto store = Open();
    const auto learner = MakeLearner(*store, Fest(Source::kFirstPeriod));
    StepReport report;
    ASSERT_TRUE(learner->Preview(Events(0, true), &report));
    ASSERT_TRUE(learner->TakeStep(Step(0, 0), kGoOn, &report));
    lost = *learner->TakeReleased();
  }
  Train({.source = Source::kFirstPeriod, .steps = Periods(0, 1)});
  EXPECT_EQ(Openings(), 1u);
  EXPECT_EQ(Steps(), kSteps);
  EXPECT_EQ(Released().size(), lost.size());
  EXPECT_NE(Released(), lost);
}

TEST_F(OpeningTest, OfAnAbandonedStepDidNotHappen) {
  const auto store = Open();
  const auto learner = MakeLearner(*store, Fest(Source::kFirstPeriod));
  StepReport report;
  ASSERT_TRUE(learner->Preview(Events(0, true), &report));
  const std::atomic<bool> abandon = true;
  const auto taken = learner->TakeStep(Step(0, 0), abandon, &report);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(learner->TakeReleased(), nullptr);
  EXPECT_TRUE(learner->opening_charge());
}

// There is room for the period's steps, but not for its opening too.
TEST_F(OpeningTest, BeyondTheBudgetDoesNotHappen) {
  Train({.source = Source::kFirstPeriod, .steps = {{0, 0}}, .interval = std::chrono::hours(1)});
  const double with = Open()->Latest()->total().epsilon;
  // The first period of a store has its opening: it needs `with`. Without, a step costs less.
  name_ = "other";
  EXPECT_EQ(Train({.steps = Periods(0, 1), .epsilon = 0.99 * with}), Outcome::kBudgetExhausted);
  EXPECT_EQ(Released(), "");
  EXPECT_EQ(Open()->Latest()->version(), CommitSeq(0));
  EXPECT_EQ(Train({.steps = {{0, 0}}, .epsilon = 1.0001 * with}), Outcome::kEndOfSource);
  EXPECT_EQ(Openings(), 1u);
}

// Rows are scored for the mechanism that asks, and what it keeps is what it is said to keep.
TEST_F(OpeningTest, AMechanismThatAsksGetsTheScores) {
  const auto store = Open();
  const RowSpace& space = options_.model.space;
  const auto learner = MakeLearner(
      *store,
      mechanism::MakePrivateStep(
          space, mechanism::MakeExponentialRows(space, {.rows = 7, .epsilon = 1, .clip = 1}),
          mechanism::MakeFlatClipper(1, kSigma), {.sigma_gradient = kSigma, .expected_batch = 32}));
  StepReport report;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(learner->TakeStep(Step(0, 0), kGoOn, &report));
    EXPECT_EQ(report.rows_written, 7u);
  }
}

}  // namespace
}  // namespace tacit::train
