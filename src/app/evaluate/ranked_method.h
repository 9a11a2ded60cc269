#pragma once

#include <memory>
#include <string_view>

#include "app/evaluate/sequence_method.h"

namespace tacit::app {

inline constexpr std::string_view kRankedMethod = "transitions+ranker";

// The shaped count model, and a small private model that puts its likeliest items in order by what
// else is known of them (model/ranking), under one promise. What a user has had is not
// recommended again. REQUIRES a catalogue.
std::unique_ptr<SequenceMethod> MakeRankedMethod(const SequenceSetting& setting);

}  // namespace tacit::app
