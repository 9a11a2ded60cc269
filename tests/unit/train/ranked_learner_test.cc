// Counts with a ranker, released period by period: each is one Gaussian of what it may spend, is
// what the room's own trainers make of the same histories, and is gone on from to the last bit.
#include "train/ranking/ranked_learner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/silent_noise.h"
#include "unit/model/transitions/world.h"

namespace tacit::train {
namespace {

constexpr uint32_t kRanked = 60, kCrowd = 80;
const std::atomic<bool> kOn = false;

uint32_t Next(uint32_t user, uint32_t place) {
  return (7 * user + (1 + user % 3) * place) % kRanked;
}

stream::StepBatch PeriodStep(uint32_t period, uint32_t items) {
  stream::StepBatch batch;
  for (uint32_t u = 0; u < kCrowd; ++u) {
    for (uint32_t i = period * items; i < (period + 1) * items; ++i) {
      batch.examples.user.Append(fmt::format("user-{}", u));
      batch.examples.item.push_back(Next(u, i));
      batch.examples.label.push_back(1);
      batch.examples.timestamp_ms.push_back(1);
      batch.unit_of.push_back(u);
    }
  }
  batch.units = kCrowd;
  batch.after.step = period + 1;
  return batch;
}

// Keeps the deviation of every query: all blocks of one query have the same.
class Deviations final : public noise::SilentNoise {
 public:
  explicit Deviations(std::vector<double>* out) : out_(out) {}
  void ForParts(size_t n, const Part& part) override {
    begins_ = true;
    if (n > 0) part(0, n, *this);
  }
  void AddGridGaussian(double stddev, std::span<int64_t>) override {
    if (begins_) out_->push_back(stddev);
    begins_ = false;
  }

