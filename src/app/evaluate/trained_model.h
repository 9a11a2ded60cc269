#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "app/evaluate/trained_constants.h"
#include "base/result.h"
#include "train/sequence/sequence_stepper.h"

namespace tacit::app {

// dpformer (paper 000's transformer with Re-Attention), transformer (without), transformer-untied
// (and without shared embeddings), gru, lstm; transitions+transformer, whose logits are added to
// those of the shaped count model, released with a share of what is promised.
std::span<const std::string_view> TrainedMethodNames();
// Whether its logits begin with those of counts.
bool BeginsWithCounts(std::string_view name);

// The model of this name and how it is trained, but for what depends on who is learnt from: the
// catalogue, the divisor, the steps, the noise. REQUIRES a name of these.
train::SequenceTrainingOptions TrainingOf(std::string_view name, const TrainedConstants& constants,
                                          bool is_private);

// A run of a number of steps that is about this one: at least one step. kInvalidArgument, naming
// what it came from, for one that is not above 0 or too large to be taken.
Result<uint64_t> StepsOf(std::string_view from, double steps);

// kInvalidArgument, naming it, where the histogram of items would have none of mu, or all of it.
Status CheckHistogramShare(const TrainedConstants& constants);
// The same of counts that are begun with, and of the weight of their logits.
Status CheckCounts(const TrainedConstants& constants);

}  // namespace tacit::app
