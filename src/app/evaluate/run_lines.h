#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace tacit::app {

// Calls take(line) for every whole line of a file of finished runs; a file that is not there has
// none. What `take` refuses is named by file and line. A last line without its newline was cut
// short while it was written: the file is cut off before it, if that is how a run begins. Otherwise
// the file is somebody else's, refused by name and left as it is.
Status ReadRunLines(const std::string& path,
                    const std::function<Status(const std::string& line)>& take);

}  // namespace tacit::app
