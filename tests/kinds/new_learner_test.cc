// A new kind of learner is what CONTRIBUTING.md asks for, and no more: a row in the configuration's
// table of models, and one in wiring's with the plan. Everything else asks that plan: the daemon's
// own way of learning, the store, the ledger and what answers requests.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "config/reader.h"
#include "config/sections.h"
#include "serve/scoring/row_scorer.h"
#include "support/process.h"
#include "wiring/learning.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/plans/source.h"

namespace tacit {
namespace {

using testing::HasSubstr;

// The kind "share": the share of clicks so far, out of one noised sum a step.
constexpr auto kShare = static_cast<config::ModelKind>(std::size(config::kModels));

std::vector<config::ModelTraits> ModelsAndShare() {
  std::vector<config::ModelTraits> models(std::begin(config::kModels), std::end(config::kModels));
  models.push_back({.kind = kShare, .name = "share", .descends = false});
  return models;
}
const std::vector<config::ModelTraits> kModelsAndShare = ModelsAndShare();

class ShareLearner final : public train::Learner {
 public:
  ShareLearner(std::string id, LearnerIndex index, privacy::Charge charge,
               wiring::LearnerParts parts)
      : Learner(std::move(id), index), charge_(charge), noise_(std::move(parts.noise)) {
    if (parts.dense != nullptr) state_ = parts.dense->parameters;
  }

  privacy::Charge charge() const override { return charge_; }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    TACIT_RETURN_IF_ERROR(Preview(step, report));
    if (abandon) return false;
    constexpr double kGrid = 1024;
    int64_t clicks = 0;
    for (const float label : step.examples.label) clicks += label > 0 ? int64_t{1024} : 0;
    if (charge_.Bounded())
      noise_->AddGridGaussian(charge_.noise_multiplier * kGrid, std::span(&clicks, 1));
    state_[0] += static_cast<float>(static_cast<double>(clicks) / kGrid);
    for (const OffsetRange& range : step.ranges) state_[1] += static_cast<float>(range.size());
    return true;
  }
  Status Preview(const stream::StepBatch& batch, train::StepReport* report) override {
    const float share = state_[1] > 0 ? std::clamp(state_[0] / state_[1], 0.01f, 0.99f) : 0.5f;
    logits_.assign(batch.examples.size(), std::log(share / (1 - share)));
    *report = {.logits = logits_, .examples = logits_.size(), .losses = logits_.size()};
    return {};
  }
  std::shared_ptr<const store::DenseState> CopyDense() const override {
    return std::make_shared<store::DenseState>(store::DenseState{state_, {}});
  }
  Status LoadReleased(std::string_view) override { return {}; }
  void Rekey() override { noise_->Rekey(); }

 private:
  const privacy::Charge charge_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  std::vector<float> state_ = {0, 0};  // clicks, offsets
  std::vector<float> logits_;
};

class ShareScorer final : public serve::RowScorer {
 public:
  explicit ShareScorer(LearnerIndex index) : index_(index) {}
  Status Score(const store::Snapshot& snapshot, const event::Batch&,
               std::span<float> scores) override {
    const auto state = snapshot.ServedDense(index_);
    if (state.size() != 2) return Fail(serve::NotYetCommitted("share"));
    std::ranges::fill(scores, state[0] / state[1]);
    return {};
  }

 private:
  const LearnerIndex index_;
};

class ShareModel final : public serve::RowModel {
 public:
  explicit ShareModel(LearnerIndex index) : index_(index) {}
  std::unique_ptr<serve::RowScorer> MakeScorer() const override {
    return std::make_unique<ShareScorer>(index_);
  }

 private:
  const LearnerIndex index_;
};

class SharePlan final : public wiring::ModelPlan {
 public:
  SharePlan(const wiring::PlanParts& parts, double noise)
      : id_(parts.learner().id), index_(parts.learner_index()), noise_(noise) {}

