#include "faulty_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

namespace tacit::test {
namespace {

namespace fs = std::filesystem;

// A power loss leaves this of a file: its first `synced` bytes, with these put back.
struct Unsynced {
  uint64_t synced = 0;
  struct Overwritten {
    uint64_t at;
    std::vector<char> was;
  };
  std::vector<Overwritten> overwritten;  // in the synced part, oldest first
};

struct Disk {
  std::mutex mutex;
  std::optional<DiskFault> fault;
  uint64_t writes = 0;
  std::map<ino_t, Unsynced> files;
};

// It outlives every thread that writes while the process ends.
Disk& TheDisk() {
  static Disk* const disk = new Disk;
  return *disk;
}

bool IsBelow(int fd, const std::string& folder) {
  char path[512];
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  return length > 0 && std::string(path, static_cast<size_t>(length)).starts_with(folder + "/");
}

bool Exists(int fd, struct stat* now) { return fstat(fd, now) == 0 && S_ISREG(now->st_mode); }

void PutBack(const std::string& path, const Unsynced& file, const DiskFault& fault,
             std::mt19937_64& random) {
  struct stat now {};
  if (stat(path.c_str(), &now) != 0) return;
  const int fd = open(path.c_str(), O_RDWR);
  if (fd < 0) return;
  for (auto one = file.overwritten.rbegin(); one != file.overwritten.rend(); ++one) {
    const size_t kept = fault.torn ? random() % (one->was.size() + 1) : 0;
    (void)syscall(SYS_pwrite64, fd, one->was.data() + kept, one->was.size() - kept, one->at + kept);
  }
  const auto size = static_cast<uint64_t>(now.st_size);
  uint64_t left = std::min(size, file.synced);
  if (fault.torn && size > left) left += random() % (size - left + 1);
  (void)syscall(SYS_ftruncate, fd, static_cast<off_t>(left));
  close(fd);
}

// REQUIRES the lock, which stays held: nothing is written after this.
[[noreturn]] void LosePower(Disk& disk) {
  std::mt19937_64 random(disk.fault->seed);
  std::vector<std::pair<std::string, ino_t>> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(disk.fault->folder, ignored)) {
    struct stat now {};
    if (entry.is_regular_file(ignored) && stat(entry.path().c_str(), &now) == 0)
      files.emplace_back(entry.path(), now.st_ino);
  }
  for (const auto& [path, inode] : files)
    if (const auto found = disk.files.find(inode); found != disk.files.end())
      PutBack(path, found->second, *disk.fault, random);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Notes what a write is about to change, and whether it may go on: 0, or the error it fails with.
// `at`: where it writes; without it, at the descriptor's place.
int BeforeWrite(int fd, size_t size, std::optional<off_t> at) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  struct stat now {};
  if (!disk.fault || !IsBelow(fd, disk.fault->folder) || !Exists(fd, &now)) return 0;
  ++disk.writes;
  if (disk.fault->write > 0 && disk.writes >= disk.fault->write) {
    if (disk.fault->kind == DiskFault::Kind::kPowerLoss) LosePower(disk);
    if (disk.fault->kind == DiskFault::Kind::kFull) return ENOSPC;
    if (disk.writes == disk.fault->write) return EIO;
  }
  const auto [file, is_new] = disk.files.try_emplace(now.st_ino);
  // A file whose first write is seen here was there before, or is empty.
  if (is_new) file->second.synced = static_cast<uint64_t>(now.st_size);
  if (!at && (fcntl(fd, F_GETFL) & O_APPEND) != 0) at = now.st_size;
  if (!at) at = lseek(fd, 0, SEEK_CUR);
  const auto begin = static_cast<uint64_t>(*at);
  if (begin >= file->second.synced) return 0;
  Unsynced::Overwritten one{begin, {}};
  one.was.resize(std::min<uint64_t>(size, file->second.synced - begin));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int reading = open(path.c_str(), O_RDONLY);
  const bool read = reading >= 0 && pread(reading, one.was.data(), one.was.size(), *at) ==
                                        static_cast<ssize_t>(one.was.size());
  if (reading >= 0) close(reading);
  if (read) file->second.overwritten.push_back(std::move(one));
  return 0;
}

int Sync(long call, int fd) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  struct stat now {};
  if (disk.fault && Exists(fd, &now))
    disk.files[now.st_ino] = {static_cast<uint64_t>(now.st_size), {}};
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

void BreakDisk(const DiskFault& fault) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  disk.fault = fault;
}

uint64_t DiskWrites() {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  return disk.writes;
}

}  // namespace tacit::test

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  if (const int error = tacit::test::BeforeWrite(fd, size, std::nullopt)) {
    errno = error;
    return -1;
  }
  return syscall(SYS_write, fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  if (const int error = tacit::test::BeforeWrite(fd, size, at)) {
    errno = error;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t at) {
  return pwrite(fd, bytes, size, at);
}

int fdatasync(int fd) { return tacit::test::Sync(SYS_fdatasync, fd); }
int fsync(int fd) { return tacit::test::Sync(SYS_fsync, fd); }

}  // extern "C"
