#pragma once

#include <string>

#include "base/result.h"

namespace tacit::app {

// Whether a file that an option names can be written: found out before hours of runs. What was not
// there is not there afterwards. An empty path is no file.
Status CheckWritable(const char* option, const std::string& path);
// An empty path is no file.
Status WriteFile(const std::string& path, const std::string& text);

}  // namespace tacit::app
