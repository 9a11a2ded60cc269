// Lives with one thing wrong, which one unit more or less does not show: only lives of other
// records do, or a bill over the starts of a service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tape/disk_life.h"
#include "tape/forwarding_learner.h"
#include "tape/life.h"
#include "tape/spoilt_noise.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;
using privacy::Unit;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Matcher;

constexpr uint64_t kMost = 8;  // lives that are tried

// All that two lives of each kind have to say.
std::vector<std::string> Told(const Subject& subject, uint64_t seed, const Planted& planted) {
  const Records one(subject, seed);
  std::vector<std::string> told;
  for (const Records& leads : {one.Beside(seed + 1'000'000), one.Nothing()}) {
    const Life led = Live(subject, leads, {.seed = seed}, planted);
    const Life followed = Live(subject, one, {.seed = seed, .leads = &led}, planted);
    for (const std::string& sentence : {Difference(led, followed), led.unpaid})
      if (!sentence.empty()) told.push_back(sentence);
  }
  return told;
}

void ExpectFollowed(const Case& tried, const Planted& planted, const Matcher<std::string>& words,
                    bool by_pairs_too = false) {
  SCOPED_TRACE(tried.name());
  const Subject subject(tried);
  std::vector<std::string> told;
  for (uint64_t seed = 1; seed <= kMost && told.empty(); ++seed) {
    EXPECT_THAT(Told(subject, seed, {}), IsEmpty());
    told = Told(subject, seed, planted);
    if (by_pairs_too) continue;
    EXPECT_THAT(ReadTape(subject, seed, planted).wrong, IsEmpty());
  }
  EXPECT_THAT(told, Contains(words));
}

template <class Fault>
Planted Learnt() {
  return {.learner = [](const Subject& subject,
                        wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
    const bool restarts = parts.steps_taken > 0;
    TACIT_ASSIGN(auto learner, subject.plan().model->Make(std::move(parts)));
    return std::make_unique<Fault>(std::move(learner), restarts);
  }};
}

class Fault : public ForwardingLearner {
 public:
  Fault(std::unique_ptr<Learner> inner, bool restarts)
      : ForwardingLearner(std::move(inner)), restarts_(restarts) {}

 protected:
  bool restarts_;
};

// ---- Paths from records to a release that are not through noise. ----

class EmptyStepsAskNothing final : public Fault {
 public:
  using Fault::Fault;
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    if (step.examples.size() == 0) return true;
    return inner().TakeStep(step, abandon, report);
  }
};

TEST(PlantedFollow, AnEmptyStepThatAsksNothingIsSeen) {
  for (const Query query : {Query::kGradient, Query::kPeriodSums, Query::kPeriodCounts})
    ExpectFollowed(CaseOf(query), Learnt<EmptyStepsAskNothing>(), HasSubstr("the worlds differ"),
                   true);
}

TEST(PlantedFollow, APositionThatCountsRecordsIsSeen) {
  ExpectFollowed(
      CaseOf(Query::kGradient),
      {.step = [](stream::StepBatch* step) { step->after.reading = step->examples.size(); }},
      HasSubstr("the position"));
}

TEST(PlantedFollow, ABillThatEndsWithTheLastRecordIsSeen) {
  const auto cut = [](stream::StepBatch* step) {
    if (step->examples.size() > 0) step->ranges.back().end = step->examples.offset.back() + 1;
  };
  ExpectFollowed(CaseOf(Query::kGradient), {.step = cut}, HasSubstr("the bill"));
}

// Noise that is improbable is drawn again, until it is not.
class NoRareNoise final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    const std::vector<int64_t> sums(values.begin(), values.end());
    Spoilt::AddGridGaussian(stddev, values);
    for (size_t i = 0; i < sums.size(); ++i)
      if (std::abs(static_cast<double>(values[i] - sums[i])) > 7 * stddev) values[i] = sums[i];
  }
};

TEST(PlantedFollow, NoiseThatHasToFitTheSumIsSeen) {
  for (const Query query : {Query::kGradient, Query::kPeriodSums})
    ExpectFollowed(CaseOf(query, ParticipationMode::kOnce, Unit::kEvent), With<NoRareNoise>(),
                   HasSubstr("the worlds differ"));
}

// ---- Choices of rows. ----

class NoGumbels final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  double Uniform() override {
    Spoilt::Uniform();
    return 0.5;
  }
};

TEST(PlantedFollow, AChoiceByScoresAloneIsSeen) {
  ExpectFollowed(CaseOf(Query::kRowChoice, ParticipationMode::kOnce, Unit::kEvent),
                 With<NoGumbels>(), HasSubstr("commit"));
  ExpectFollowed(CaseOf(Query::kTopRows, ParticipationMode::kPoisson, Unit::kEvent),
                 With<NoGumbels>(), HasSubstr("commit"));
}

