#include "stream/log/standard_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace tacit::stream {
namespace {

constexpr int kMomentMs = 100;

tl::unexpected<Error> InputFailure(std::string_view why) {
  return Fail(ErrorCode::kIo, fmt::format("{}: {}", kStandardInputShown, why));
}

}  // namespace

StandardInput& StandardInput::Get() {
  static StandardInput input;
  return input;
}

void StandardInput::Keep(uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (come_ == kept_.size()) keep_ = std::max(keep_, bytes);
}

void StandardInput::KeepNext(uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (come_ == kept_.size()) keep_ = come_ + bytes;
}

Result<StandardInput::Got> StandardInput::ReadNext(std::span<char> out) {
  if (ended_) return Got{};
  pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int outcome = ::poll(&ready, 1, kMomentMs);
  if (outcome == 0 || (outcome < 0 && errno == EINTR)) return Got{.waits = true};
  const ssize_t got = outcome < 0 ? -1 : ::read(STDIN_FILENO, out.data(), out.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return Got{.waits = true};
  if (got < 0) return InputFailure(std::strerror(errno));
  ended_ = got == 0;
  const auto bytes = static_cast<size_t>(got);
  if (come_ == kept_.size() && come_ < keep_)
    kept_.append(out.data(), std::min<uint64_t>(bytes, keep_ - come_));
  come_ += bytes;
  return Got{.bytes = bytes};
}

Result<uint64_t> StandardInput::Begin() {
  if (::isatty(STDIN_FILENO) != 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is a terminal: send records into it (PROGRAM | tacitd ...)",
                            kStandardInputShown));
  const MutexLock lock(mutex_);
  // No byte more than is kept: nobody else gets what is read here.
  std::vector<char> first(kKeptBytes);
  while (come_ < kKeptBytes && !ended_)
    TACIT_RETURN_IF_ERROR(ReadNext(std::span(first).subspan(come_)));
  return come_;
}

Result<StandardInput::Got> StandardInput::ReadAt(uint64_t offset, std::span<char> out) {
  const MutexLock lock(mutex_);
  if (offset < kept_.size()) {
    const size_t bytes = std::min<uint64_t>(out.size(), kept_.size() - offset);
    std::memcpy(out.data(), kept_.data() + offset, bytes);
    return Got{.bytes = bytes};
  }
  if (offset != come_)
    return InputFailure(
        fmt::format("it comes once, and only its first {} bytes can be read again", kept_.size()));
  return ReadNext(out);
}

}  // namespace tacit::stream
