// The audit by twins, of learners that choose a release by their earlier ones: right ones are not
// accused and prove most of their charge; each planted fault is seen.
#include "lab/audit/twin_audit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "lab/audit/likelihood_audit.h"
#include "lab/audit/twin_noise.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "support/silent_noise.h"
#include "train/counts/transitions_learner.h"
#include "train/sequence/sequence_learner.h"
#include "wiring/plans/next_item_plan.h"

namespace tacit::lab {
namespace {

using test::TempDir;
using testing::HasSubstr;

constexpr double kFalse = 1e-7;

constexpr const char* kUserOnce = "{mode: once, batch: 64, max_participations: 1}";
constexpr const char* kUserPoisson =
    "{mode: poisson, batch: 8, sampling_rate: 1, steps_per_period: 2, period: 64, "
    "max_participations: 2}";
constexpr const char* kUserSampled =
    "{mode: poisson, batch: 8, sampling_rate: 0.5, steps_per_period: 1, period: 64, "
    "max_participations: 1}";
constexpr const char* kUserAllocate =
    "{mode: allocate, batch: 8, steps_per_period: 2, period: 64, max_participations: 2}";
constexpr const char* kEventPoisson =
    "{mode: poisson, batch: 16, sampling_rate: 1, steps_per_period: 2, period: 64}";

struct Audited {
  std::string model, mechanism, participation, unit = "user";
  uint64_t runs = 700;
  double epsilon = 8;
};
const Audited kCounts{
    .model = "{kind: transitions}", .mechanism = "{kind: counts}", .participation = kUserOnce};
const Audited kSequence{.model = "{kind: sequence, width: 4, length: 8, heads: 1}",
                        .mechanism = "{kind: dp-sgd, clipping: automatic}",
                        .participation = kUserPoisson};
const Audited kOpened{.model = "{kind: sequence, width: 4, length: 8, heads: 1, start: popularity}",
                      .mechanism = "{kind: dp-sgd, clipping: automatic}",
                      .participation = kUserPoisson};
const Audited kVocabulary{.model = "{kind: pctr, hidden: [4]}",
                          .mechanism =
                              "{kind: fest, vocabulary: {source: running, keep: 20, "
                              "noise_multiplier: 2}}",
                          .participation = kEventPoisson,
                          .unit = "event"};
const Audited kUsers{.model = "{kind: pctr, hidden: [4]}",
                     .mechanism = "{kind: dp-sgd}",
                     .participation = kUserPoisson};
const Audited kQuantile{.model = "{kind: pctr, hidden: [4]}",
                        .mechanism =
                            "{kind: dp-sgd, clipping: quantile, quantile: "
                            "{noise_multiplier: 2}}",
                        .participation = "{mode: once, batch: 64}",
                        .unit = "event"};

config::Config Load(const TempDir& dir, const Audited& audited) {
  std::ofstream items(dir / "items.dat");
  for (int i = 0; i < 30; ++i) items << "item-" << i << "\n";
  items.close();
  const bool recommends = audited.model.find("pctr") == std::string::npos;
  const std::string path = dir / "audit.yaml";
  std::ofstream(path) << fmt::format(
      R"(source: {{kind: log, format: json, files: ["none-*.jsonl"]}}
catalogue: {{file: {}}}
schema:
  features:
    - {{name: I1, kind: dense}}
    - {{name: C1, kind: categorical, buckets: 40, dim: 3}}
learners:
  - id: a
    model: {}
    mechanism: {}
    participation: {}
    privacy: {{unit: {}, epsilon: {}, delta: 1.0e-5}}
    {}
store: {{path: s, witness: w}}
memory: {{total_bytes: 2GiB}}
)",
      dir / "items.dat", audited.model, audited.mechanism, audited.participation, audited.unit,
      audited.epsilon, recommends ? "history: {items: 8}" : "optimizer: {kind: adam}");
  auto config = config::Load(path, {}, config::LogFiles::kUnread);
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return *std::move(config);
}

LikelihoodAuditOptions Fixed() {
  return {.workers = 2, .source = [](size_t worker) {
            return std::make_unique<noise::FixedNoise>(static_cast<uint8_t>(7 + worker));
          }};
}

struct Found {
  audit::JudgedRuns judged;
  double reach = 0;
};
Found AuditOf(const Audited& audited, LikelihoodAuditOptions options = Fixed()) {
  const TempDir dir;
  auto made = LikelihoodAudit::Make(Load(dir, audited), "a", std::move(options));
  EXPECT_TRUE(made.has_value()) << made.error().message;
  if (!made) return {};
  audit::RunStatistics statistics;
  const Status run = (*made)->Run(audited.runs, &statistics);
  EXPECT_TRUE(run.has_value()) << run.error().message;
  auto judged =
      audit::JudgeRuns(statistics, audited.runs / 10, (*made)->events(), (*made)->delta(), kFalse);
  EXPECT_TRUE(judged.has_value()) << judged.error().message;
  return {*judged, (*made)->reach()};
}

class RightTwins : public testing::TestWithParam<Audited> {};
TEST_P(RightTwins, StayUnderTheirChargeAndProveMostOfIt) {
  const auto [judged, reach] = AuditOf(GetParam());
  EXPECT_FALSE(judged.exceeds);
  EXPECT_GT(reach, 0.9);
  EXPECT_LT(reach, 1.0001);
  // Coins that are drawn hide some of it from a few runs.
  const bool sampled = GetParam().participation == kUserSampled;
  EXPECT_GT(judged.proved_mu, (sampled ? 0.3 : 0.5) * judged.charged_mu);
}
INSTANTIATE_TEST_SUITE_P(
    Kinds, RightTwins,
    testing::Values(kCounts, kSequence, kOpened, kVocabulary, kUsers, kQuantile,
                    Audited{.model = "{kind: transitions, ranker: true, ranker_users: 10, "
                                     "ranker_steps: 3}",
                            .mechanism = "{kind: counts}",
                            .participation = kUserOnce,
                            .runs = 300},
                    Audited{.model = "{kind: sequence, encoder: gru, width: 4, length: 8, start: "
                                     "counts}",
                            .mechanism = "{kind: dp-sgd}",
                            .participation = kUserPoisson,
                            .runs = 300},
                    Audited{.model = kSequence.model,
                            .mechanism = "{kind: dp-sgd}",
                            .participation = kUserSampled,
                            .runs = 1000}));

// Noise that is less than it says, the same in every call, or not there where a sum is 0.
class BadNoise final : public noise::SilentNoise {
 public:
  enum Fault { kLess, kAgain, kNotOnZero };
  explicit BadNoise(Fault fault) : fault_(fault), source_(3) {}
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    if (fault_ == kLess) return source_.AddGridGaussian(0.6 * stddev, values);
    std::vector<int64_t> noise(values.size());
    std::vector<int64_t>& same = same_[values.size()];
    if (fault_ == kNotOnZero || same.empty()) source_.AddGridGaussian(stddev, noise);
    if (fault_ == kAgain) {
      if (same.empty()) same = noise;
      noise = same;
    }
    for (size_t i = 0; i < values.size(); ++i)
      if (fault_ == kAgain || values[i] != 0) values[i] += noise[i];
  }

