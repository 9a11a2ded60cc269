#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "privacy/event.h"

namespace tacit::app {

struct CountedEvent {
  privacy::Event event;
  uint64_t count = 1;
};

// Events as JSON lines: {"type":"poisson_gaussian","noise_multiplier":1,"sampling_rate":0.01,
// "count":100}; blank lines are skipped. A missing, unknown or superfluous field is refused with
// the file and line named.
Result<std::vector<CountedEvent>> ReadEvents(const std::string& path);

}  // namespace tacit::app
