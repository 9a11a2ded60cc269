#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/examples.h"
#include "model/pctr.h"
#include "ops/backend.h"
#include "serve/scoring/row_scorer.h"

namespace tacit::serve {

// The network over embeddings (model::Pctr), from a snapshot's rows and dense parameters. Owns its
// single-threaded backend and its working memory, which grows to one chunk of rows.
class ClickScorer final : public RowScorer {
 public:
  // `learner` is its name, for messages; batches are those of `transform`.
  ClickScorer(LearnerIndex index, std::string learner, const event::FeatureTransform& transform,
              const model::PctrOptions& model);

  Status Score(const store::Snapshot& snapshot, const event::Batch& batch,
               std::span<float> scores) override;
  // The parameters that the snapshot is served with. Fails as Score does where there are none, or
  // another model's.
  Result<std::span<const float>> ParametersOf(const store::Snapshot& snapshot) const;

 private:
  Status ScoreChunk(const store::Snapshot& snapshot, std::span<const float> dense,
                    const event::Batch& chunk, std::span<float> scores);
  Status FetchRows(const store::Snapshot& snapshot);

  const LearnerIndex index_;
  const std::string learner_;
  const RowSpace space_;
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

// The kind of model whose scorer that is.
std::shared_ptr<const RowModel> MakeClickModel(
    LearnerIndex index, std::string learner,
    std::shared_ptr<const event::FeatureTransform> transform, const model::PctrOptions& options);

}  // namespace tacit::serve
