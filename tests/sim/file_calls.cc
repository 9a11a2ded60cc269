// The C library's calls for files and names. A simulated thread with a disk reaches no other.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "sim/disk.h"
#include "sim/native.h"
#include "sim/process.h"
#include "sim/scheduler.h"

namespace tacit::sim {
namespace {

// The caller's disk for one call; false outside of a simulation with one.
class OnDisk {
 public:
  OnDisk() : world_(Scheduler::current()) {}
  explicit operator bool() const { return world_ != nullptr && world_->disk() != nullptr; }
  Scheduler& world() const { return *world_; }

  Disk& Look() const {
    world_->Point(Call::kFile);
    world_->disk()->now = StartOf(CLOCK_REALTIME) + world_->now();
    return *world_->disk();
  }
  // Ends the process if the power ends before this change.
  Disk& Change() const {
    Disk& disk = Look();
    if (!disk.CountChange()) _exit(kPowerEnded);
    return disk;
  }

 private:
  Scheduler* const world_;
};

int64_t Answer(int64_t answer) {
  if (answer >= 0) return answer;
  errno = static_cast<int>(-answer);
  return -1;
}

int Open(const OnDisk& on, int at, const char* path, int flags, mode_t mode) {
  Disk& disk = (flags & (O_CREAT | O_TRUNC)) != 0 ? on.Change() : on.Look();
  return static_cast<int>(Answer(disk.Open(at, path, flags, mode)));
}

int Sync(const OnDisk& on, int fd) {
  Disk& disk = on.Change();
  if (disk.sync_time_ns > 0)
    on.world().Wait(
        WaitsFor::kTime, nullptr,
        on.world().now() +
            static_cast<int64_t>(on.world().Random() % static_cast<uint64_t>(disk.sync_time_ns)));
  return static_cast<int>(Answer(disk.Sync(fd)));
}

// POSIX locks are of a process, and there is one: it never meets its own.
int Control(const OnDisk& on, int fd, int command, void* argument) {
  Disk& disk = on.Look();
  const int64_t flags = disk.Flags(fd);
  if (flags < 0) return static_cast<int>(Answer(flags));
  switch (command) {
    case F_GETFL:
      return static_cast<int>(flags);
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return static_cast<int>(Answer(disk.Dup(fd)));
    case F_GETLK:
      static_cast<struct flock*>(argument)->l_type = F_UNLCK;
      return 0;
    case F_GETFD:
    case F_SETFD:
    case F_SETFL:
    case F_SETLK:
    case F_SET_RW_HINT:
      return 0;
    default:
      return static_cast<int>(Answer(-EINVAL));
  }
}

int FillSpace(const OnDisk& on, struct statvfs* out) {
  const Disk::Space space = on.Look().space();
  *out = {};
  out->f_bsize = out->f_frsize = 4096;
  out->f_blocks = space.blocks;
  out->f_bfree = out->f_bavail = space.free;
  out->f_namemax = 255;
  return 0;
}

char* CopyPath(const std::string& path, char* out, size_t size) {
  if (out == nullptr) return strdup(path.c_str());
  if (path.size() >= size) return errno = ERANGE, nullptr;
  return strcpy(out, path.c_str());
}

// Streams, by which the C library buffers what our own calls read and write.
std::map<FILE*, int>& Streams() {
  static auto* const streams = new std::map<FILE*, int>;
  return *streams;
}

int FdOf(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }
ssize_t ReadStream(void* cookie, char* to, size_t size) { return read(FdOf(cookie), to, size); }
ssize_t WriteStream(void* cookie, const char* from, size_t size) {
  const ssize_t wrote = write(FdOf(cookie), from, size);
  return wrote < 0 ? 0 : wrote;
}
int SeekStream(void* cookie, off64_t* offset, int whence) {
  *offset = lseek(FdOf(cookie), *offset, whence);
  return *offset < 0 ? -1 : 0;
}
int CloseStream(void* cookie) {
  std::erase_if(Streams(), [&](const auto& stream) { return stream.second == FdOf(cookie); });
  return close(FdOf(cookie));
}

FILE* Stream(int fd, const char* mode) {
  if (fd < 0) return nullptr;
  FILE* const stream = fopencookie(
      reinterpret_cast<void*>(intptr_t{fd}), mode,
      {.read = ReadStream, .write = WriteStream, .seek = SeekStream, .close = CloseStream});
  Streams()[stream] = fd;
  return stream;
}

FILE* OpenStream(const OnDisk& on, const char* path, const char* mode) {
  const bool both = strchr(mode, '+') != nullptr;
  int flags = O_RDONLY;
  if (mode[0] == 'w') flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags = O_WRONLY | O_CREAT | O_APPEND;
  if (both) flags = (flags & ~O_ACCMODE) | O_RDWR;
  return Stream(Open(on, AT_FDCWD, path, flags, 0666), mode);
}

// An open folder: what is in it when it is opened.
struct Folder {
  int fd;
  std::vector<Disk::Entry> entries;
  size_t next = 0;
  dirent entry{};
};

DIR* OpenFolder(const OnDisk& on, int fd) {
  if (fd < 0) return nullptr;
  auto* const folder = new Folder{.fd = fd, .entries = {{".", 1, S_IFDIR}, {"..", 1, S_IFDIR}}};
  if (Answer(on.Look().List(fd, &folder->entries)) < 0) return delete folder, nullptr;
  return reinterpret_cast<DIR*>(folder);
}

dirent* Next(Folder& folder) {
  if (folder.next == folder.entries.size()) return nullptr;
  const Disk::Entry& entry = folder.entries[folder.next++];
  folder.entry.d_ino = entry.inode;
  folder.entry.d_type = IFTODT(entry.mode);
  strcpy(folder.entry.d_name, entry.name.c_str());
  return &folder.entry;
}

}  // namespace
}  // namespace tacit::sim

