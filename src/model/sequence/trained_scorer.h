#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "model/sequence/layout.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/unit_pass.h"
#include "model/sequence/variance.h"

namespace tacit::model {

// Scores histories with a published copy of a sequence model, from any thread, while the model
// itself continues training. Publish and Score must not run at the same time. Keeps working memory
// for as many threads as have scored at once.
class TrainedScorer {
 public:
  // Sets the model for later calls of Score. Copies everything except `prior`, which may be null
  // and must outlive the calls of Score.
  void Publish(const SequenceLayout& layout, std::span<const float> weights,
               const ParameterNoise& noise, const LogitPrior* prior);
  // Scores every item of the catalogue as the next one after this history. Fails where memory loses
  // the right to execute code. REQUIRES Publish.
  Status Score(std::span<const uint32_t> history, std::span<float> scores) const;

 private:
  std::unique_ptr<UnitPass> TakeIdle() const;

  std::optional<SequenceLayout> layout_;
  std::vector<float> weights_;
  KeptNoise noise_;
  const LogitPrior* prior_ = nullptr;
  // Passes that are not in use.
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<UnitPass>> idle_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::model
