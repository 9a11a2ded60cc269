#include "base/files/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tacit {

Result<UniqueFd> OpenRegularFile(const std::string& path) {
  const auto system_failure = [&] {
    const int error = errno;  // taking memory for the message may change it
    return Fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                fmt::format("{}: {}", path, std::strerror(error)));
  };
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return system_failure();
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_failure();
  if (S_ISDIR(info.st_mode))
    return Fail(ErrorCode::kInvalidArgument, path + ": is a directory, not a file");
  if (!S_ISREG(info.st_mode))
    return Fail(ErrorCode::kInvalidArgument, path + ": is not a regular file");
  return fd;
}

Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_most) {
  TACIT_ASSIGN(const UniqueFd fd, OpenRegularFile(path));
  std::string bytes;
  std::array<char, 1 << 16> piece;
  while (bytes.size() <= bytes_most) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
    if (got == 0) break;
    bytes.append(piece.data(), static_cast<size_t>(got));
  }
  return bytes;
}

}  // namespace tacit
