#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "config/config.h"
#include "event/item_catalogue.h"
#include "train/counts/transitions_learner.h"
#include "train/ranking/ranked_learner.h"
#include "train/sequence/sequence_learner.h"
#include "wiring/plans/catalogue_growth.h"
#include "wiring/plans/model_plan.h"

// Turns the configuration of a next-item learner into options for its rooms. The secret that hashes
// user ids belongs to the store and is not set here.
namespace tacit::wiring {

// The part of a learner of model sequence that no promise decides, for a catalogue of this many
// items: all but its start and its noise. Experiments begin from it too.
train::SequenceLearnerOptions SequenceWithoutNoise(const config::Learner& learner,
                                                   LearnerIndex index, uint32_t items);

// REQUIRES a catalogue, and a learner of model sequence, or of model transitions, without or with
// its ranker.
Result<train::SequenceLearnerOptions> PlanSequence(const PlanParts& parts);
Result<train::TransitionsLearnerOptions> PlanTransitions(const PlanParts& parts);
Result<train::RankedLearnerOptions> PlanRanked(const PlanParts& parts);

// The same options for another catalogue, as far as a fingerprint and what was released depend on
// it.
train::SequenceLearnerOptions ForCatalogue(const train::SequenceLearnerOptions& options,
                                           const event::ItemCatalogue& items);
train::TransitionsLearnerOptions ForCatalogue(const train::TransitionsLearnerOptions& options,
                                              const event::ItemCatalogue& items);
train::RankedLearnerOptions ForCatalogue(const train::RankedLearnerOptions& options,
                                         const event::ItemCatalogue& items);

// A digest of everything that determines whether stored state is this learner's.
Digest FingerprintOf(const train::SequenceLearnerOptions& options,
                     const event::ItemCatalogue& items);
Digest FingerprintOf(const train::TransitionsLearnerOptions& options,
                     const event::ItemCatalogue& items);
Digest FingerprintOf(const train::RankedLearnerOptions& options, const event::ItemCatalogue& items);

// A stored model that is to go on: its options, and its catalogue.
template <class Options>
struct ModelBefore {
  Options options;
  CatalogueBefore catalogue;

  // The place of each item if any has moved; else empty.
  std::span<const uint32_t> places() const {
    return catalogue.InOrder() ? std::span<const uint32_t>() : catalogue.places;
  }
};

// The stored model that is to go on with these options. kRefused: more than its catalogue differs,
// or the catalogue lacks an item.
template <class Options>
Result<ModelBefore<Options>> FindModelBefore(const store::StoredModel& stored,
                                             const Options& options,
                                             const event::ItemCatalogue& items) {
  TACIT_ASSIGN(auto before, FindCatalogueBefore(stored, items));
  Options were = ForCatalogue(options, before.catalogue);
  TACIT_RETURN_IF_ERROR(CheckOnlyItemsDiffer(stored, FingerprintOf(were, before.catalogue)));
  return ModelBefore<Options>{.options = std::move(were), .catalogue = std::move(before)};
}

}  // namespace tacit::wiring
