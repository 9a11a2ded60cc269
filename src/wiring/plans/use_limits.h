#pragma once

#include <map>
#include <string>

#include "config/config.h"
#include "privacy/forecast.h"

namespace tacit::wiring {

// Says how often a configuration lets a record be used, by account: its learners', those of the
// figures that everybody may see, and the breaker's.
std::map<std::string, privacy::UseLimits> LimitsByAccount(const config::Config& config);

}  // namespace tacit::wiring
