#include "console/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tacit::console {
namespace {

tl::unexpected<Error> WriteFailure(const std::string& path, int error) {
  return Fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(error)));
}

}  // namespace

Result<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path, unsigned mode) {
  struct stat there = {};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode))
    return Fail(ErrorCode::kInvalidArgument, path + ": is a directory");
  // The name would be taken from a device, and root may do so.
  if (exists && !S_ISREG(there.st_mode))
    return Fail(ErrorCode::kInvalidArgument, path + ": is not a regular file, to be replaced");
  // A link stays, and its file is replaced: /dev/stdout is a link.
  std::error_code lost;
  const std::string place = exists ? std::filesystem::canonical(path, lost).string() : path;
  if (lost) return Fail(ErrorCode::kInvalidArgument, path + ": " + lost.message());
  const std::string temporary = fmt::format("{}.part-{}", place, ::getpid());
  // A file that a killed process of the same number left behind is nobody's.
  ::unlink(temporary.c_str());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                     exists ? S_IRUSR | S_IWUSR : mode));
  if (fd.get() < 0)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, std::strerror(errno)));
  std::unique_ptr<AtomicFile> file(new AtomicFile(place, temporary, std::move(fd)));
  // No more people may read it than what it replaces.
  constexpr mode_t kPermissions = 0777;
  if (exists && ::fchmod(file->fd(), there.st_mode & kPermissions) != 0)
    return WriteFailure(path, errno);
  return file;
}

AtomicFile::~AtomicFile() {
  if (fd_.get() >= 0) ::unlink(temporary_.c_str());
}

Status AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return WriteFailure(path_, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status AtomicFile::Commit() {
  if (::fsync(fd_.get()) != 0) return WriteFailure(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return WriteFailure(path_, errno);
  fd_ = UniqueFd();
  const std::filesystem::path parent = std::filesystem::absolute(path_).parent_path();
  const UniqueFd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return WriteFailure(path_, errno);
  return {};
}

Status WriteAtomically(const std::string& path, std::string_view bytes) {
  TACIT_ASSIGN(const auto file, AtomicFile::Create(path));
  TACIT_RETURN_IF_ERROR(file->Write(bytes));
  return file->Commit();
}

}  // namespace tacit::console