using tacit::sim::Answer;
using tacit::sim::OnDisk;

#define TACIT_ON_DISK_OR(native) \
  const OnDisk on;               \
  if (!on) return native
#define TACIT_OF_DISK_OR(fd, native) \
  const OnDisk on;                   \
  if (!on || (fd) < tacit::sim::kFirstDescriptor) return native

// NOLINTBEGIN: the C library's names
extern "C" {

#define TACIT_MODE(flags)                       \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list list;                               \
    va_start(list, flags);                      \
    mode = va_arg(list, mode_t);                \
    va_end(list);                               \
  }

int open(const char* path, int flags, ...) {
  TACIT_MODE(flags)
  TACIT_ON_DISK_OR(TACIT_NATIVE(open)(path, flags, mode));
  return tacit::sim::Open(on, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  TACIT_MODE(flags)
  return open(path, flags, mode);
}
int __open_2(const char* path, int flags) { return open(path, flags); }
int openat(int at, const char* path, int flags, ...) {
  TACIT_MODE(flags)
  TACIT_ON_DISK_OR(TACIT_NATIVE(openat)(at, path, flags, mode));
  return tacit::sim::Open(on, at, path, flags, mode);
}
int __openat_2(int at, const char* path, int flags) { return openat(at, path, flags); }

int close(int fd) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(close)(fd));
  return Answer(on.Look().Close(fd));
}
int dup(int fd) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(dup)(fd));
  return Answer(on.Look().Dup(fd));
}
ssize_t read(int fd, void* to, size_t size) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(read)(fd, to, size));
  return Answer(on.Look().Read(fd, static_cast<char*>(to), size));
}
ssize_t pread(int fd, void* to, size_t size, off_t at) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(pread)(fd, to, size, at));
  return Answer(on.Look().Read(fd, static_cast<char*>(to), size, at));
}
ssize_t write(int fd, const void* bytes, size_t size) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(write)(fd, bytes, size));
  return Answer(on.Change().Write(fd, {static_cast<const char*>(bytes), size}));
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(pwrite)(fd, bytes, size, at));
  return Answer(on.Change().Write(fd, {static_cast<const char*>(bytes), size}, at));
}
ssize_t writev(int fd, const iovec* pieces, int count) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(writev)(fd, pieces, count));
  std::string bytes;
  for (int i = 0; i < count; ++i)
    bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  return write(fd, bytes.data(), bytes.size());
}
off_t lseek(int fd, off_t offset, int whence) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(lseek)(fd, offset, whence));
  return Answer(on.Look().Seek(fd, offset, whence));
}
off64_t lseek64(int fd, off64_t offset, int whence) noexcept { return lseek(fd, offset, whence); }
int ftruncate(int fd, off_t bytes) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(ftruncate)(fd, bytes));
  return Answer(on.Change().Resize(fd, bytes));
}
int fallocate(int fd, int mode, off_t at, off_t bytes) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fallocate)(fd, mode, at, bytes));
  return Answer(on.Change().Reserve(fd, mode, at, bytes));
}
int posix_fallocate(int fd, off_t at, off_t bytes) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(posix_fallocate)(fd, at, bytes));
  return static_cast<int>(-on.Change().Reserve(fd, 0, at, bytes));
}
int fsync(int fd) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fsync)(fd));
  return tacit::sim::Sync(on, fd);
}
int fdatasync(int fd) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fdatasync)(fd));
  return tacit::sim::Sync(on, fd);
}
// It promises nothing.
int sync_file_range(int fd, off64_t at, off64_t bytes, unsigned flags) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(sync_file_range)(fd, at, bytes, flags));
  return 0;
}
int posix_fadvise(int fd, off_t at, off_t bytes, int advice) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(posix_fadvise)(fd, at, bytes, advice));
  return 0;
}
ssize_t readahead(int fd, off64_t at, size_t bytes) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(readahead)(fd, at, bytes));
  return 0;
}
int flock(int fd, int operation) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(flock)(fd, operation));
  const int64_t locked = on.Look().Lock(fd, operation);
  if (locked == -EWOULDBLOCK && (operation & LOCK_NB) == 0)
    on.world().GiveUp("a thread waits for a file's lock, which its own process holds");
  return Answer(locked);
}
#define TACIT_CONTROL(name)                                          \
  int name(int fd, int command, ...) {                               \
    va_list list;                                                    \
    va_start(list, command);                                         \
    void* const argument = va_arg(list, void*);                      \
    va_end(list);                                                    \
    TACIT_OF_DISK_OR(fd, TACIT_NATIVE(name)(fd, command, argument)); \
    return tacit::sim::Control(on, fd, command, argument);           \
  }
