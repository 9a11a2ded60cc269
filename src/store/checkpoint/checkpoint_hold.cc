#include "store/checkpoint/checkpoint_hold.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace tacit::store {
namespace {

UniqueFd OpenHeld(const std::string& folder) {
  return UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

Result<CheckpointHold> CheckpointHold::Take(const std::string& folder) {
  UniqueFd fd = OpenHeld(folder);
  if (fd.get() < 0)
    return Fail(ErrorCode::kNotFound, fmt::format("{}: {}", folder, std::strerror(errno)));
  struct stat before {
  }, now{};
  if ((::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
      ::fstat(fd.get(), &before) != 0 || ::stat(folder.c_str(), &now) != 0 ||
      before.st_ino != now.st_ino)
    return Fail(ErrorCode::kUnavailable, fmt::format("checkpoint {} is being removed", folder));
  return CheckpointHold(std::move(fd));
}

std::optional<UniqueFd> ClaimForRemoval(const std::string& folder) {
  UniqueFd fd = OpenHeld(folder);
  if (fd.get() >= 0 && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return std::nullopt;
  return fd;
}

}  // namespace tacit::store
