#include "config/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tacit::config {

Result<std::string> ReadTextFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // Streaming an empty buffer into `text` would count as a failure.
  const bool is_empty = file && file.peek() == std::ifstream::traits_type::eof() && errno == 0;
  if (file && !is_empty) text << file.rdbuf();
  if (!is_empty && (!file || !text)) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Fail(
        code, fmt::format("{}: cannot be read: {}", path, std::strerror(errno == 0 ? EIO : errno)));
  }
  return std::move(text).str();
}

}  // namespace tacit::config
