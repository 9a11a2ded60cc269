#include "console/exit_code.h"

#include <cstdio>

#include "base/text.h"

namespace tacit::console {

int Report(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", program, Printable(error.message).c_str());
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:  // something that the user named
      return kExitUsage;
    case ErrorCode::kCorruption:  // another start would find the same
    case ErrorCode::kRefused:
    case ErrorCode::kUnavailable:
      return kExitStoreRefused;
    default:
      return kExitFailed;
  }
}

}  // namespace tacit::console
