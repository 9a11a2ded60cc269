#pragma once

#include <memory>
#include <utility>

#include "train/counts/transitions_release.h"

namespace tacit::train {

// The release of a single period.
struct TransitionsRelease {
  std::unique_ptr<model::transitions::ReleasedModel> model;
  TransitionsCharge charge;

  const model::transitions::Estimate& estimate() const { return model->estimate(); }
};

// Releases one period on a new model. `catalogue` and `workers` must outlive the result.
inline Result<TransitionsRelease> ReleaseTransitions(
    const model::Histories& histories, const model::transitions::PublicItems& catalogue,
    const model::transitions::Options& options, double mu, noise::NoiseSource& noise,
    WorkerPool& workers, const TransitionsProgress& progress = {}) {
  auto model = std::make_unique<model::transitions::ReleasedModel>(catalogue, options, workers);
  TACIT_ASSIGN(auto charge, ReleaseTransitionsPeriod({.histories = histories}, mu, noise, workers,
                                                     model.get(), progress));
  return TransitionsRelease{.model = std::move(model), .charge = std::move(charge)};
}

}  // namespace tacit::train
