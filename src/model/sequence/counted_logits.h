#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/transitions/estimate.h"
#include "model/transitions/options.h"

namespace tacit::model {

// kInvalidArgument for a catalogue too large for a table of all pairs.
Status CheckCountedLogits(uint64_t items, const transitions::Options& options);
// The table of DecayedLogits, under the model's own decay, made from a count model's scores S:
// weight log(S_ab + 3 mean of S), less a constant. A score far below the mean cannot be
// distinguished from it, so its logarithm carries no information. REQUIRES a catalogue that
// CheckCountedLogits accepts.
std::vector<float> CountedLogits(const transitions::Estimate& estimate,
                                 const transitions::Options& options, double weight,
                                 WorkerPool& workers);

}  // namespace tacit::model
