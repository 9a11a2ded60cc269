// Learners with one thing wrong: the tape sees each, by what it says of it, and sees nothing in the
// same learners as they are.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <utility>

#include "audit/forwarding.h"
#include "noise/declared.h"
#include "tape/forwarding_learner.h"
#include "tape/run.h"
#include "tape/spoilt_noise.h"
#include "train/click/click_learner.h"
#include "train/counts/transitions_learner.h"
#include "train/sequence/sequence_learner.h"
#include "wiring/plans/mechanism_factory.h"
#include "wiring/plans/next_item_plan.h"

namespace tacit::tape {
namespace {

using noise::NoiseSource;
using privacy::ParticipationMode;
using privacy::Query;
using privacy::Unit;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kSeedsMost = 6;

// Some pair of worlds shows the fault, in these words; none shows one without it.
void ExpectFound(const Case& tried, const Planted& planted, const std::string& words) {
  SCOPED_TRACE(tried.name());
  const Subject subject(tried);
  std::vector<std::string> wrong;
  for (uint64_t seed = 1; seed <= kSeedsMost && wrong.empty(); ++seed) {
    EXPECT_THAT(ReadTape(subject, seed).wrong, IsEmpty());
    wrong = ReadTape(subject, seed, planted).wrong;
  }
  EXPECT_THAT(wrong, Contains(HasSubstr(words)));
}

// ---- Faults between a learner and its noise. ----

class SumsHalfAgain final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    for (int64_t& value : values) value += value / 2;
    Spoilt::AddGridGaussian(stddev, values);
  }
};

class LessNoise final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    Spoilt::AddGridGaussian(0.9 * stddev, values);
  }
};

class LessOnRowsOfNobody final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override {
    Spoilt::FillGridGaussian(0.5 * stddev, factor, out);
  }
};

class DeclaresNothing final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void Declare(const noise::Declared&) override {}
};

// The same sums once more: where the first draws are, or behind their declaration, or in one more.
enum class Again { kWithin, kBehind, kDeclared };
template <Again again>
class DrawsAgain final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void Declare(const noise::Declared& declared) override {
    Spoilt::Declare(again == Again::kDeclared && declared.query.empty() ? last_ : declared);
    if (declared.query.empty() && !sums_.empty()) Spoilt::AddGridGaussian(stddev_, sums_);
    if (again == Again::kDeclared && declared.query.empty()) Spoilt::Declare({});
    last_ = declared;
    sums_.clear();
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    std::vector<int64_t> sums(values.begin(), values.end());
    Spoilt::AddGridGaussian(stddev, values);
    if (again == Again::kWithin) return Spoilt::AddGridGaussian(stddev, sums);
    stddev_ = stddev;
    sums_ = std::move(sums);
  }

 private:
  noise::Declared last_;
  double stddev_ = 0;
  std::vector<int64_t> sums_;
};

class ScoresHalfAgain final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void Declare(const noise::Declared& declared) override {
    std::vector<double> scores(declared.scores.begin(), declared.scores.end());
    for (double& score : scores) score *= 1.5;
    Spoilt::Declare({declared.query, declared.bound, scores});
  }
};

const std::vector<Case>& OneOfEach() {
  static const std::vector<Case> kCases = {
      CaseOf(Query::kGradient),
      CaseOf(Query::kRowThreshold),
      CaseOf(Query::kSequenceGradient),
      CaseOf(Query::kPeriodCounts),
      CaseOf(Query::kPeriodSums),
      CaseOf(Query::kRowHistogram, ParticipationMode::kPoisson),
      CaseOf(Query::kItemHistogram, ParticipationMode::kAllocate),
      CaseOf(Query::kRepresentation, ParticipationMode::kOnce, Unit::kEvent)};
  return kCases;
}

TEST(PlantedTape, SumsThatAreLongerThanTheyAreDeclaredAreSeen) {
  for (const Case& tried : OneOfEach())
    ExpectFound(tried, With<SumsHalfAgain>(), "a unit moves it by 1.");
}

TEST(PlantedTape, LessNoiseThanIsChargedIsSeen) {
  for (const Case& tried : OneOfEach())
    ExpectFound(tried, With<LessNoise>(), "what is declared costs");
}

