#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "model/sequence/layout.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/unit_pass.h"
#include "model/sequence/variance.h"

namespace tacit::app {

// Scores histories by a sequence model as it was when it was published, from any thread, while the
// model itself is learnt on. Publish and Score must not be at the same time.
class TrainedScorer {
 public:
  // What Score goes by from now on: copies of all, but for `prior`, which may be null and must
  // outlive the scores.
  void Publish(const model::SequenceLayout& layout, std::span<const float> weights,
               const model::ParameterNoise& noise, const model::LogitPrior* prior);
  // A score for every item of the catalogue, of what may follow this history. REQUIRES Publish.
  void Score(std::span<const uint32_t> history, std::span<float> scores) const;

 private:
  std::unique_ptr<model::UnitPass> TakeIdle() const;

  std::optional<model::SequenceLayout> layout_;
  std::vector<float> weights_, item_variance_;
  model::ParameterNoise noise_;
  const model::LogitPrior* prior_ = nullptr;
  // Passes that nobody uses at the moment.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<model::UnitPass>> idle_;
};

}  // namespace tacit::app