TACIT_CONTROL(fcntl)
TACIT_CONTROL(fcntl64)

int fstat(int fd, struct stat* out) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fstat)(fd, out));
  return Answer(on.Look().StatOpen(fd, out));
}
int fstat64(int fd, struct stat64* out) noexcept {
  return fstat(fd, reinterpret_cast<struct stat*>(out));
}
int fstatat(int at, const char* path, struct stat* out, int flags) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(fstatat)(at, path, out, flags));
  return Answer(on.Look().Stat(at, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, out));
}
int stat(const char* path, struct stat* out) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(stat)(path, out));
  return Answer(on.Look().Stat(AT_FDCWD, path, true, out));
}
int stat64(const char* path, struct stat64* out) noexcept {
  return stat(path, reinterpret_cast<struct stat*>(out));
}
int lstat(const char* path, struct stat* out) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(lstat)(path, out));
  return Answer(on.Look().Stat(AT_FDCWD, path, false, out));
}
int access(const char* path, int how) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(access)(path, how));
  struct stat ignored;
  return Answer(on.Look().Stat(AT_FDCWD, path, true, &ignored));
}
int faccessat(int at, const char* path, int how, int flags) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(faccessat)(at, path, how, flags));
  struct stat ignored;
  return Answer(on.Look().Stat(at, path, true, &ignored));
}
int fchmod(int fd, mode_t mode) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fchmod)(fd, mode));
  return Answer(on.Change().SetMode(fd, mode));
}
int statvfs(const char* path, struct statvfs* out) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(statvfs)(path, out));
  struct stat there;
  const int64_t found = on.Look().Stat(AT_FDCWD, path, true, &there);
  return found < 0 ? Answer(found) : tacit::sim::FillSpace(on, out);
}
int fstatvfs(int fd, struct statvfs* out) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fstatvfs)(fd, out));
  return tacit::sim::FillSpace(on, out);
}
int fstatfs(int fd, struct statfs* out) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fstatfs)(fd, out));
  *out = {};
  out->f_type = 0xef53;  // ext4's
  out->f_bsize = 4096;
  return 0;
}

