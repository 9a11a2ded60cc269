#pragma once

#include <string_view>

#include "config/config.h"

namespace tacit::config {

// Returns true if a value written at this dotted path may be, or hold, a secret.
bool MayHoldSecret(std::string_view path);

}  // namespace tacit::config
