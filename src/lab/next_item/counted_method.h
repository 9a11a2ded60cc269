#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/sequence_method.h"

namespace tacit::lab {

// The learner that counts once: transitions, transitions-no-items or popularity.
std::unique_ptr<SequenceMethod> MakeCountedMethod(std::string_view name,
                                                  const SequenceSetting& setting);

}  // namespace tacit::lab
