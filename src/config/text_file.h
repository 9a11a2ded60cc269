#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace tacit::config {

// Returns the content of a file of up to `mib_most` MiB, which may be empty. An error names the
// file and nothing of its content. Fails as OpenRegularFile does: a pipe would hold its reader up.
Result<std::string> ReadTextFile(const std::string& path, size_t mib_most = 64);

}  // namespace tacit::config
