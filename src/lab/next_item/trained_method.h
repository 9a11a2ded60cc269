#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/sequence_method.h"

namespace tacit::lab {

// REQUIRES a name of trained_model.h, and a catalogue if the model begins with counts. Trains with
// DP-SGD, where each user with the whole of his history is one unit; trains without privacy if
// nothing is promised.
std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting);

}  // namespace tacit::lab
