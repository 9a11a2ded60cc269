#pragma once

#include <cstddef>
#include <memory>

#include "base/hash.h"
#include "base/result.h"
#include "config/config.h"
#include "event/item_catalogue.h"
#include "train/sequence/sequence_learner.h"
#include "train/transitions_learner.h"

// From the configuration of a learner of the next item to its rooms' options. The secret that users
// are known under is the store's, and not in them yet.
namespace tacit::app {

// REQUIRES a learner of model sequence; of model transitions.
Result<train::SequenceLearnerOptions> PlanSequence(const config::Config& config, size_t index,
                                                   const event::ItemCatalogue& items);
Result<train::TransitionsLearnerOptions> PlanTransitions(const config::Config& config, size_t index,
                                                         const event::ItemCatalogue& items);

// Of everything that makes what is stored this learner's.
Digest FingerprintOf(const train::SequenceLearnerOptions& options,
                     const event::ItemCatalogue& items);
Digest FingerprintOf(const train::TransitionsLearnerOptions& options,
                     const event::ItemCatalogue& items);

}  // namespace tacit::app
