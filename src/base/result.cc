#include "base/result.h"

namespace tacit {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kCorruption:
      return "corruption";
    case ErrorCode::kIo:
      return "input/output error";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kRefused:
      return "refused";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace tacit
