#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/sequence/logit_prior.h"
#include "model/transitions/options.h"
#include "model/transitions/public_items.h"
#include "noise/noise.h"

namespace tacit::lab {

// Counts of what follows each item, as the initial logits of a trained model.
struct CountedStart {
  std::unique_ptr<model::LogitPrior> prior;
  double mu_squared = 0;  // the release's cost; infinite without noise
};

// Releases the shaped count model with `mu` (infinite: without noise) and turns it into logits.
// Fails where
// model::CheckCountedLogits does.
Result<CountedStart> ReleaseCountedStart(const model::Histories& train,
                                         const model::transitions::PublicItems& catalogue,
                                         const model::transitions::Options& options, double weight,
                                         double mu, noise::NoiseSource& noise, WorkerPool& workers,
                                         const std::function<void(double)>& progress);

}  // namespace tacit::lab
