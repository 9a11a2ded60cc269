#include "console/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "console/atomic_file.h"

namespace tacit::console {

namespace {

bool IsDevice(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) &&
         !std::filesystem::is_regular_file(path, ignored) &&
         !std::filesystem::is_directory(path, ignored);
}

}  // namespace

void KeepOthersOut() { umask(umask(0) | S_IRWXO); }

Status CheckWritable(const char* option, const std::string& path) {
  if (path.empty() || IsDevice(path)) return CheckAppendable(option, path);
  const auto file = AtomicFile::Create(path);
  if (file) return {};
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} {}", option, file.error().message));
}

Status CheckAppendable(const char* option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  const bool existed = std::filesystem::exists(path, ignored);
  if (!std::ofstream(path, std::ios::binary | std::ios::app))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} {}: cannot be written", option, path));
  if (!existed) std::filesystem::remove(path, ignored);
  return {};
}

Status WriteFile(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (!IsDevice(path)) return WriteAtomically(path, text);
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) return Fail(ErrorCode::kIo, path + ": cannot be written");
  return {};
}

Status WriteNewSecret(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, std::strerror(errno)));
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                     ::fsync(fd) == 0;
  ::close(fd);
  if (!whole) return Fail(ErrorCode::kIo, path + ": cannot be written");
  return {};
}

}  // namespace tacit::console
