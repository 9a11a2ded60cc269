#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "app/evaluate/sequence_method.h"

namespace tacit::app {

// dpformer (paper 000's transformer with Re-Attention), transformer (without), transformer-untied
// (and without shared embeddings), gru, lstm; transitions+transformer, whose logits are added to
// those of the shaped count model, released with a share of what is promised.
std::span<const std::string_view> TrainedMethodNames();
// Whether its logits begin with those of counts.
bool BeginsWithCounts(std::string_view name);
// REQUIRES a name of these, and a catalogue where counts are begun with. Trains with DP-SGD, each
// user one unit with the whole of a history; without privacy where nothing is promised.
std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting);

}  // namespace tacit::app
