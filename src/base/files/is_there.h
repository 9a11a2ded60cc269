#pragma once

#include <string>

#include "base/result.h"

namespace tacit {

// Returns whether a system call failed with this errno because nothing is there.
bool MeansAbsent(int error);

// Returns whether the path names something. Fails with the path and the system's words where that
// cannot be seen: a folder that this user may not enter is no proof that nothing is in it.
// kInvalidArgument where it fails until somebody mends it, else kIo.
Result<bool> IsThere(const std::string& path);

}  // namespace tacit
