#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "lab/next_item/trained_constants.h"
#include "train/sequence/sequence_stepper.h"

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

// Rounds a number of steps to a whole number, at least 1. kInvalidArgument, naming its origin
// `from`, for one that is not above 0 or is too large.
Result<uint64_t> StepsOf(std::string_view from, double steps);

// kInvalidArgument, naming the constant, where the histogram of items would get none of mu, or all
// of it.
Status CheckHistogramShare(const TrainedConstants& constants);
// Does the same for the counts of a model that begins with them, and for the weight of their
// logits.
Status CheckCounts(const TrainedConstants& constants);

}  // namespace tacit::lab