class TouchedRowsAlone final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  uint64_t GeometricSkip(double) override { return uint64_t{1} << 62; }
};

TEST(PlantedFollow, ATouchedRowThatIsKnownByItsBeingWrittenIsSeen) {
  ExpectFollowed(CaseOf(Query::kRowThreshold), With<TouchedRowsAlone>(), HasSubstr("commit"));
  Case sums = CaseOf(Query::kPeriodSums);
  sums.mechanism = "{kind: sums, whole_columns: 10, deviations: 2}";
  ExpectFollowed(sums, With<TouchedRowsAlone>(), HasSubstr("commit"));
}

// ---- Starts and ends of a service. ----

// The first step after a start asks for the period's opening once more.
class OpensAgain final : public Fault {
 public:
  using Fault::Fault;
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    if (!std::exchange(restarts_, false)) return inner().TakeStep(step, abandon, report);
    stream::StepBatch opening = step;
    opening.kind = stream::StepBatch::Kind::kPeriodFirst;
    return inner().TakeStep(opening, abandon, report);
  }
};

TEST(PlantedFollow, AnOpeningThatIsAskedAgainAfterAStartIsSeen) {
  ExpectFollowed(CaseOf(Query::kRowHistogram, ParticipationMode::kPoisson, Unit::kEvent),
                 Learnt<OpensAgain>(), HasSubstr("was asked"), true);
}

// A failure behind a release, which is not charged then.
class FailsBehindARelease final : public Fault {
 public:
  using Fault::Fault;
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    TACIT_RETURN_IF_ERROR(inner().TakeStep(step, abandon, report));
    return Fail(ErrorCode::kInvalidArgument, "the model is no number");
  }
};

TEST(PlantedFollow, AReleaseThatAFailureLeavesUnpaidIsSeen) {
  ExpectFollowed(CaseOf(Query::kGradient), Learnt<FailsBehindARelease>(),
                 HasSubstr("0 commits of 1 steps"), true);
}

// A failure that tells how many records there were.
class TellsRecords final : public Fault {
 public:
  using Fault::Fault;
  Result<bool> GivesNumbers() override {
    return Fail(ErrorCode::kInvalidArgument, "no number, after " + std::to_string(records_));
  }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    records_ = step.examples.size();
    return inner().TakeStep(step, abandon, report);
  }

 private:
  size_t records_ = 0;
};

TEST(PlantedFollow, AFailureThatTellsOfRecordsIsSeen) {
  ExpectFollowed(CaseOf(Query::kGradient), Learnt<TellsRecords>(), HasSubstr("the ends"), true);
}

// Users are charged for steps that a restored store lacks up to the most that anybody had used,
// which one user decides.
TEST(PlantedFollow, ARestoreThatCutsAtTheMostThatAnybodyUsedIsSeen) {
  const auto cut = [](const UserUses& uses, store::UsersGap gap, uint32_t most) {
    gap.allowance = most;
    return store::AfterGap(uses, gap);
  };
  const Subject subject(CaseOf(Query::kGradient));
  double right = 0, wrong = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Records with(subject, seed);
    const auto most_moved = [&](const Planted& planted) {
      const Life led = Live(subject, with, {.seed = seed}, planted);
      return Live(subject, with.WithoutUnit(), {.seed = seed, .leads = &led}, planted)
          .moved.at("gradient");
    };
    right = std::max(right, most_moved({}));
    wrong = std::max(wrong, most_moved({.after_gap = cut}));
  }
  EXPECT_LE(right, 1);
  EXPECT_GT(wrong, 1.5);
}

TEST(PlantedFollow, ARestoreThatIsNotChargedIsSeen) {
  const Case tried = CaseOf(Query::kGradient);
  const Subject subject(tried);
  const Acts acts{.restore = Acts::Restore::kUnnoticed};
  const Life life = LiveOnDisk(tried, Records(subject, 1), {.seed = 1}, acts);
  EXPECT_THAT(life.unpaid, HasSubstr("was asked"));
}

TEST(PlantedFollow, TheSameIsSeenInALifeOnDisk) {
  const Case tried = CaseOf(Query::kGradient);
  const Subject subject(tried);
  const Records one(subject, 1);
  const auto plant = [](std::unique_ptr<train::Learner> learner) {
    return std::make_unique<EmptyStepsAskNothing>(std::move(learner), false);
  };
  const Acts acts{.restore = Acts::Restore::kOlderCopy};
  const Life led = LiveOnDisk(tried, one.Nothing(), {.seed = 1}, acts, plant);
  const Life followed = LiveOnDisk(tried, one, {.seed = 1, .leads = &led}, acts, plant);
  EXPECT_THAT(Difference(led, followed), HasSubstr("commit 1: the worlds differ"));
}

}  // namespace
}  // namespace tacit::tape
