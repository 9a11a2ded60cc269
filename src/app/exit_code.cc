#include "app/exit_code.h"

#include <cstdio>

namespace tacit::app {

int Report(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", program, error.message.c_str());
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:  // of something that was named
      return kExitUsage;
    case ErrorCode::kRefused:
    case ErrorCode::kUnavailable:
      return kExitStoreRefused;
    default:
      return kExitFailed;
  }
}

}  // namespace tacit::app