TEST(PlantedTape, LessNoiseBehindARestartIsSeen) {
  const Planted planted = {
      .learner = [](const Subject& subject,
                    wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
        if (parts.steps_taken > 0)
          parts.noise = std::make_unique<LessNoise>(std::move(parts.noise));
        return subject.plan().model->Make(std::move(parts));
      }};
  for (const Case& tried : OneOfEach()) ExpectFound(tried, planted, "what is declared costs");
}

TEST(PlantedTape, LessNoiseOnRowsOfNobodyIsSeen) {
  ExpectFound(CaseOf(Query::kGradient), With<LessOnRowsOfNobody>(), "rows of nobody");
}

TEST(PlantedTape, ADrawThatDeclaresNothingIsSeen) {
  for (const Case& tried : OneOfEach())
    ExpectFound(tried, With<DeclaresNothing>(), "declares no query");
}

TEST(PlantedTape, ASecondReleaseOfTheSameSumsIsSeen) {
  for (const Case& tried : OneOfEach()) {
    ExpectFound(tried, With<DrawsAgain<Again::kWithin>>(), "a unit moves it by");
    ExpectFound(tried, With<DrawsAgain<Again::kBehind>>(), "declares no query");
    ExpectFound(tried, With<DrawsAgain<Again::kDeclared>>(), "what is declared costs");
  }
}

TEST(PlantedTape, ScoresThatMoveFurtherThanTheirClipAreSeen) {
  ExpectFound(CaseOf(Query::kTopRows, ParticipationMode::kPoisson, Unit::kEvent),
              With<ScoresHalfAgain>(), "a unit moves it by 1.5");
}

TEST(PlantedTape, CoinsThatDeclareNothingAreSeen) {
  const auto coins = noise::MakeNoiseSource();
  {
    const noise::Declaration declared(*coins, {"coins"});
    coins->GeometricSkip(0.5);
  }
  EXPECT_NONFATAL_FAILURE(coins->GeometricSkip(0.5), "declares no query");
}

// ---- Faults in the steps that learners are shown. ----

void CountUnitsTwice(stream::StepBatch* step) {
  const event::Batch examples = step->examples;
  step->examples.AppendRange(examples, 0, examples.size());
  const std::vector<uint32_t> units = step->unit_of;
  for (const uint32_t unit : units) step->unit_of.push_back(unit + step->units);
  step->units *= 2;
  step->sum_block_end.clear();
}
void TakeRecordsForUnits(stream::StepBatch* step) {
  for (size_t i = 0; i < step->unit_of.size(); ++i) step->unit_of[i] = static_cast<uint32_t>(i);
  step->units = static_cast<uint32_t>(step->unit_of.size());
}

TEST(PlantedTape, AUnitThatCountsTwiceIsSeen) {
  for (const Query query : {Query::kGradient, Query::kRowThreshold})
    ExpectFound(CaseOf(query), {.step = CountUnitsTwice}, "a unit moves it by");
}

TEST(PlantedTape, RecordsThatAreClippedOneByOneAreSeen) {
  for (const Query query : {Query::kGradient, Query::kRowThreshold, Query::kPeriodSums})
    ExpectFound(CaseOf(query), {.step = TakeRecordsForUnits}, "a unit moves it by");
}

TEST(PlantedTape, AUserBeyondTheAllowanceIsSeen) {
  for (const ParticipationMode mode : {ParticipationMode::kOnce, ParticipationMode::kAllocate})
    ExpectFound(CaseOf(Query::kGradient, mode), {.lets_all_in = true}, "the unit is in");
}

// ---- Faults in mechanisms and learners. ----

class NoClip final : public audit::Forwarding, private model::ScaleRule {
 public:
  using Forwarding::Forwarding;
  const model::ScaleRule& scale_rule() const override { return *this; }

 private:
  double grid_step() const override { return inner_->scale_rule().grid_step(); }
  void Scales(const model::GroupNorms&, std::span<float> scales) const override {
    std::ranges::fill(scales, 1.0f);
  }
};

// Divides by how many units there were.
class RealisedBatch final : public audit::Forwarding {
 public:
  using Forwarding::Forwarding;
  void Finalize(NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    Forwarding::Finalize(noise, norms, sum);
    for (float& value : sum->dense) value /= static_cast<float>(norms.units + 1);
  }
};