 private:
  std::vector<double>* const out_;
  bool begins_ = true;
};

class RankedLearnerTest : public testing::Test {
 protected:
  RankedLearnerOptions Options() const {
    return {.id = "ranked",
            .index = LearnerIndex(0),
            .catalogue = catalogue_,
            .model = {},
            .noise_multiplier = 0.5,
            .ranker = {.share = 0.2, .steps = 5, .candidates = 20, .orders = 30, .last_items = 10},
            .expected_units = kCrowd,
            .seed = 3,
            .histories = {.catalogue = kRanked, .items_most = 100}};
  }
  std::unique_ptr<RankedLearner> Make(const RankedLearnerOptions& options,
                                      std::unique_ptr<noise::NoiseSource> noise) {
    EXPECT_TRUE(CheckOptions(options));
    return std::make_unique<RankedLearner>(
        options,
        [this](std::span<store::UserHistory> users) -> Result<uint64_t> {
          for (store::UserHistory& user : users) user.items = stored_[user.user];
          return step_;
        },
        std::move(noise), workers_);
  }
  std::unique_ptr<RankedLearner> Make() {
    return Make(Options(), std::make_unique<noise::SilentNoise>());
  }
  StepReport MustStep(RankedLearner& learner, uint32_t period) {
    StepReport report;
    const auto taken = learner.TakeStep(PeriodStep(period, 6), kOn, &report);
    EXPECT_TRUE(taken && *taken);
    return report;
  }
  std::string Released(RankedLearner& learner) {
    const auto released = learner.TakeReleased();
    EXPECT_NE(released, nullptr);
    EXPECT_EQ(learner.TakeReleased(), nullptr);
    return released ? *released : "";
  }
  void ExpectTheTrainers(double answered);
  void Commit(RankedLearner& learner) {
    const auto histories = learner.TakeHistories();
    ASSERT_TRUE(histories);
    step_ = histories->step;
    for (const store::UserHistory& user : histories->appended)
      stored_[user.user].insert(stored_[user.user].end(), user.items.begin(), user.items.end());
  }

  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::shared_ptr<const model::transitions::PublicItems> catalogue_ =
      std::make_shared<const model::transitions::PublicItems>(kRanked);
  uint64_t step_ = 0;
  std::map<Hash128, std::vector<store::HistoryItem>> stored_;
};

TEST_F(RankedLearnerTest, APeriodIsOneGaussianOfWhatItMaySpend) {
  // The grids' steps of a histogram and of a gradient.
  constexpr double kHistogram = 0x1p-20, kGradient = 0x1p-30;
  std::vector<double> deviations;
  const auto learner = Make(Options(), std::make_unique<Deviations>(&deviations));
  EXPECT_EQ(learner->charge().mechanism, privacy::MechanismKind::kCounts);
  EXPECT_DOUBLE_EQ(learner->charge().MuSquared(), 4);
  for (uint32_t period = 0; period < 2; ++period) {
    deviations.clear();
    MustStep(*learner, period);
    // Popularity, a table and three measurements, then the ranker's steps. In the first period few
    // people make it look at popularity twice.
    const size_t counted = period == 0 ? 6 : 5;
    ASSERT_EQ(deviations.size(), counted + 5);
    double counts = 0, ranker = 0;
    for (size_t q = 0; q < counted; ++q) counts += std::pow(deviations[q] * kHistogram, -2);
    for (size_t q = counted; q < counted + 5; ++q)
      ranker += std::pow(deviations[q] * kGradient, -2);
    EXPECT_NEAR(counts, 0.8 * 4, 1e-6);
    EXPECT_NEAR(ranker, 0.2 * 4, 1e-6);
    EXPECT_LE(counts + ranker, 4);
    // Planted: a step more.
    EXPECT_GT(counts + ranker + std::pow(deviations.back() * kGradient, -2), 4.1);
  }
  EXPECT_EQ(RankedPeriodCharge([&] {
              RankedLearnerOptions none = Options();
              none.noise_multiplier = 0;
              return none;
            }()),
            privacy::Charge());
}

// `answered`: the part of all users that a step is taken to hear of.
void RankedLearnerTest::ExpectTheTrainers(double answered) {
  const auto learner = Make();
  model::transitions::ReleasedModel model(*catalogue_, {}, workers_);
  noise::SilentNoise silence;
  const privacy::PeriodNoise noise = privacy::DividePeriod(2, 0.8, 5);
  std::vector<float> by_hand, fault;
  for (uint32_t period = 0; period < 2; ++period) {
    MustStep(*learner, period);
    model::Histories histories{.items = {}, .end = {}, .catalogue = kRanked};
    for (uint32_t u = 0; u < kCrowd; ++u) {
      for (uint32_t i = 0; i < 6 * (period + 1); ++i) histories.items.push_back(Next(u, i));
      histories.end.push_back(histories.items.size());
    }
    const std::vector<uint32_t> known(kCrowd, 6 * period);
    ASSERT_TRUE(ReleaseTransitionsPeriod({.histories = histories, .known = known},
                                         1 / noise.opening, silence, workers_, &model));
    const model::ranking::CandidateSource source(model.estimate(), *catalogue_, {}, workers_);
    // The rate by which 80 users move a ranker under this noise.
    const double length =
        noise.step * std::sqrt(static_cast<double>(model::ranking::kRankerParameters));
    const RankerTraining training{
        .seed = 3,
        .steps = 5,
        .sigma = noise.step,
        .candidates = 20,
        .last_items = 10,
        .expected_units = kCrowd,
        .learning_rate = 0.03 * std::min(1.0, answered * kCrowd / length)};
    const auto train = [&](std::span<const uint32_t> of) {
      RankerTrainer trainer(training, histories, source, silence, workers_, of);
      if (period > 0) trainer.SetInitial(by_hand);
      while (!trainer.done()) trainer.Step();
      return trainer.Average();
    };
    fault = train({});  // planted: asked for old items too
    by_hand = train(known);
    std::vector<float> scores(kRanked), expected(kRanked), other(kRanked);
    const std::vector<uint32_t> history{1, 8, 15};
    learner->Score(history, scores);
    model::ranking::ScoreRanked(source, by_hand, 30, history, expected);
    model::ranking::ScoreRanked(source, fault, 30, history, other);
    EXPECT_EQ(scores, expected) << period;
    if (period > 0) {
      EXPECT_NE(scores, other);
    }
  }
}

TEST_F(RankedLearnerTest, IsTheTrainersOnTheSameHistories) {
  for (const bool described : {false, true}) {
    SCOPED_TRACE(described);
    if (described)
      catalogue_ = std::make_shared<const model::transitions::PublicItems>(
          model::transitions::SomeTexts(kRanked, 3));
    ExpectTheTrainers(described ? 1 : 0.05);
    step_ = 0;
    stored_.clear();
  }
}

TEST_F(RankedLearnerTest, WhereverItIsKilledItGoesOnToTheLastBit) {
  const auto whole = Make();
  std::vector<std::string> states;
  for (uint32_t period = 0; period < 3; ++period) {
    MustStep(*whole, period);
    states.push_back(Released(*whole));
  }
  for (uint32_t killed = 1; killed < 3; ++killed) {
    stored_.clear();
    step_ = 0;
    auto learner = Make();
    for (uint32_t period = 0; period < killed; ++period) MustStep(*learner, period);
    EXPECT_TRUE(Released(*learner) == states[killed - 1]);
    Commit(*learner);
    learner = Make();
    ASSERT_TRUE(learner->LoadReleased(states[killed - 1]));
    EXPECT_EQ(learner->TakeReleased(), nullptr);
    for (uint32_t period = killed; period < 3; ++period) MustStep(*learner, period);
    EXPECT_TRUE(Released(*learner) == states[2]) << killed;
    EXPECT_TRUE(*learner->GivesNumbers());
  }
}

// So small a divisor makes every update infinite. A store that had such a ranker could not be
// opened.
TEST_F(RankedLearnerTest, ARankerThatIsNoNumbersIsNoState) {
  RankedLearnerOptions options = Options();
  options.expected_units = 1e-300;
  const auto learner = Make(options, std::make_unique<noise::SilentNoise>());
  MustStep(*learner, 0);
  EXPECT_FALSE(*learner->GivesNumbers());
  EXPECT_EQ(learner->TakeReleased(), nullptr);
}

TEST_F(RankedLearnerTest, AnAbandonedPeriodDidNotHappen) {
  const auto learner = Make();
  const std::atomic<bool> abandon = true;
  StepReport report;
  const auto taken = learner->TakeStep(PeriodStep(0, 6), abandon, &report);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(learner->TakeReleased(), nullptr);
  EXPECT_FALSE(learner->TakeHistories());
}

TEST_F(RankedLearnerTest, AsksBeforeItLearns) {
  const auto learner = Make();
  EXPECT_EQ(MustStep(*learner, 0).ranked.asked, 0u);
  EXPECT_EQ(MustStep(*learner, 1).ranked.asked, kCrowd);
}

TEST_F(RankedLearnerTest, StatesThatAreNotItsOwnAreRefusedByName) {
  const auto learner = Make();
  MustStep(*learner, 0);
  const std::string state = Released(*learner);
  std::string other = state;
  other[6] ^= 1;
  for (const std::string& bytes : {std::string(), state.substr(0, state.size() - 1), state + "x",
                                   state.substr(0, 40), other}) {
    const Status loaded = learner->LoadReleased(bytes);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find("learner 'ranked'"), std::string::npos);
  }
}

TEST_F(RankedLearnerTest, WhatMakesNoModelIsRefused) {
  const auto refusal = [&](auto change) {
    RankedLearnerOptions options = Options();
    change(&options);
    const Status status = CheckOptions(options);
    return status ? std::string() : status.error().message;
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(refusal([](auto*) {}), "");
  EXPECT_TRUE(has(refusal([](auto* o) { o->ranker.share = 1; }), "ranker_share 1"));
  EXPECT_TRUE(has(refusal([](auto* o) { o->ranker.steps = 0; }), "steps"));
  EXPECT_TRUE(has(refusal([](auto* o) { o->ranker.orders = 0; }), "candidates_asked"));
  EXPECT_TRUE(has(refusal([](auto* o) { o->expected_units = 0; }), "expected_units 0"));
  EXPECT_TRUE(has(refusal([](auto* o) { o->expected_units = 1e12; }), "GiB"));
  EXPECT_TRUE(has(refusal([](auto* o) { o->noise_multiplier = 1e9; }), "mu 1e-09"));
}

}  // namespace
}  // namespace tacit::train
