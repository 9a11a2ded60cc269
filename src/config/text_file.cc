#include "config/text_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/regular_file.h"

namespace tacit::config {

Result<std::string> ReadTextFile(const std::string& path, size_t mib_most) {
  const auto unreadable = [&](ErrorCode code, std::string_view why) {
    return Fail(code, fmt::format("{}: cannot be read: {}", path, why));
  };
  const auto file = OpenRegularFile(path);
  if (!file) return unreadable(file.error().code, file.error().message.substr(path.size() + 2));
  std::string text;
  std::array<char, 1 << 16> piece;
  while (text.size() >> 20 <= mib_most) {
    const ssize_t got = ::read(file->get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(ErrorCode::kIo, std::strerror(errno));
    if (got == 0) return text;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: is longer than {} MiB", path, mib_most));
}

}  // namespace tacit::config
