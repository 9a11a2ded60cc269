#pragma once

#include <string>

#include "base/result.h"

namespace tacit::console {

// Checks early, before hours of runs, that the file named by an option can be written. Leaves no
// file behind that was not there before. An empty path means no file.
Status CheckWritable(const char* option, const std::string& path);
// Does nothing if the path is empty.
Status WriteFile(const std::string& path, const std::string& text);
// Makes a file that only its owner may read and write. kInvalidArgument: there is one of this name.
Status WriteNewSecret(const std::string& path, const std::string& text);

}  // namespace tacit::console
