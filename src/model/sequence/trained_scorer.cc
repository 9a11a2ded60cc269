#include "model/sequence/trained_scorer.h"

#include <utility>

#include "base/check.h"
#include "ops/unit_ops.h"

namespace tacit::model {

void TrainedScorer::Publish(const SequenceLayout& layout, std::span<const float> weights,
                            const ParameterNoise& noise, const LogitPrior* prior) {
  weights_.assign(weights.begin(), weights.end());
  {
    const MutexLock lock(mutex_);
    idle_.clear();  // passes use the layout that is replaced here
  }
  layout_.emplace(layout);
  noise_ = {noise.weight_variance,
            {noise.item_variance.begin(), noise.item_variance.end()},
            noise.factor_rank};
  prior_ = prior;
}

std::unique_ptr<UnitPass> TrainedScorer::TakeIdle() const {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<UnitPass> pass = std::move(idle_.back());
  idle_.pop_back();
  return pass;
}

Status TrainedScorer::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(layout_.has_value(), "a scorer needs a published model");
  std::unique_ptr<UnitPass> pass = TakeIdle();
  if (pass == nullptr) {
    pass = std::make_unique<UnitPass>(*layout_, ops::MakeCpuUnitOps(ops::Precision::kF32), prior_);
    TACIT_RETURN_IF_ERROR(pass->BeginStep(weights_, noise_.view()));
  }
  TACIT_RETURN_IF_ERROR(pass->Score(history, scores));
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(pass));
  return {};
}

}  // namespace tacit::model
