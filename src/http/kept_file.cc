#include "http/kept_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files/unique_fd.h"

namespace tacit::http {
namespace {

constexpr off_t kFileBytesMost = 8 << 20;

FileStamp StampFrom(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size,
          static_cast<int64_t>(info.st_ctim.tv_sec) * 1'000'000'000 + info.st_ctim.tv_nsec};
}

// Returns why a file must not be relied on, or "".
std::string WhyOpenToOthers(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "is no regular file";
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return fmt::format("belongs to user {}, who could change it: it must be root's or the daemon's",
                       info.st_uid);
  if ((info.st_mode & 0027) != 0)
    return fmt::format(
        "has mode {:04o}: others must neither read nor change it (chmod 0640, or 0600)",
        info.st_mode & 07777);
  return "";
}

// Reads a file; with `stamp`, one that is closed to others.
Result<std::string> ReadWhole(const std::string& key, const std::string& path, FileStamp* stamp) {
  const auto refuse = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}: {}", key, path, why));
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return refuse(std::strerror(errno));
  if (stamp != nullptr) {
    *stamp = StampFrom(info);
    if (const std::string why = WhyOpenToOthers(info); !why.empty()) return refuse(why);
  }
  if (info.st_size > kFileBytesMost) return refuse("has more than 8 MiB");
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t bytes = ::read(file.get(), text.data() + got, text.size() - got);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return refuse(std::strerror(errno));
    if (bytes == 0) break;
    got += static_cast<size_t>(bytes);
  }
  text.resize(got);
  return text;
}

}  // namespace

FileStamp StampOfFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? StampFrom(info) : FileStamp{};
}

Result<std::string> ReadOpenFile(const std::string& key, const std::string& path) {
  return ReadWhole(key, path, nullptr);
}

Result<std::string> ReadKeptFile(const std::string& key, const std::string& path,
                                 FileStamp* stamp) {
  return ReadWhole(key, path, stamp);
}

}  // namespace tacit::http
