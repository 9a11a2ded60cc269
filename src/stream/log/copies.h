#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacit::stream {

// Fails where a file begins with the lines of another one, packed or not: a copy of it, whose
// records would count twice. The first thousand lines are compared, and files of fewer than twenty
// are not: these may be alike by chance.
Status CheckNoCopies(const std::vector<std::string>& files);

}  // namespace tacit::stream
