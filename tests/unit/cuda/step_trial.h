#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/threads/worker_pool.h"
#include "cuda/learn/click_engine.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "train/click/click_learner.h"
#include "train/click/every_row_update.h"
#include "train/click/flat_rows.h"
#include "unit/cuda/replayed_noise.h"

// Steps of a small click model, taken by the CPU's code with the device's noise.
namespace tacit::cuda::testing {

struct TrialOptions {
  // kTouched: without privacy.
  enum class Rows { kThreshold, kEvery, kVocabulary, kThresholdInside, kTouched };
  enum class Clip { kFlat, kAutomatic, kPerLayer };
  Rows rows = Rows::kThreshold;
  Clip clip = Clip::kFlat;
  ops::Precision precision = ops::Precision::kF32;
  const char* optimizer = "sgd";
  bool lazy = false;
  double average_decay = 0;
  float momentum = 0;
  double sigma = 1, threshold = 2;
  // Tables that are larger than a bucket of the cache, two of them equally wide.
  bool large = false;
  // Two widths, as the shares of a clip per layer have it.
  std::array<uint32_t, 2> hidden = {9, 6};
};

inline model::PctrOptions TrialModel(ops::Precision precision, bool large = false,
                                     std::array<uint32_t, 2> hidden = TrialOptions().hidden) {
  model::PctrOptions model;
  if (large) {
    model.space.AddTable("first", 1500, 3);
    model.space.AddTable("alone", 300, 20);
  }
  model.space.AddTable("short", 50, 3);
  model.space.AddTable("long", 20, 20);
  model.space.AddTable("one", 7, 1);
  model.dense_width = 2;
  model.hidden.assign(hidden.begin(), hidden.end());
  model.precision = precision;
  return model;
}

// Units of up to `examples_max` examples whose slots have up to three rows.
inline stream::StepBatch RandomStep(const RowSpace& space, uint32_t dense_width, uint32_t units,
                                    uint32_t examples_max, std::mt19937_64& random) {
  stream::StepBatch step;
  step.units = units;
  event::Batch& batch = step.examples;
  batch.dense_width = dense_width;
  batch.slots = space.tables().size();
  std::normal_distribution<float> normal;
  for (uint32_t unit = 0; unit < units; ++unit) {
    for (uint64_t n = examples_max == 1 ? 1 : random() % (examples_max + 1); n > 0; --n) {
      step.unit_of.push_back(unit);
      batch.offset.push_back(batch.offset.size());
      batch.label.push_back(static_cast<float>(random() % 2));
      for (uint32_t c = 0; c < dense_width; ++c) batch.dense.push_back(normal(random));
      for (const RowSpace::Table& table : space.tables()) {
        // Few of the rows, so that units share them and have some twice.
        for (uint64_t rows = random() % 4; rows > 0; --rows)
          batch.row.push_back(table.first + random() % ((table.rows + 2) / 3));
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
    }
    if (unit % 5 == 3 || unit + 1 == units)
      step.sum_block_end.push_back(static_cast<uint32_t>(batch.size()));
  }
  return step;
}

inline std::unique_ptr<mechanism::Mechanism> MakeTrialMechanism(const RowSpace& space,
                                                                const TrialOptions& options) {
  constexpr double kClip = 0.7, kBatch = 8;
  if (options.rows == TrialOptions::Rows::kTouched) return mechanism::MakeNonPrivate(kBatch);
  const auto vocabulary = [&] {
    mechanism::VocabularyOptions given;
    given.source = mechanism::VocabularyOptions::Source::kPublic;
    for (uint64_t row = 1; row < space.rows(); row += 3) given.rows.push_back(row);
    return mechanism::MakeVocabulary(space, given);
  };
  const mechanism::ThresholdOptions threshold{
      .sigma = 1, .clip = 1, .threshold = options.threshold};
  std::unique_ptr<mechanism::RowSelector> selector;
  using Rows = TrialOptions::Rows;
  if (options.rows == Rows::kThreshold) selector = mechanism::MakeThresholdRows(space, threshold);
  if (options.rows == Rows::kEvery) selector = mechanism::MakeAllRows();
  if (options.rows == Rows::kVocabulary) selector = mechanism::MakeVocabularyRows(vocabulary());
  if (options.rows == Rows::kThresholdInside)
    selector = mechanism::MakeThresholdRows(space, threshold, vocabulary());
  using Clip = TrialOptions::Clip;
  std::unique_ptr<mechanism::Clipper> clipper;
  if (options.clip == Clip::kFlat) clipper = mechanism::MakeFlatClipper(kClip, options.sigma);
  if (options.clip == Clip::kAutomatic)
    clipper = mechanism::MakeAutomaticClipper(kClip, options.sigma);
  if (options.clip == Clip::kPerLayer)
    clipper = mechanism::MakePerLayerClipper(kClip, {1, 2, 3, 4}, options.sigma);
  return mechanism::MakePrivateStep(space, std::move(selector), std::move(clipper),
                                    {.sigma_gradient = options.sigma, .expected_batch = kBatch});
}

inline train::ClickOptions TrialLearner(const TrialOptions& options) {
  train::ClickOptions click;
  click.id = "trial";
  click.model = TrialModel(options.precision, options.large, options.hidden);
  click.seed = 3;
  click.optimizer.kind = train::OptimizerNamed(options.optimizer);
  click.optimizer.learning_rate = 0.05f;
  click.optimizer.row_learning_rate = 0.1f;
  click.optimizer.momentum = options.momentum;
  click.optimizer.average_decay = options.average_decay;
  // This floor keeps steps short where less than nothing is left of a second moment.
  click.optimizer.variance_floor = 0.04f;
  if (options.lazy) click.optimizer.moments = train::OptimizerOptions::Moments::kLazy;
  return click;
}

// The rows of a trial, each as its floats.
class TrialRows {
 public:
  TrialRows(const train::ClickOptions& click, ops::Backend& backend, WorkerPool& workers);

  train::FlatRows& rows() { return *rows_; }
  const store::RowLayout& layout() const { return layout_; }
  std::vector<std::vector<float>> All();
  void Set(const std::vector<std::vector<float>>& all);

 private:
  store::RowLayout layout_;
  std::unique_ptr<train::FlatRows> rows_;
};

// The CPU's step: the parts of train::ClickLearner, with noise that is announced between them.
class HostTrial {
 public:
  explicit HostTrial(const TrialOptions& options);

  // Returns the rows that were written; every row is none.
  std::set<uint64_t> Step(const stream::StepBatch& step);

  const std::vector<float>& logits() const { return logits_; }
  const store::DenseState& dense() const { return dense_; }
  TrialRows& rows() { return rows_; }
  uint64_t units_clipped() const { return clipped_; }
  const mechanism::Mechanism& mechanism() const { return *mechanism_; }

 private:
  void AnnounceSelection();
  void AnnounceUpdate(bool every_row);
  void Apply();

  TrialOptions options_;
  train::ClickOptions click_;
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_;
  TrialRows rows_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  ReplayedNoise noise_{9};
  model::Pctr model_;
  train::Optimizer optimizer_;
  train::EveryRowUpdate every_row_;
  store::DenseState dense_;
  uint32_t step_ = 0;
  uint64_t clipped_ = 0;
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  model::RowSelection selection_;
  model::StepGradient gradient_;
  model::GroupNorms norms_;
  std::vector<float> logits_, loss_;
};

}  // namespace tacit::cuda::testing
