#pragma once

#include <string>

#include "base/result.h"

namespace tacit::config {

// Returns the content of a file, which may be empty. An error names the file and nothing of its
// content.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace tacit::config