// Rows that no unit touched are written as they are.
class NoNoiseOnTheDensePart final : public audit::Forwarding {
 public:
  using Forwarding::Forwarding;
  void Finalize(NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    const std::vector<int64_t> exact = sum->dense_sums;
    Forwarding::Finalize(noise, norms, sum);
    for (size_t i = 0; i < exact.size(); ++i) sum->dense[i] = static_cast<float>(exact[i]);
  }
};

// The click learner of a case, with its mechanism spoilt.
template <class Fault>
Planted Mechanised() {
  return {.learner = [](const Subject& subject,
                        wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
    const wiring::Assembly& assembly = subject.assembly();
    train::ClickOptions options;
    options.id = "it";
    options.index = LearnerIndex(0);
    options.model = {.space = assembly.transform->row_space(), .dense_width = 1, .hidden = {4}};
    options.optimizer = wiring::MakeOptimizer(subject.configured().optimizer);
    TACIT_ASSIGN(auto mechanism,
                 wiring::MakeMechanism({.config = assembly.config}, options.model.space));
    return std::make_unique<train::ClickLearner>(
        options, std::make_unique<Fault>(std::move(mechanism)), std::move(parts.noise),
        parts.backend(), parts.rows, nullptr);
  }};
}

TEST(PlantedTape, AClipThatIsLeftOutIsSeen) {
  for (const Unit unit : {Unit::kEvent, Unit::kUser})
    ExpectFound(CaseOf(Query::kGradient, ParticipationMode::kOnce, unit), Mechanised<NoClip>(),
                "a unit moves it by");
}

TEST(PlantedTape, WhatFollowsFromRecordsAndNotFromNoisedSumsIsSeen) {
  const Case tried = CaseOf(Query::kGradient);
  ExpectFound(tried, Mechanised<RealisedBatch>(), "the parameters differ");
  ExpectFound(tried, Mechanised<NoNoiseOnTheDensePart>(), "the parameters differ");
}

TEST(PlantedTape, AClipBeyondTheNoiseIsSeen) {
  ExpectFound(
      CaseOf(Query::kSequenceGradient),
      {.learner = [](const Subject& subject,
                     wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
        const wiring::Assembly& assembly = subject.assembly();
        TACIT_ASSIGN(auto options,
                     wiring::PlanSequence({.config = assembly.config, .items = assembly.items}));
        options.training.privacy.clip_norm *= 2;
        options.training.privacy.sigma /= 2;
        return std::make_unique<train::SequenceLearner>(options, std::move(parts.histories),
                                                        std::move(parts.noise), parts.backend(),
                                                        nullptr, 0);
      }},
      "planned");
}

TEST(PlantedTape, CountsOfHalfTheirNoiseAreSeen) {
  ExpectFound(
      CaseOf(Query::kPeriodCounts),
      {.learner = [](const Subject& subject,
                     wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
        const wiring::Assembly& assembly = subject.assembly();
        TACIT_ASSIGN(auto options,
                     wiring::PlanTransitions({.config = assembly.config, .items = assembly.items}));
        options.noise_multiplier /= 2;
        return std::make_unique<train::TransitionsLearner>(options, std::move(parts.histories),
                                                           std::move(parts.noise), parts.workers);
      }},
      "planned");
}

// ---- Faults in the bill. ----

// A learner that asks less than its draws cost.
enum class Bill { kLessForSteps, kNothingForOpenings };
template <Bill bill>
class Underpaid final : public ForwardingLearner {
 public:
  using ForwardingLearner::ForwardingLearner;
  privacy::Charge charge() const override {
    privacy::Charge charge = inner().charge();
    if (bill == Bill::kLessForSteps) charge.noise_multiplier *= 1.1;
    return charge;
  }
  std::optional<privacy::Charge> opening_charge() const override {
    return bill == Bill::kNothingForOpenings ? std::nullopt : inner().opening_charge();
  }
};
template <Bill bill>
Planted Billed() {
  return {.pair = [](std::unique_ptr<train::Learner> right) {
    return std::make_unique<Underpaid<bill>>(std::move(right));
  }};
}

TEST(PlantedTape, ABillBelowWhatIsAskedIsSeen) {
  for (const Case& tried : OneOfEach()) {
    if (tried.query == Query::kRowHistogram || tried.query == Query::kItemHistogram)
      ExpectFound(tried, Billed<Bill::kNothingForOpenings>(), "the bill of commit");
    else
      ExpectFound(tried, Billed<Bill::kLessForSteps>(), "the bill of commit");
  }
}

}  // namespace
}  // namespace tacit::tape
