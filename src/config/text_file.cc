#include "config/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace tacit::config {
Result<std::string> ReadTextFile(const std::string& path, size_t mib_most) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char piece[1 << 16];
  while (file && text.size() >> 20 <= mib_most) {
    file.read(piece, sizeof(piece));
    text.append(piece, static_cast<size_t>(file.gcount()));
  }
  if (text.size() >> 20 > mib_most)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: is longer than {} MiB", path, mib_most));
  if (file.eof() && !file.bad()) return text;
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Fail(code,
              fmt::format("{}: cannot be read: {}", path, std::strerror(errno == 0 ? EIO : errno)));
}

}  // namespace tacit::config
