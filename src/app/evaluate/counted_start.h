#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/sequence/logit_prior.h"
#include "model/transitions/catalogue.h"
#include "model/transitions/options.h"
#include "noise/noise.h"

namespace tacit::app {

// What counts know of the next item, as the logits that a trained model begins with.
struct CountedStart {
  std::unique_ptr<model::LogitPrior> prior;
  double mu_squared = 0;  // what the release cost; infinite without noise
};

// Releases the shaped count model with `mu`, infinite for none of its noise, and makes logits of
// its scores S: weight * sum of decay^age log(S_ab + 3 mean of S), with the model's own decay. What
// is far below the mean cannot be told from it, so that its logarithm says nothing. Refuses, as
// kInvalidArgument, a catalogue of which no table of all pairs is kept.
Result<CountedStart> ReleaseCountedStart(const model::Histories& train,
                                         const model::transitions::Catalogue& catalogue,
                                         const model::transitions::Options& options, double weight,
                                         double mu, noise::NoiseSource& noise, WorkerPool& workers,
                                         const std::function<void(double)>& progress);

}  // namespace tacit::app