 private:
  const Fault fault_;
  noise::FixedNoise source_;
  std::map<size_t, std::vector<int64_t>> same_;
};

TEST(PlantedTwins, NoiseThatIsNotWhatItSaysIsAccused) {
  for (const Audited& audited : {kCounts, kSequence, kOpened, kVocabulary, kUsers, kQuantile})
    for (const auto fault : {BadNoise::kLess, BadNoise::kAgain}) {
      const Found found = AuditOf(audited, {.workers = 1, .source = [&](size_t) {
                                              return std::make_unique<BadNoise>(fault);
                                            }});
      EXPECT_TRUE(found.judged.exceeds) << audited.model << audited.mechanism << fault;
    }
}

TEST(PlantedTwins, CountsOfNobodyWithoutNoiseAreAccused) {
  const Found found = AuditOf(kOpened, {.workers = 1, .source = [](size_t) {
                                          return std::make_unique<BadNoise>(BadNoise::kNotOnZero);
                                        }});
  EXPECT_TRUE(found.judged.exceeds);
}

LikelihoodAuditOptions With(decltype(LikelihoodAuditOptions::learner) learner) {
  LikelihoodAuditOptions options = Fixed();
  options.learner = std::move(learner);
  return options;
}

std::shared_ptr<const event::ItemCatalogue> ItemsIn(const TempDir& dir) {
  return std::make_shared<const event::ItemCatalogue>(
      *event::ItemCatalogue::Read(dir / "items.dat"));
}

