#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "app/evaluate/sequence_method.h"
#include "app/evaluate/trained_constants.h"

namespace tacit::app {

// dpformer (paper 000's transformer with Re-Attention), transformer (without), transformer-untied
// (and without shared embeddings), gru, lstm.
std::span<const std::string_view> TrainedMethodNames();
// REQUIRES a name of these. Trains with DP-SGD, each user one unit with the whole of a history;
// without privacy where nothing is promised.
std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const TrainedConstants& constants);

}  // namespace tacit::app
