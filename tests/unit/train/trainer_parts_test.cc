// The step loop beside processes that sum up parts of a period: what it commits, and when, and what
// it makes of others' sums.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/silent_noise.h"
#include "train/trainer.h"
#include "unit/train/trainer_rig.h"

namespace tacit::train {
namespace {

// Other processes wait for the models of a period. They get those of all its learners at once; a
// learner that is ahead has none of it.
TEST_F(TrainerTest, APeriodMayBeCommittedOnceAllItsLearnersHaveIt) {
  commit_each_period_ = true;
  stream::Position ahead;
  ahead.step = 1;
  ahead.next = {{0, 32, 32}};
  Make({{"ctr", 1, 100}, {.id = "ahead", .sigma = 1, .epsilon = 100, .position = ahead}},
       std::chrono::hours(1), std::nullopt);
  BoundedQueue<LearnerStep> steps(100);
  ASSERT_TRUE(steps.Push(MakeStep(0, 0)));
  for (uint64_t i = 1; i < 5; ++i)
    for (const uint16_t learner : {0, 1}) ASSERT_TRUE(steps.Push(MakeStep(i, 32 * i, 32, learner)));
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  std::vector<size_t> learners;
  for (const auto& commit : store_->commits) learners.push_back(commit.learners.size());
  EXPECT_EQ(learners, (std::vector<size_t>{1, 2, 2, 2, 2}));
}

// A learner whose budget is used up holds no period back.
TEST_F(TrainerTest, APeriodIsCommittedWithoutALearnerThatHasStopped) {
  commit_each_period_ = true;
  Make({{"ctr", 1, 100}, {"short", 1, 1e-9}}, std::chrono::hours(1), std::nullopt);
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t i = 0; i < 3; ++i)
    for (const uint16_t learner : {0, 1}) ASSERT_TRUE(steps.Push(MakeStep(i, 32 * i, 32, learner)));
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  EXPECT_EQ(store_->commits.size(), 3u);
}

// The decision on a window, and the steps behind it, become visible together.
TEST_F(TrainerTest, AWindowIsCommittedWithThePeriodThatItIs) {
  commit_each_period_ = true;
  breaker_ = BreakerOf(100);
  breaker_->window = 0;
  Make(1.0, 100, std::chrono::hours(1));
  BoundedQueue<LearnerStep> steps(100);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(steps.Push({.learner = LearnerIndex(0),
                            .batch = {},
                            .source_identity = "",
                            .window_end = WindowEnd{{{0, 32 * i, 32 * (i + 1)}}, 0}}));
    ASSERT_TRUE(steps.Push(MakeStep(i, 32 * i)));
  }
  steps.Close();
  ASSERT_TRUE(trainer_->Run(steps));
  ASSERT_EQ(store_->commits.size(), 3u);
  for (const auto& commit : store_->commits) EXPECT_EQ(commit.learners.size(), 2u);
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
  Result<bool> TakeStep(const stream::StepBatch&, const std::atomic<bool>&,
                        StepReport* report) override {
    report->examples = 14;  // of two parts
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

// Private quality counts predictions of others once, as those of records that are read here.
TEST_F(TrainerTest, PredictionsOfOthersAreCountedForQuality) {
  Make(1.0, 8, std::chrono::hours(1));
  std::vector<ResumedLearner> learners;
  learners.push_back({std::make_unique<AddingLearner>("ctr", LearnerIndex(0)), {}});
  store_->Add(QualityAccount("ctr"), store::RowLayout());
  TrainerOptions options{
      .budgets = {{.epsilon = std::numeric_limits<double>::infinity(), .delta = 1e-6}},
      .total_budget = std::nullopt,
      .topic = "log"};
  options.qualities.push_back(
      std::make_unique<PrivateQuality>(QualityOptions{.learner = "ctr",
                                                      .index = LearnerIndex(1),
                                                      .topic = "log",
                                                      .steps = 1,
                                                      .bins = 1,
                                                      .noise_multiplier = 1,
                                                      .epsilon = 100,
                                                      .delta = 1e-6},
                                       std::make_unique<noise::SilentNoise>()));
  trainer_ = std::make_unique<Trainer>(std::move(options), std::move(learners), *store_, clock_,
                                       registry_, progress_);
  BoundedQueue<LearnerStep> steps(100);
  for (const bool recount : {false, true, false}) {
    LearnerStep sums{.learner = LearnerIndex(0), .batch = {}, .source_identity = ""};
    sums.batch.kind = stream::StepBatch::Kind::kSums;
    sums.batch.sums = "right";
    sums.batch.recount = recount;
    ASSERT_TRUE(steps.Push(std::move(sums)));
  }
  ASSERT_TRUE(steps.Push(MakeStep(0, 0, 0)));
  steps.Close();
  const auto outcome = trainer_->Run(steps);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(store_->commits.size(), 1u);
  const auto& quality = store_->commits[0].learners.back();
  ASSERT_NE(quality.released, nullptr);
  const auto released = *ReleasedScores::Decode(*quality.released);
  EXPECT_EQ(released.all.misses, std::vector<double>{2 * 4});
  EXPECT_EQ(released.all.clicks, std::vector<double>{2 * 3});
  // The step that ends the period has none of its own, and does not count them again.
  EXPECT_EQ(progress_.view(0).events, 2u * 7);
}

}  // namespace
}  // namespace tacit::train
