#include "base/files/is_there.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace tacit {

// Nothing has a name that is too long.
bool MeansAbsent(int error) { return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG; }

Result<bool> IsThere(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return true;
  if (MeansAbsent(errno)) return false;
  const bool mistake = errno == EACCES || errno == ELOOP;
  return Fail(mistake ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
              fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace tacit