// A learner of other options than those that its plan is charged for.
train::SequenceLearnerOptions SequenceOptions(const Audited& audited) {
  const TempDir dir;
  const config::Config config = Load(dir, audited);
  return *wiring::PlanSequence({.config = config, .items = ItemsIn(dir)});
}
auto SequenceWith(train::SequenceLearnerOptions options) {
  return [options](const wiring::ModelPlan&,
                   wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
    return std::make_unique<train::SequenceLearner>(options, std::move(parts.histories),
                                                    std::move(parts.noise), parts.backend(),
                                                    parts.dense, parts.steps_taken);
  };
}

TEST(PlantedTwins, AClipBeyondTheNoiseIsAccused) {
  train::SequenceLearnerOptions options = SequenceOptions(kSequence);
  options.training.privacy.clip_norm *= 2;
  options.training.privacy.sigma /= 2;
  EXPECT_TRUE(AuditOf(kSequence, With(SequenceWith(options))).judged.exceeds);
}

TEST(PlantedTwins, AnOpeningThatIsNotPaidForIsAccused) {
  const Audited& audited = kSequence;
  train::SequenceLearnerOptions options = SequenceOptions(audited);
  options.start.kind = train::SequenceStartOptions::Kind::kPopularity;
  options.start.noise_multiplier = 0.5;
  EXPECT_TRUE(AuditOf(audited, With(SequenceWith(options))).judged.exceeds);
}

TEST(PlantedTwins, CountsOfHalfTheirNoiseAreAccused) {
  const TempDir dir;
  const config::Config config = Load(dir, kCounts);
  train::TransitionsLearnerOptions options =
      *wiring::PlanTransitions({.config = config, .items = ItemsIn(dir)});
  options.noise_multiplier /= 2;
  const auto learner = [&](const wiring::ModelPlan&,
                           wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
    return std::make_unique<train::TransitionsLearner>(options, std::move(parts.histories),
                                                       std::move(parts.noise), parts.workers);
  };
  EXPECT_TRUE(AuditOf(kCounts, With(learner)).judged.exceeds);
}

// A learner that does one thing wrong around a right one.
class Around : public train::Learner {
 public:
  enum Fault {
    kTellsUnits,  // how many units were in the step goes into what is stored, without noise
    kSkipsEmpty,  // a step of nobody releases nothing
  };
  Around(std::unique_ptr<Learner> right, Fault fault)
      : Learner(right->id(), right->index()), right_(std::move(right)), fault_(fault) {}

  privacy::Charge charge() const override { return right_->charge(); }
  std::optional<privacy::Charge> opening_charge() const override {
    return right_->opening_charge();
  }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    units_ = step.units;
    if (fault_ == kSkipsEmpty && step.units == 0) return true;
    return right_->TakeStep(step, abandon, report);
  }
  Status Preview(const stream::StepBatch& batch, train::StepReport* report) override {
    return right_->Preview(batch, report);
  }
  std::shared_ptr<const store::DenseState> CopyDense() const override {
    return right_->CopyDense();
  }
  std::shared_ptr<const std::string> TakeReleased() override {
    auto released = right_->TakeReleased();
    if (fault_ != kTellsUnits) return released;
    return std::make_shared<const std::string>((released ? *released : "") +
                                               std::to_string(units_));
  }
  Status LoadReleased(std::string_view bytes) override { return right_->LoadReleased(bytes); }
  void Rekey() override { right_->Rekey(); }

 private:
  const std::unique_ptr<Learner> right_;
  const Fault fault_;
  uint32_t units_ = 0;
};
auto RightBut(Around::Fault fault) {
  return [fault](const wiring::ModelPlan& plan,
                 wiring::LearnerParts parts) -> Result<std::unique_ptr<train::Learner>> {
    TACIT_ASSIGN(auto right, plan.Make(std::move(parts)));
    return std::make_unique<Around>(std::move(right), fault);
  };
}

