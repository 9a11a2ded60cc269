#include "base/is_there.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace tacit {

Result<bool> IsThere(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  const bool mistake = errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG;
  return Fail(mistake ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
              fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace tacit
