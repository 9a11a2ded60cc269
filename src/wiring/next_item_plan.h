#pragma once

#include <cstddef>
#include <memory>

#include "base/hash.h"
#include "base/result.h"
#include "config/config.h"
#include "event/item_catalogue.h"
#include "train/ranking/ranked_learner.h"
#include "train/sequence/sequence_learner.h"
#include "train/transitions_learner.h"

// Turns the configuration of a next-item learner into options for its rooms. The secret that hashes
// user ids belongs to the store and is not set here.
namespace tacit::wiring {

// The part of a learner of model sequence that no promise decides, for a catalogue of so many
// items: all but its start and its noise. Experiments begin from it too.
train::SequenceLearnerOptions SequenceWithoutNoise(const config::Learner& learner,
                                                   LearnerIndex index, uint32_t items);

// REQUIRES a learner of model sequence, or of model transitions, without or with its ranker.
Result<train::SequenceLearnerOptions> PlanSequence(const config::Config& config, size_t index,
                                                   const event::ItemCatalogue& items);
Result<train::TransitionsLearnerOptions> PlanTransitions(const config::Config& config, size_t index,
                                                         const event::ItemCatalogue& items);
Result<train::RankedLearnerOptions> PlanRanked(const config::Config& config, size_t index,
                                               const event::ItemCatalogue& items);

// A digest of everything that determines whether stored state is this learner's.
Digest FingerprintOf(const train::SequenceLearnerOptions& options,
                     const event::ItemCatalogue& items);
Digest FingerprintOf(const train::TransitionsLearnerOptions& options,
                     const event::ItemCatalogue& items);
Digest FingerprintOf(const train::RankedLearnerOptions& options, const event::ItemCatalogue& items);

}  // namespace tacit::wiring
