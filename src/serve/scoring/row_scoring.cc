#include "serve/scoring/row_scoring.h"

#include "metrics/families.h"

namespace tacit::serve {

RowScoring::RowScoring(const std::vector<ScoringModel>& models, const LoadedModels* loaded,
                       metrics::Registry& metrics)
    : models_(models), loaded_(loaded) {
  for (const ScoringModel& model : models_) {
    scorers_.push_back(model.model->MakeScorer());
    scored_.push_back(
        metrics.AddCounter("tacit_scored_rows_total", {{"learner", model.promise.learner}}));
  }
}

Result<std::span<const float>> RowScoring::Score(size_t model, const store::Snapshot& snapshot) {
  const ScoringModel& is = models_[model];
  if (loaded_ != nullptr) TACIT_RETURN_IF_ERROR(loaded_->Check(is.index, is.promise.learner));
  scores_.resize(batch_.size());
  TACIT_RETURN_IF_ERROR(scorers_[model]->Score(snapshot, batch_, scores_));
  scored_[model].Add(static_cast<double>(scores_.size()));
  return std::span<const float>(scores_);
}

}  // namespace tacit::serve
