#pragma once

#include "base/threads/worker_pool.h"
#include "model/sequence/logit_prior.h"
#include "model/transitions/estimate.h"
#include "model/transitions/options.h"

namespace tacit::model {

// Gives DecayedLogits, under the model's own decay, the logits of a count model's scores S:
// weight log(1 + S_ab / (3 mean of S)). A score far below the mean cannot be distinguished from
// it, so its logarithm carries no information. They are a table of all pairs where it has room
// (transitions::Options::IsDense); else each row is made where it is needed, out of the cells that
// were measured and of groups of items (transitions::Scorer).
void SetCountedLogits(const transitions::Estimate& estimate, const transitions::Options& options,
                      double weight, WorkerPool& workers, DecayedLogits* logits);

}  // namespace tacit::model
