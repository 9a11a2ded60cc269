#include "store/disk/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/disk/row_families.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
constexpr double kMiB = 1 << 20;

std::string LockFileOf(const std::string& store) { return store + "/LOCK"; }

std::string Advice(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return fmt::format(
          "; the folder of a store, and all in it, must belong to the user that runs this program, "
          "which is user {} here",
          geteuid());
    case EROFS:
      return "; name a store.path that may be written (under systemd: in StateDirectory or "
             "ReadWritePaths)";
    case ENOSPC:
    case EDQUOT:
      return "; make room on its disk";
    case ENOTDIR:
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
      return "; store.path must name a folder, or one that can be made";
    default:
      return "";
  }
}

// Errors that waiting does not fix.
bool IsMistake(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

// Makes the folder and those above it. The name of each is on disk before anything is made in it: a
// process that was killed may have made one, and not have synced the folder above.
std::error_code Make(const fs::path& folder, mode_t mode) {
  const fs::path parent = folder.parent_path();
  if (parent == folder) return {};
  std::error_code error;
  const bool there = fs::is_directory(folder, error);
  if (const std::error_code above = Make(parent, 0777); above)
    return above == std::errc::file_exists ? make_error_code(std::errc::not_a_directory) : above;
  const auto failed = [] { return std::error_code(errno, std::system_category()); };
  if (!there && ::mkdir(folder.c_str(), mode) != 0) {
    const std::error_code why = failed();
    if (why != std::errc::file_exists || !fs::is_directory(folder, error)) return why;
  }
  const UniqueFd names(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (names.get() >= 0 && fsync(names.get()) == 0) return {};
  // A folder above may be closed to this user, or on a file system that syncs no folders.
  return there && errno != EIO ? std::error_code() : failed();
}

fs::path FolderOf(const std::string& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

Status CheckAccess(const std::string& path, int mode, std::string_view doing) {
  if (faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0 || errno == ENOENT) return {};
  return Fail(FolderError(errno, doing, path));
}

// Checks whether this process has the file of this name open.
bool IsOpenHere(const std::string& file) {
  struct stat named {};
  if (stat(file.c_str(), &named) != 0) return false;
  std::error_code error;
  for (fs::directory_iterator fd("/proc/self/fd", error), end; !error && fd != end;
       fd.increment(error)) {
    struct stat open {};
    if (stat(fd->path().c_str(), &open) != 0) continue;
    if (open.st_dev == named.st_dev && open.st_ino == named.st_ino) return true;
  }
  return false;
}

// The process that holds the lock, 0: none, -1: one not visible from here. REQUIRES that this
// process has not opened the file: closing it would give up its lock.
Result<pid_t> LockHolder(const std::string& store) {
  const std::string file = LockFileOf(store);
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return 0;
  if (fd.get() < 0) return Fail(FolderError(errno, "opening", file));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd.get(), F_GETLK, &lock) != 0) return Fail(FolderError(errno, "asking for", file));
  if (lock.l_type == F_UNLCK) return 0;
  return lock.l_pid > 0 ? lock.l_pid : -1;
}

}  // namespace

Error FolderError(int error, std::string_view doing, const std::string& path) {
  return {IsMistake(error) ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
          fmt::format("{} {}: {}{}", doing, path, std::strerror(error), Advice(error))};
}

Result<UniqueFd> LockFileAlone(const std::string& file, int mode, const std::string& held) {
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode));
  if (lock.get() < 0) return Fail(FolderError(errno, "opening", file));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return errno == EWOULDBLOCK ? Fail(ErrorCode::kUnavailable, held)
                              : Fail(FolderError(errno, "locking", file));
}

std::error_code MakeFolders(const std::string& path) { return Make(FolderOf(path), 0777); }
std::error_code MakeOwnFolder(const std::string& path) { return Make(FolderOf(path), 0750); }

// The folder may be another's, such as a volume of a container; the files are the store's user's.
Status CheckOwner(const std::string& path) {
  struct stat current {};
  if (stat((path + "/CURRENT").c_str(), &current) != 0 || current.st_uid == geteuid()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("store {} belongs to user {}, and this program is run by user {}: user "
                          "{} could not read what it writes there. Run it as that user",
                          path, current.st_uid, geteuid(), current.st_uid));
}

Status PrepareFolder(const std::string& path) {
  std::error_code error = MakeOwnFolder(path);
  if (error) return Fail(FolderError(error.value(), "creating store", path));
  TACIT_RETURN_IF_ERROR(CheckAccess(path, R_OK | W_OK | X_OK, "opening store"));
  TACIT_RETURN_IF_ERROR(CheckAccess(LockFileOf(path), R_OK | W_OK, "opening"));
  for (fs::directory_iterator file(path, error), end; !error && file != end;
       file.increment(error)) {
    const int mode = file->is_directory(error) ? R_OK | W_OK | X_OK : R_OK;
    TACIT_RETURN_IF_ERROR(CheckAccess(file->path(), mode, "opening"));
  }
  TACIT_ASSIGN(const auto folders, FoldersOf(path));
  for (const std::string& folder : folders)
    if (!folder.empty())
      TACIT_RETURN_IF_ERROR(
          CheckAccess(NameIn(path, folder), R_OK | W_OK | X_OK, "opening the shard"));
  return CheckOwner(path);  // last, because root may do all of the above
}

// Opening replays the log into a new table file and writes some small ones. Debian's RocksDB meets
// a full disk there with an assertion, which would end the process without a message. A store that
// was closed in order (Store::Settle) has almost no log.
Status CheckRoom(const std::string& path) {
  auto needed = static_cast<uint64_t>(16 * kMiB);
  std::error_code error;
  for (fs::directory_iterator file(path, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (file->path().extension() != ".log") continue;
    const uint64_t bytes = file->file_size(gone);
    if (!gone) needed += bytes;
  }
  fs::path there = fs::absolute(path, error);
  while (there.has_relative_path() && !fs::exists(there, error)) there = there.parent_path();
  const auto disk = fs::space(there, error);
  if (error || disk.available >= needed) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("store {}: its disk has {:.1f} MiB left, and opening it may take {:.1f}; "
                          "make room there",
                          path, static_cast<double>(disk.available) / kMiB,
                          static_cast<double>(needed) / kMiB));
}

// RocksDB first opens the file, which fails with EACCES without permission; then it requests the
// lock, which Linux refuses with EAGAIN. RocksDB reports ENOLCK for a lock that this process has,
// and the system reports it for a file system without locks.
bool MeansHeld(int error, const std::string& store) {
  return error == EAGAIN || (error == ENOLCK && IsOpenHere(LockFileOf(store)));
}

std::string HolderOf(const std::string& store) {
  if (IsOpenHere(LockFileOf(store))) return "this process";
  const auto holder = LockHolder(store);
  return holder && *holder > 0 ? fmt::format("process {}", *holder) : "another process";
}

Result<bool> IsHeldByAnother(const std::string& path) {
  TACIT_ASSIGN(const pid_t holder, LockHolder(path));
  return holder != 0;
}

Status CheckClosed(const std::string& path) {
  TACIT_ASSIGN(const bool held, IsHeldByAnother(path));
  if (!held) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{} has store {} open: stop it first", HolderOf(path), path));
}

}  // namespace tacit::store
