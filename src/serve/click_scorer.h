#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "event/batch.h"
#include "event/feature_transform.h"
#include "model/examples.h"
#include "model/pctr.h"
#include "ops/backend.h"
#include "privacy/ledger.h"
#include "store/snapshot.h"

namespace tacit::serve {

// A learner that can score rows, as configured. A value type.
struct ScoringModel {
  LearnerIndex index;
  privacy::Promise promise;  // name, unit, participation, budget
  std::shared_ptr<const event::FeatureTransform> transform;
  model::PctrOptions model;
};

// Computes probabilities from a snapshot. Owns its single-threaded backend and its working memory,
// which grows to one chunk of rows; not thread-safe, one per thread.
class ClickScorer {
 public:
  explicit ClickScorer(const ScoringModel& model);
  ClickScorer(const ClickScorer&) = delete;
  ClickScorer& operator=(const ClickScorer&) = delete;

  // Computes the click probability of every example; `scores` is as long as the batch.
  // kUnavailable: the learner has no commit in this snapshot. kCorruption: its parameters do not
  // fit this model, or give a score that is not finite.
  Status Score(const store::Snapshot& snapshot, const event::Batch& batch, std::span<float> scores);

 private:
  Status ScoreChunk(const store::Snapshot& snapshot, std::span<const float> dense,
                    const event::Batch& chunk, std::span<float> scores);
  Status FetchRows(const store::Snapshot& snapshot);

  const ScoringModel model_;
  WorkerPool workers_;
  std::unique_ptr<ops::Backend> backend_;
  model::Pctr pctr_;
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  event::Batch chunk_;
  std::vector<uint32_t> unit_of_;
  std::vector<float> row_values_;
  std::vector<float*> rows_;
};

}  // namespace tacit::serve
