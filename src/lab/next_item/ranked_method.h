#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/sequence_method.h"

namespace tacit::lab {

inline constexpr std::string_view kRankedMethod = "transitions+ranker";

// The shaped count model with a small private model that reorders its likeliest items by their
// other features (model/ranking), under one promise. It does not recommend items that the user
// already had. REQUIRES a catalogue.
std::unique_ptr<SequenceMethod> MakeRankedMethod(const SequenceSetting& setting);

}  // namespace tacit::lab
