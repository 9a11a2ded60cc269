#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace tacit {

// Opens a file to read it, and waits for nobody. kNotFound, kIo, or kInvalidArgument for what is no
// regular file: a pipe that nobody writes to would hold its reader up, and a device has no end. The
// message begins with the path.
Result<UniqueFd> OpenRegularFile(const std::string& path);

// Returns a file's bytes. Fails as OpenRegularFile does, and with kIo where the disk does, with the
// path in front. Of a file that is longer than `bytes_most` it returns the beginning, which is
// longer, too.
Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_most = SIZE_MAX);

}  // namespace tacit
