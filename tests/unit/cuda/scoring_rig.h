#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda/learn/pctr_scorer.h"
#include "metrics/registry.h"
#include "serve/scoring/device_scorer.h"
#include "unit/serve/fake_snapshot.h"
#include "unit/serve/random_batch.h"

namespace tacit::cuda::testing {

// A click model of any shape, and what is committed of it.
struct ScoredModel {
  explicit ScoredModel(event::FeatureSchema schema, std::vector<uint32_t> hidden = {8, 6},
                       ops::Precision precision = ops::Precision::kF32)
      : transform(std::make_shared<event::FeatureTransform>(std::move(schema))) {
    options.space = transform->row_space();
    options.dense_width = static_cast<uint32_t>(transform->schema().dense.size());
    options.hidden = std::move(hidden);
    options.precision = precision;
    dense_size = serve::DenseSizeOf(options);
  }
  std::shared_ptr<const event::FeatureTransform> transform;
  model::PctrOptions options;
  size_t dense_size = 0;
};

// A commit of it that exists in memory only. Every number of it is a function of `number` alone,
// which is not what it calls itself.
class ScoredSnapshot final : public serve::FakeSnapshot {
 public:
  struct Name {
    uint64_t version = 1;
    std::string lineage = "line-1";
    TermId term{};
  };
  ScoredSnapshot(const ScoredModel& model, uint64_t number, Name name)
      : FakeSnapshot(number, serve::SmallModel(), model.dense_size),
        number_(number),
        space_(model.options.space),
        name_(std::move(name)) {
    head_.fill(static_cast<uint8_t>(name_.version));
  }
  ScoredSnapshot(const ScoredModel& model, uint64_t number)
      : ScoredSnapshot(model, number, {.version = number}) {}

  CommitSeq version() const override { return CommitSeq(name_.version); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return name_.lineage; }
  TermId term() const override { return name_.term; }
  Status Rows(LearnerIndex, std::span<const uint64_t> rows, std::span<float> out) const override {
    if (broken) return Fail(Error(*broken));
    size_t at = 0;
    for (const uint64_t row : rows) {
      const uint32_t dim = space_.tables()[space_.TableOf(row)].dim;
      InitialRow(number_, row, 1.0f, out.subspan(at, dim));
      at += dim;
    }
    EXPECT_EQ(at, out.size());
    return {};
  }

 private:
  const uint64_t number_;
  const RowSpace space_;
  const Name name_;
  Digest head_{};
};

// A model with its scorer on a device, for requests of any size, and one on the processor.
class ScoringRig {
 public:
  ScoringRig(Device& device, const ScoredModel& model, const train::GpuScoreOptions& options,
             size_t rows_least = 1)
      : model_(model),
        host_(serve::MakeClickModel(LearnerIndex(0), "ctr", model.transform, model.options)) {
    auto made = MakePctrScorer(device, options);
    if (!made) {
      why_not_ = made.error().message;
      return;
    }
    model_on_device_ = serve::MakeClickModelOn(
        std::make_shared<serve::ScoringDevice>(*std::move(made), rows_least, "ctr", registry_),
        LearnerIndex(0), "ctr", model.transform, model.options);
    scorer_ = model_on_device_->MakeScorer();
  }

  const std::string& why_not() const { return why_not_; }  // if empty, it was made
  std::unique_ptr<serve::RowScorer> MakeScorer() const { return model_on_device_->MakeScorer(); }
  serve::RowScorer& scorer() { return *scorer_; }

  std::vector<float> OnProcessor(const store::Snapshot& snapshot, const event::Batch& batch) const {
    std::vector<float> scores(batch.size());
    EXPECT_TRUE(host_->MakeScorer()->Score(snapshot, batch, scores));
    return scores;
  }
  // The largest difference between an answer and the processor's.
  double WorstOf(serve::RowScorer& scorer, const store::Snapshot& snapshot,
                 const event::Batch& batch) const {
    std::vector<float> scores(batch.size(), -1);
    const Status scored = scorer.Score(snapshot, batch, scores);
    EXPECT_TRUE(scored) << scored.error().message;
    const std::vector<float> wanted = OnProcessor(snapshot, batch);
    double worst = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      worst = std::max(
          worst, std::isfinite(scores[i]) ? std::abs(double{scores[i]} - double{wanted[i]}) : 1.0);
    return worst;
  }
  double Worst(const store::Snapshot& snapshot, const event::Batch& batch) {
    return WorstOf(*scorer_, snapshot, batch);
  }
  // The number of a metric of this learner as operators see it.
  double Metric(const std::string& name) const {
    const std::string text = registry_.Scrape(metrics::Audience::kOperator);
    const std::string line = "\n" + name + "{learner=\"ctr\"} ";
    const size_t at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }
  double scored() const { return Metric("tacit_gpu_scored_rows_total"); }
  bool works() const { return Metric("tacit_gpu_scoring") == 1; }

 private:
  const ScoredModel& model_;
  metrics::Registry registry_;
  const std::shared_ptr<const serve::RowModel> host_;
  std::shared_ptr<const serve::RowModel> model_on_device_;
  std::unique_ptr<serve::RowScorer> scorer_;
  std::string why_not_;
};

// In f32 the two add in different orders.
inline constexpr double kScoreTolerance = 2e-6;

// Asks for random versions of a model, one of few at a time as commits go on, and counts answers
// that are not those of the version that was asked for.
inline size_t AnswersOfOtherVersions(Device& device, uint64_t cache_bytes, uint64_t seed) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(device, model,
                 {.model = model.options, .cache_bytes = cache_bytes, .examples = 8});
  EXPECT_EQ(rig.why_not(), "");
  std::mt19937_64 random(seed);
  size_t wrong = 0;
  for (uint64_t turn = 0; turn < 40; ++turn) {
    // Up to three versions at a time, of which two have room.
    const ScoredSnapshot snapshot(model, 1 + turn / 10 + random() % 3);
    const event::Batch batch = serve::RandomBatch(*model.transform, 1 + random() % 12, random());
    wrong += rig.Worst(snapshot, batch) > kScoreTolerance;
  }
  EXPECT_TRUE(rig.works());
  return wrong;
}

}  // namespace tacit::cuda::testing
