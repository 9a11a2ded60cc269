#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "event/dead_letters.h"

namespace tacit::wiring {

// Opens the topic of dead letters, or their file if no topic is named. `lineage` is the store's.
Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetters(const config::Config& config,
                                                               const std::string& lineage);
// The name of that topic or file, for messages.
const std::string& PlaceOfDeadLetters(const config::Config& config);

}  // namespace tacit::wiring
