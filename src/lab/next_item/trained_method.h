#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/sequence_method.h"
#include "lab/next_item/stream_method.h"

namespace tacit::lab {

// The learners of trained_model.h: train::SequenceLearner over histories in memory. REQUIRES such a
// name, and a catalogue.
//
// All histories at once are one period, whose steps sample users. Noise of the steps and the
// release at the period's opening are calibrated together.
std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting);

// A stream trains one model, with its optimiser and average, through all periods. With privacy
// every step takes all users of its period, so that the steps and the release before them are one
// Gaussian, added up exactly, and nothing but noised sums depends on who was there: neither the
// divisor nor the number of steps. Without privacy, steps sample users at random. `workers` must
// outlive it.
std::unique_ptr<StreamMethod> MakeTrainedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers);

}  // namespace tacit::lab
