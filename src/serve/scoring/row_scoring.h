#pragma once

#include <memory>
#include <span>
#include <vector>

#include "event/batch.h"
#include "metrics/registry.h"
#include "serve/scoring/repository.h"
#include "serve/scoring/row_scorer.h"

namespace tacit::serve {

// All that one server thread scores rows with: a scorer of each model, a batch that requests are
// read into, and the scores. Every route that scores goes through here. Not thread-safe; the models
// must outlive it.
class RowScoring {
 public:
  // A model that is not loaded scores nothing; `loaded` may be null; then all are.
  RowScoring(const std::vector<ScoringModel>& models, const LoadedModels* loaded,
             metrics::Registry& metrics);

  event::Batch* batch() { return &batch_; }
  // Scores the batch by a model, and counts its rows. Fails as RowScorer::Score does. Valid until
  // the next call.
  Result<std::span<const float>> Score(size_t model, const store::Snapshot& snapshot);

 private:
  const std::vector<ScoringModel>& models_;
  const LoadedModels* const loaded_;
  std::vector<std::unique_ptr<RowScorer>> scorers_;  // one per model
  std::vector<metrics::Counter> scored_;             // one per model
  event::Batch batch_;
  std::vector<float> scores_;
};

}  // namespace tacit::serve