TEST(PlantedTwins, WhatIsStoredWithoutNoiseIsAccused) {
  for (const Audited& audited : {kSequence, kVocabulary, kUsers})
    EXPECT_TRUE(AuditOf(audited, With(RightBut(Around::kTellsUnits))).judged.exceeds)
        << audited.model << audited.mechanism;
}

TEST(PlantedTwins, AStepOfNobodyThatReleasesNothingIsAccused) {
  Audited audited = kSequence;
  // Steps of nobody are usual where few have many steps.
  audited.participation =
      "{mode: allocate, batch: 8, steps_per_period: 20, period: 64, max_participations: 20}";
  audited.epsilon = 0.5;
  audited.runs = 600;
  const Found found = AuditOf(audited, With(RightBut(Around::kSkipsEmpty)));
  EXPECT_TRUE(found.judged.exceeds)
      << found.judged.found_lower << " at " << found.judged.false_alarms_upper;
}

TEST(Twins, WhatHasNoLikelihoodIsRefusedByName) {
  const auto refusal = [](const Audited& audited) {
    const TempDir dir;
    auto made = LikelihoodAudit::Make(Load(dir, audited), "a");
    EXPECT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, ErrorCode::kRefused);
    EXPECT_THAT(made.error().message, HasSubstr("learner 'a'"));
    return made.error().message;
  };
  Audited gumbel = kVocabulary;
  gumbel.mechanism =
      "{kind: fest, vocabulary: {source: running, keep: 20, query: gumbel, noise_multiplier: 9}}";
  EXPECT_THAT(refusal(gumbel), HasSubstr("query: gumbel"));
}

// A user's rows are in sums of both worlds where the others draw their steps, too: nothing tells
// the worlds apart for certain.
TEST(Twins, RowsOfDrawnStepsTellNothingForCertain) {
  const TempDir dir;
  Audited audited = kUsers;
  audited.participation = kUserAllocate;
  auto made = LikelihoodAudit::Make(Load(dir, audited), "a", Fixed());
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_GT((*made)->reach(), 0.9);
  audit::RunStatistics statistics;
  ASSERT_TRUE((*made)->Run(200, &statistics).has_value());
  for (const std::vector<double>& world : {statistics.without, statistics.with})
    for (const double ratio : world) EXPECT_LT(std::abs(ratio), 100);
}

// A follower is given what left of its leader, and knows when a call is another one.
TEST(TwinNoise, AFollowerReleasesWhatItsLeaderDid) {
  noise::FixedNoise source(1);
  TwinNoise leader, follower;
  std::vector<int64_t> led = {1000, 0}, followed = {400, 0};
  leader.Lead(&source);
  leader.AddGridGaussian(256, led);
  EXPECT_NE(led[0], 1000);
  follower.Follow(leader);
  follower.AddGridGaussian(256, followed);
  EXPECT_EQ(followed, led);
  EXPECT_FALSE(follower.strayed());
  // By the closed form: N(a, s^2) against N(b, s^2) at x.
  const double x = static_cast<double>(led[0]), s2 = 256.0 * 256;
  const TwinRatio ratio = RatioOf(leader, follower);
  EXPECT_NEAR(ratio.log, ((x - 400) * (x - 400) - (x - 1000) * (x - 1000)) / (2 * s2), 1e-9);
  EXPECT_DOUBLE_EQ(ratio.squared, 600 * 600 / s2);
  std::vector<int64_t> longer(3);
  follower.Follow(leader);
  follower.AddGridGaussian(256, longer);
  EXPECT_TRUE(follower.strayed());
  follower.Follow(leader);
  EXPECT_TRUE(follower.strayed());  // it made no call where the leader made one
}

}  // namespace
}  // namespace tacit::lab
