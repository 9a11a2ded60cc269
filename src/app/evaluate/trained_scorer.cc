#include "app/evaluate/trained_scorer.h"

#include <utility>

#include "base/check.h"
#include "ops/unit_ops.h"

namespace tacit::app {

void TrainedScorer::Publish(const model::SequenceLayout& layout, std::span<const float> weights,
                            const model::ParameterNoise& noise, const model::LogitPrior* prior) {
  weights_.assign(weights.begin(), weights.end());
  // Passes go by the layout that is replaced here.
  idle_.clear();
  layout_.emplace(layout);
  item_variance_.assign(noise.item_variance.begin(), noise.item_variance.end());
  noise_ = {noise.weight_variance, item_variance_};
  prior_ = prior;
}

std::unique_ptr<model::UnitPass> TrainedScorer::TakeIdle() const {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<model::UnitPass> pass = std::move(idle_.back());
  idle_.pop_back();
  return pass;
}

void TrainedScorer::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(layout_.has_value(), "what is scored by was published");
  std::unique_ptr<model::UnitPass> pass = TakeIdle();
  Status status;
  if (pass == nullptr) {
    pass = std::make_unique<model::UnitPass>(*layout_, ops::MakeCpuUnitOps(ops::Precision::kF32),
                                             prior_);
    status = pass->BeginStep(weights_, noise_);
  }
  if (status) status = pass->Score(history, scores);
  // The same products ran when it was trained: only memory that has lost its right to run code is
  // left.
  TACIT_CHECK(status.has_value(), "a model that was trained here scores here");
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(pass));
}

}  // namespace tacit::app
