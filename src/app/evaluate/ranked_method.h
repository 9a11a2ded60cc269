#pragma once

#include <memory>
#include <string_view>

#include "app/evaluate/sequence_method.h"

namespace tacit::app {

// The shaped count model, and a small private model that puts its likeliest items in order by what
// else is known of them (model/ranking), under one promise. REQUIRES a catalogue.
std::unique_ptr<SequenceMethod> MakeRankedMethod(const SequenceSetting& setting);

}  // namespace tacit::app