int mkdir(const char* path, mode_t mode) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(mkdir)(path, mode));
  return Answer(on.Change().MakeFolder(AT_FDCWD, path, mode));
}
int unlink(const char* path) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(unlink)(path));
  return Answer(on.Change().Remove(AT_FDCWD, path, false));
}
int rmdir(const char* path) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(rmdir)(path));
  return Answer(on.Change().Remove(AT_FDCWD, path, true));
}
int unlinkat(int at, const char* path, int flags) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(unlinkat)(at, path, flags));
  return Answer(on.Change().Remove(at, path, (flags & AT_REMOVEDIR) != 0));
}
int remove(const char* path) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(remove)(path));
  const int64_t removed = on.Change().Remove(AT_FDCWD, path, false);
  return Answer(removed == -EISDIR ? on.Look().Remove(AT_FDCWD, path, true) : removed);
}
int rename(const char* from, const char* to) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(rename)(from, to));
  return Answer(on.Change().Rename(AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(renameat2)(from_at, from, to_at, to, flags));
  return Answer(on.Change().Rename(from_at, from, to_at, to, flags));
}
int link(const char* from, const char* to) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(link)(from, to));
  return Answer(on.Change().Link(AT_FDCWD, from, AT_FDCWD, to));
}
int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(linkat)(from_at, from, to_at, to, flags));
  return Answer(on.Change().Link(from_at, from, to_at, to));
}
int symlink(const char* target, const char* path) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(symlink)(target, path));
  return Answer(on.Change().LinkByName(target, AT_FDCWD, path));
}
ssize_t readlinkat(int at, const char* path, char* out, size_t size) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(readlinkat)(at, path, out, size));
  std::string target;
  const int64_t found = on.Look().ReadLink(at, path, &target);
  return found < 0 ? Answer(found) : static_cast<ssize_t>(target.copy(out, size));
}
ssize_t readlink(const char* path, char* out, size_t size) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(readlink)(path, out, size));
  return readlinkat(AT_FDCWD, path, out, size);
}
char* realpath(const char* path, char* out) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(realpath)(path, out));
  std::string canonical;
  if (Answer(on.Look().Canonical(path, &canonical)) < 0) return nullptr;
  return tacit::sim::CopyPath(canonical, out, PATH_MAX);
}
char* __realpath_chk(const char* path, char* out, size_t) noexcept { return realpath(path, out); }
char* getcwd(char* out, size_t size) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(getcwd)(out, size));
  return tacit::sim::CopyPath("/", out, size);
}

DIR* opendir(const char* path) {
  TACIT_ON_DISK_OR(TACIT_NATIVE(opendir)(path));
  return tacit::sim::OpenFolder(on,
                                tacit::sim::Open(on, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0));
}
DIR* fdopendir(int fd) {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fdopendir)(fd));
  return tacit::sim::OpenFolder(on, fd);
}
dirent* readdir(DIR* folder) {
  TACIT_ON_DISK_OR(TACIT_NATIVE(readdir)(folder));
  return tacit::sim::Next(*reinterpret_cast<tacit::sim::Folder*>(folder));
}
int dirfd(DIR* folder) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(dirfd)(folder));
  return reinterpret_cast<tacit::sim::Folder*>(folder)->fd;
}
int closedir(DIR* folder) {
  TACIT_ON_DISK_OR(TACIT_NATIVE(closedir)(folder));
  auto* const ours = reinterpret_cast<tacit::sim::Folder*>(folder);
  const int fd = ours->fd;
  delete ours;
  return close(fd);
}

FILE* fopen(const char* path, const char* mode) {
  TACIT_ON_DISK_OR(TACIT_NATIVE(fopen)(path, mode));
  return tacit::sim::OpenStream(on, path, mode);
}
// RocksDB reads a number from the kernel, and draws one where there is no such file.
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
FILE* fdopen(int fd, const char* mode) noexcept {
  TACIT_OF_DISK_OR(fd, TACIT_NATIVE(fdopen)(fd, mode));
  return tacit::sim::Stream(fd, mode);
}
int fileno(FILE* stream) noexcept {
  TACIT_ON_DISK_OR(TACIT_NATIVE(fileno)(stream));
  const auto found = tacit::sim::Streams().find(stream);
  return found == tacit::sim::Streams().end() ? TACIT_NATIVE(fileno)(stream) : found->second;
}

}  // extern "C"
// NOLINTEND
