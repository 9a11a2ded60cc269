#pragma once

#include <optional>

#include "cuda/learn/step_streams.h"

namespace tacit::cuda::testing {

// Leaves this wait out from here on; nothing if none.
void PlantMissingWait(std::optional<StepPoint> point);

}  // namespace tacit::cuda::testing