  privacy::Charge charge() const override {
    if (noise_ == 0) return {};
    return {.mechanism = privacy::MechanismKind::kDpSgd,
            .noise_multiplier = noise_,
            .sigma_gradient = noise_,
            .clip_gradient = 1};
  }
  Digest Fingerprint() const override { return Sha256().Update("share 1").Finish(); }
  void AddTo(wiring::LearnerShape* shape) const override { shape->dense_parameters = 2; }
  Result<std::unique_ptr<train::Learner>> Make(wiring::LearnerParts parts) const override {
    return std::make_unique<ShareLearner>(id_, index_, charge(), std::move(parts));
  }
  std::shared_ptr<const serve::RowModel> Scores() const override {
    return std::make_shared<ShareModel>(index_);
  }
  std::string SizeText() const override { return "one share"; }
  std::string RowsText() const override { return "none"; }
  std::string_view ReleaseKeys() const override { return "nothing"; }

 private:
  const std::string id_;
  const LearnerIndex index_;
  const double noise_;
};

std::vector<wiring::LearnerKind> KindsAndShare() {
  const auto all = wiring::AllLearnerKinds();
  std::vector<wiring::LearnerKind> kinds(all.begin(), all.end());
  kinds.push_back({.kind = kShare,
                   .queries =
                       [](const config::Learner&, std::span<const wiring::MechanismMaker>) {
                         return std::vector{privacy::Query::kGradient};
                       },
                   .plan = [](const wiring::PlanParts& parts)
                       -> Result<std::shared_ptr<const wiring::ModelPlan>> {
                     double noise = 0;
                     if (parts.learner().mechanism.traits().adds_noise) {
                       TACIT_ASSIGN(noise, wiring::StepNoise(parts.learner(), parts.exposure));
                     }
                     return std::make_shared<SharePlan>(parts, noise);
                   }});
  return kinds;
}
const std::vector<wiring::LearnerKind> kKindsAndShare = KindsAndShare();

constexpr int kDays = 2, kRecordsADay = 3000;
constexpr uint64_t kBatch = 500;

class NewLearner : public testing::Test {
 protected:
  NewLearner() {
    for (int day = 0; day < kDays; ++day) {
      std::string text;
      for (int i = 0; i < kRecordsADay; ++i)
        text += fmt::format("{{\"label\":{},\"timestamp_ms\":{},\"features\":{{\"x\":{}}}}}\n",
                            i % 4 == 0 ? 1 : 0, day * kRecordsADay + i + 1, i % 9);
      test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), text);
    }
  }

  config::Config Config() {
    auto config = config::Parse(
        fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                    "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                    "learners:\n  - id: share\n    model: {{kind: pctr, hidden: [1]}}\n"
                    "    mechanism: {{kind: dp-sgd}}\n"
                    "    participation: {{mode: once, batch: {}}}\n"
                    "    privacy: {{unit: event, epsilon: 2, delta: 1.0e-6}}\n"
                    "store: {{path: {}, witness: none}}\nserve: {{listen: \"\"}}\n"
                    "training: {{workers: 1, idle_priority: false}}\n",
                    dir_ / "day-*.jsonl", kBatch, dir_ / "store"),
        "new.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    config::Learner& learner = config->learners[0];
    learner.model.kinds = kModelsAndShare;
    EXPECT_EQ(Describe("{id: share, model: {kind: share}, mechanism: {kind: dp-sgd}, "
                       "participation: {mode: once, batch: 500}, "
                       "privacy: {unit: event, epsilon: 2, delta: 1.0e-6}}",
                       &learner),
              "");
    return *std::move(config);
  }
  static std::string Describe(std::string_view yaml, config::Learner* learner) {
    const auto tree = config::ParseYaml(yaml, "new.yaml");
    config::Outcome outcome;
    config::Reader reader(config::Place(*tree), &outcome);
    config::DescribeLearner(reader, *learner);
    reader.Finish();
    if (!outcome.wrong) return outcome.wrong.error().message;
    return outcome.missing ? "" : outcome.missing.error().message;
  }

  // Learns what the store has not seen yet, and returns it as it is then.
  std::shared_ptr<const store::Snapshot> Learn(const wiring::Assembly& assembly) {
    store_.reset();
    auto source = wiring::OpenSource(assembly.config.source);
    EXPECT_TRUE(source) << source.error().message;
    auto store = store::Store::Open(wiring::MakeStoreOptions(assembly));
    EXPECT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    const SystemClock clock;
    metrics::Registry registry;
    train::Progress progress(assembly.learners.size());
    class : public event::DeadLetterSink {
      Status Write(std::span<const event::DeadLetter>) override {
        ADD_FAILURE() << "a record is dead";
        return {};
      }
    } letters;
    const auto positions = wiring::ReadPositions(assembly, *store_);
    const auto learning = wiring::Learning::Make({.assembly = assembly,
                                                  .store = *store_,
                                                  .source = **source,
                                                  .dead_letters = letters,
                                                  .clock = clock,
                                                  .registry = registry,
                                                  .progress = progress},
                                                 *positions);
    EXPECT_TRUE(learning) << learning.error().message;
    EXPECT_TRUE((*learning)->intake().Start());
    const auto outcome = (*learning)->trainer().Run((*learning)->intake().steps());
    EXPECT_TRUE(outcome) << outcome.error().message;
    return store_->Latest();
  }

  const test::TempDir dir_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(NewLearner, IsReadByItsRow) {
  const config::Config config = Config();
  EXPECT_EQ(config.learners[0].model.traits().name, "share");
  // The product's tables do not know it.
  config::Learner known;
  EXPECT_THAT(Describe("{model: {kind: share}}", &known), HasSubstr("kind"));
}

