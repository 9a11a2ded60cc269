#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/stream_method.h"

namespace tacit::lab {

// REQUIRES a name of trained_model.h. One model, with its optimiser and average, is trained through
// all periods. A user's items from before a period serve to predict his new ones, and are not
// predicted again.
//
// With privacy every step takes all users of its period, so that the steps and the release before
// them (stream_start.h) are one Gaussian, added up exactly, and nothing but noised sums depends on
// who was there: neither the divisor nor the number of steps. Without privacy, steps sample users
// at random. `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeTrainedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers);

}  // namespace tacit::lab
