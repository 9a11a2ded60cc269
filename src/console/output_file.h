#pragma once

#include <string>

#include "base/result.h"

namespace tacit::console {

// Gives no access to others than owner and group to any file that this process makes from now on.
void KeepOthersOut();

// Files that options name. An empty path means no file. A device or a pipe is written to as it is.

// Checks early, before hours of runs, that WriteFile will be able to write the file. Changes
// nothing.
Status CheckWritable(const char* option, const std::string& path);
// The same of a file that lines are added to. Leaves no file behind that was not there before.
Status CheckAppendable(const char* option, const std::string& path);
// Writes a whole file over what is there, or leaves that as it is.
Status WriteFile(const std::string& path, const std::string& text);
// Makes a file that only its owner may read and write. kInvalidArgument: there is one of this name.
Status WriteNewSecret(const std::string& path, const std::string& text);

}  // namespace tacit::console
