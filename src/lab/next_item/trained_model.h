#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "lab/next_item/sequence_method.h"
#include "lab/next_item/trained_constants.h"
#include "train/sequence/sequence_learner.h"

namespace tacit::lab {

// dpformer (paper 000's transformer with Re-Attention), transformer (without it),
// transformer-untied (and without shared embeddings), gru, lstm; transitions+transformer, which
// adds its logits to those of the shaped count model, released with a share of the promise.
std::span<const std::string_view> TrainedMethodNames();
// Returns true if the model's logits begin with those of counts.
bool BeginsWithCounts(std::string_view name);

// The model of this name and its training, except what depends on the data: the catalogue, the
// divisor, the steps, the noise. REQUIRES a name in TrainedMethodNames.
train::SequenceTrainingOptions TrainingOf(std::string_view name, const TrainedConstants& constants,
                                          bool is_private);

// The learner of this name, except what depends on the data: the divisor, the steps, the noise. A
// model that begins with counts releases them at the opening of a period; another releases a
// histogram of items, if its logits begin with popularity or Re-Attention needs it against noise.
// kInvalidArgument, naming it, for an invalid constant. REQUIRES a name in TrainedMethodNames, and
// a catalogue, which must outlive the learner.
Result<train::SequenceLearnerOptions> LearnerOf(std::string_view name,
                                                const SequenceSetting& setting, uint32_t catalogue,
                                                bool is_private);
// The opening's share of a period's mu^2.
double OpeningShare(train::SequenceStartOptions::Kind kind, const TrainedConstants& constants);

// Rounds a number of steps to a whole number, at least 1. kInvalidArgument, naming its origin
// `from`, for one that is not above 0 or is too large.
Result<uint64_t> StepsOf(std::string_view from, double steps);

}  // namespace tacit::lab
