#pragma once

#include <memory>
#include <string_view>

#include "app/evaluate/sequence_method.h"

namespace tacit::app {

// REQUIRES a name of trained_model.h, and a catalogue where counts are begun with. Trains with
// DP-SGD, each user one unit with the whole of a history; without privacy where nothing is
// promised.
std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting);

}  // namespace tacit::app
