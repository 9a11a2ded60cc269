#pragma once

#include <string>

#include "base/result.h"

namespace tacit::config {

// All of a file, which may be empty. Fails, naming the file and nothing of what it holds.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace tacit::config
