#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "lab/next_item/constants.h"
#include "lab/next_item/method.h"
#include "train/sequence/sequence_learner.h"

namespace tacit::lab {

// dpformer (paper 000's transformer with Re-Attention), transformer (without it),
// transformer-untied (and without shared embeddings), gru, lstm; transitions+transformer, which
// adds its logits to those of the shaped count model, released with a share of the promise.
std::span<const std::string_view> TrainedMethodNames();
// Returns true if the model's logits begin with those of counts.
bool BeginsWithCounts(std::string_view name);

// The daemon's learner of this name, except what depends on the data: the divisor, the steps, the
// noise. A model that begins with counts releases them at the opening of a period; another releases
// a histogram of items, if its logits begin with popularity or Re-Attention needs it against noise.
// kInvalidArgument, naming it, for an invalid constant. REQUIRES a name in TrainedMethodNames, and
// a catalogue, which must outlive the learner.
Result<train::SequenceLearnerOptions> LearnerOf(std::string_view name,
                                                const SequenceSetting& setting, bool is_private);

// train::SequenceLearner over histories in memory: one model, with its optimiser and average,
// through all periods. With privacy every step of a stream takes all users of its period, so that
// the steps and the release before them are one Gaussian, added up exactly, and nothing but noised
// sums depends on who was there: neither the divisor nor the number of steps. Without privacy, and
// where all histories are learnt at once, steps sample users. `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeTrainedMethod(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers);

}  // namespace tacit::lab
