#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit {

// Splits a JSON pointer (RFC 6901) into its keys. Fails where the text is none: "" too, which would
// be the whole of a record.
Result<std::vector<std::string>> KeysOfPointer(std::string_view pointer);

}  // namespace tacit