TEST_F(NewLearner, LearnsIsChargedResumesAndAnswers) {
  config::Config config = Config();
  const std::vector<std::string> files = config.source.files;
  config.source.files.resize(1);
  auto first = wiring::Assemble(config, nullptr, kKindsAndShare);
  ASSERT_TRUE(first) << first.error().message;
  auto snapshot = Learn(*first);
  EXPECT_EQ(snapshot->learners().at(0).steps, kRecordsADay / kBatch);
  EXPECT_EQ(snapshot->ServedDense(LearnerIndex(0))[1], kRecordsADay);
  const float first_clicks = snapshot->ServedDense(LearnerIndex(0))[0];
  snapshot.reset();  // it keeps the store open

  config.source.files = files;
  const auto assembly = wiring::Assemble(config, nullptr, kKindsAndShare);
  ASSERT_TRUE(assembly) << assembly.error().message;
  snapshot = Learn(*assembly);
  const privacy::LedgerTotal total = snapshot->learners().at(0);
  EXPECT_EQ(total.steps, kDays * kRecordsADay / kBatch);
  EXPECT_LE(total.epsilon, 2);
  EXPECT_GT(total.epsilon, 1.99);
  const auto state = snapshot->ServedDense(LearnerIndex(0));
  EXPECT_EQ(state[1], kDays * kRecordsADay);
  // Twelve draws of noise, each of less than 4 clicks' deviation.
  EXPECT_NEAR(state[0] / state[1], 0.25, 0.02);
  // Chance makes one of these two so once in 10,000 runs.
  EXPECT_FALSE(first_clicks == kRecordsADay / 4 && state[0] == kDays * kRecordsADay / 4)
      << "never without noise";

  const auto models = wiring::MakeScoringModels(*assembly);
  ASSERT_EQ(models.size(), 1u);
  std::vector<float> scores(3);
  ASSERT_TRUE(models[0].model->MakeScorer()->Score(*snapshot, event::Batch(), scores));
  for (const float score : scores) EXPECT_EQ(score, state[0] / state[1]);
}

}  // namespace
}  // namespace tacit
