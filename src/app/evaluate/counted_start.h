#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/sequence/logit_prior.h"
#include "model/transitions/catalogue.h"
#include "model/transitions/estimate.h"
#include "model/transitions/options.h"
#include "noise/noise.h"

namespace tacit::app {

// What counts know of the next item, as the logits that a trained model begins with.
struct CountedStart {
  std::unique_ptr<model::LogitPrior> prior;
  double mu_squared = 0;  // what the release cost; infinite without noise
};

// kInvalidArgument for a catalogue of which no table of all pairs is kept.
Status CheckCountedLogits(uint64_t items, const model::transitions::Options& options);
// The table of model::DecayedLogits, under the model's own decay, that is made of a count model's
// scores S: weight log(S_ab + 3 mean of S), less a constant. What is far below the mean cannot be
// told from it, so that its logarithm says nothing. REQUIRES such a catalogue.
std::vector<float> CountedLogits(const model::transitions::Estimate& estimate,
                                 const model::transitions::Options& options, double weight,
                                 WorkerPool& workers);

// Releases the shaped count model with `mu`, infinite for none of its noise, and makes logits of
// it. Refuses what CheckCountedLogits does.
Result<CountedStart> ReleaseCountedStart(const model::Histories& train,
                                         const model::transitions::Catalogue& catalogue,
                                         const model::transitions::Options& options, double weight,
                                         double mu, noise::NoiseSource& noise, WorkerPool& workers,
                                         const std::function<void(double)>& progress);

}  // namespace tacit::app
