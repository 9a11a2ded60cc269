#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace tacit::lab {

// Calls take(line) for every whole line of a file of finished runs; a missing file has none. Errors
// of `take` get the file and line. A last line without its newline was cut short during writing: if
// it begins like a run, the file is truncated before it. Otherwise the file is not a file of runs;
// it is refused by name and left unchanged.
Status ReadRunLines(const std::string& path,
                    const std::function<Status(const std::string& line)>& take);

}  // namespace tacit::lab
