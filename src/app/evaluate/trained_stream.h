#pragma once

#include <memory>
#include <string_view>

#include "app/evaluate/stream_method.h"

namespace tacit::app {

// REQUIRES a name of trained_model.h. One model is trained on through all periods, optimiser and
// average with it. Items from before a period are what a user's new ones are predicted from, and
// are not predicted again.
//
// With privacy every step takes all users of its period, so that the steps and what is released
// before them (stream_start.h) are one Gaussian, added up exactly, and nothing but noised sums
// depends on who was there: neither the divisor nor the number of steps. Without, steps take some
// at random.
// `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeTrainedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers);

}  // namespace tacit::app
