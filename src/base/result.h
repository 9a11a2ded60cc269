#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace tacit {

// The kind of a failure, by what a caller can do about it, not by where it happened.
enum class ErrorCode {
  kInvalidArgument,  // the request is wrong: configuration, request, command line
  kNotFound,         // a file, key or learner that is not there
  kCorruption,       // stored bytes are not what was written
  kIo,               // the operating system said no (disk full, broken pipe)
  kUnavailable,      // may work later: locked, busy, not yet committed
  kRefused,          // would break a promise: an older store, another model, a spent budget
  kInternal,         // a library failed unexpectedly
};

std::string_view ErrorCodeName(ErrorCode code);

// An expected failure. The message is one sentence that names the file, field or offset.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // Prefixes the message with the action that failed: "reading a.tsv: no such file".
  Error Context(std::string_view doing) && {
    message.insert(0, std::string(doing) + ": ");
    return std::move(*this);
  }
};

// The outcome of an operation that can fail. Programmer errors are TACIT_CHECKs instead.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};
using Status = Result<void>;

// Builds a failure: `return Fail(ErrorCode::kIo, fmt::format(...))`.
[[nodiscard]] inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace tacit

#define TACIT_CONCAT_INNER(a, b) a##b
#define TACIT_CONCAT(a, b) TACIT_CONCAT_INNER(a, b)

// Returns from the function with the failure of `expr`, a Status or Result.
#define TACIT_RETURN_IF_ERROR(expr)                                             \
  do {                                                                          \
    auto tacit_status_ = (expr);                                                \
    if (!tacit_status_) return ::tacit::Fail(std::move(tacit_status_.error())); \
  } while (false)

// `TACIT_ASSIGN(auto file, OpenFile(path));` declares `file`, or returns with the failure.
#define TACIT_ASSIGN(decl, expr) \
  TACIT_ASSIGN_INNER(TACIT_CONCAT(tacit_result_, __LINE__), decl, expr)
#define TACIT_ASSIGN_INNER(name, decl, expr)                \
  auto name = (expr);                                       \
  if (!name) return ::tacit::Fail(std::move(name.error())); \
  decl = std::move(*name)
