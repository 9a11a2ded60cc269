#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "privacy/event.h"

namespace tacit::cli {

// Events as JSON lines: {"type":"poisson_gaussian","noise_multiplier":1,"sampling_rate":0.01,
// "count":100}, or {"type":"allocation","noise_multiplier":1,"steps":10}; blank lines are skipped.
// A missing, unknown, superfluous or repeated field is refused with the file and line named.
Result<std::vector<privacy::CountedEvent>> ReadEvents(const std::string& path);

}  // namespace tacit::cli
