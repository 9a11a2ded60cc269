#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacit {

// Opens a file to read it, and waits for nobody. kNotFound, kIo, or kInvalidArgument for what is no
// regular file: a pipe that nobody writes to would hold its reader up, and a device has no end. The
// message begins with the path.
Result<UniqueFd> OpenRegularFile(const std::string& path);

// Returns a file's bytes. Fails as OpenRegularFile does, and with kIo where the disk does.
Result<std::string> ReadRegularFile(const std::string& path);

}  // namespace tacit
