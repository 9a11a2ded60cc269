#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/result.h"

namespace tacit {

// The refusal of bytes in a format that only programs before 0.1.0 wrote. `what` names the file or
// the place, `advice` says what to do.
inline tl::unexpected<Error> WrittenBeforeFirst(std::string_view what, std::string_view advice) {
  return Fail(
      ErrorCode::kRefused,
      fmt::format("{} was written before 0.1.0, the first version whose formats are read: {}", what,
                  advice));
}

}  // namespace tacit
