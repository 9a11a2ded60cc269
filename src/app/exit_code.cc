#include "app/exit_code.h"

#include <cstdio>

namespace tacit::app {

int Report(const Error& error) {
  std::fprintf(stderr, "tacit: %s\n", error.message.c_str());
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
