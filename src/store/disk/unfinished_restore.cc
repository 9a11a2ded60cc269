#include "store/disk/unfinished_restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/files/is_there.h"
#include "store/disk/folder.h"
#include "store/disk/row_families.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string WorkFolder(std::string store) {
  while (store.size() > 1 && store.ends_with('/')) store.pop_back();
  return store + ".restoring";
}

std::string RestoreLockFile(const std::string& store) { return WorkFolder(store) + ".lock"; }

Result<RestoreLock> RestoreLock::Take(const std::string& path) {
  const std::string file = RestoreLockFile(path);
  const fs::path parent = fs::absolute(file).parent_path();
  const std::error_code error = MakeFolders(parent);
  if (error) return Fail(FolderError(error.value(), "creating", parent));
  for (;;) {
    TACIT_ASSIGN(UniqueFd lock,
                 LockFileAlone(file, 0644,  // a standby may be another user, and asks
                               fmt::format("another process restores store {}: let it end", path)));
    // The last holder may have removed the file between open and here: then it locks nothing.
    struct stat locked {
    }, named{};
    if (fstat(lock.get(), &locked) == 0 && stat(file.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev)
      return RestoreLock(file, std::move(lock));
  }
}

// A shared lock is refused beside the restore's own, and hinders nobody else who asks.
Result<Restoring> IsBeingRestored(const std::string& path) {
  const std::string file = RestoreLockFile(path);
  const UniqueFd lock(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return Restoring::kNo;
  if (lock.get() < 0 && errno == EACCES) return Restoring::kMayBe;
  if (lock.get() < 0) return Fail(FolderError(errno, "opening", file));
  if (::flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return Restoring::kNo;
  if (errno == EWOULDBLOCK) return Restoring::kYes;
  return Fail(FolderError(errno, "asking for", file));
}

RestoreLock::~RestoreLock() {
  if (lock_.get() >= 0) unlink(file_.c_str());
}

Status RemoveUnfinishedRestore(const std::string& path) {
  const std::string work = WorkFolder(path);
  TACIT_ASSIGN(const bool left, IsThere(work));
  TACIT_ASSIGN(const bool killed, IsThere(RestoreLockFile(path)));
  if (!left || !killed) return {};
  TACIT_ASSIGN(const auto lock, RestoreLock::Take(path));
  return RemoveStore(work);
}

}  // namespace tacit::store
