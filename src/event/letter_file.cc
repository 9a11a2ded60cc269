#include "event/letter_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/files/log.h"
#include "base/files/regular_file.h"

namespace tacit::event {
namespace {

constexpr size_t kChunk = 1 << 16;

Status SystemFailure(std::string_view doing, const std::string& path) {
  return Fail(ErrorCode::kIo, fmt::format("{} {}: {}", doing, path, std::strerror(errno)));
}

Result<struct stat> StatOf(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Fail(SystemFailure("reading", path).error());
  return info;
}

// Syncs the directory: without that a new file name may be lost in a power cut.
Status SyncDirectory(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return SystemFailure("syncing", directory.string());
  return {};
}

// Reads the letters of one file and remembers lines that are none.
class LetterReader {
 public:
  LetterReader(std::string path, const std::function<void(const LetterPlace&)>& note)
      : path_(std::move(path)), note_(note) {}

  // Reads from the first line that begins after `from`. Returns the end of the last whole line.
  Result<uint64_t> Read(int fd, uint64_t from) {
    uint64_t at = from;
    bool inside = from > 0;  // inside a line that began before `from`
    std::string pending;
    std::vector<char> chunk(kChunk);
    for (uint64_t end = from;;) {
      const ssize_t got = ::pread(fd, chunk.data(), chunk.size(), static_cast<off_t>(end));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Fail(SystemFailure("reading", path_).error());
      if (got == 0) break;
      end += static_cast<uint64_t>(got);
      pending.append(chunk.data(), static_cast<size_t>(got));
      size_t begin = 0;
      for (size_t next; (next = pending.find('\n', begin)) != std::string::npos; begin = next + 1) {
        if (!std::exchange(inside, false))
          Take(std::string_view(pending).substr(begin, next - begin), at + begin, from);
      }
      at += begin;
      pending.erase(0, begin);
    }
    Tell();
    return at;
  }

 private:
  void Take(std::string_view line, uint64_t at, uint64_t from) {
    ++lines_;
    if (const auto place = ParseLine(line)) return note_(*place);
    if (foreign_++ == 0)
      first_foreign_ =
          from == 0 ? fmt::format("{}:{}", path_, lines_) : fmt::format("{}, byte {}", path_, at);
  }

  void Tell() const {
    if (foreign_ == 0) return;
    const std::string more = foreign_ > 1 ? fmt::format(", and {} more", foreign_ - 1) : "";
    spdlog::warn("{}: not a dead letter, passed over{}", first_foreign_, more);
  }

  const std::string path_;
  const std::function<void(const LetterPlace&)>& note_;
  uint64_t lines_ = 0, foreign_ = 0;
  std::string first_foreign_;
};

Result<uint64_t> ReadLetters(int fd, const std::string& path, uint64_t bytes_most,
                             const std::function<void(const LetterPlace&)>& note) {
  TACIT_ASSIGN(const struct stat info, StatOf(fd, path));
  const auto size = static_cast<uint64_t>(info.st_size);
  return LetterReader(path, note).Read(fd, size > bytes_most ? size - bytes_most : 0);
}

}  // namespace

std::string LetterFile::PathOf(uint32_t age) const {
  return age == 0 ? options_.path : fmt::format("{}.{}", options_.path, age);
}

Result<LetterFile> LetterFile::Open(DeadLetterFileOptions options,
                                    const std::function<void(const LetterPlace&)>& note) {
  LetterFile file(std::move(options));
  for (uint32_t age = file.options_.files - 1; age > 0; --age) {
    const std::string path = file.PathOf(age);
    const auto older = OpenRegularFile(path);
    if (!older && older.error().code == ErrorCode::kNotFound) continue;
    if (!older) return Fail(older.error().code, "opening " + older.error().message);
    TACIT_RETURN_IF_ERROR(ReadLetters(older->get(), path, file.options_.max_bytes, note));
  }
  TACIT_RETURN_IF_ERROR(file.Attach());
  TACIT_ASSIGN(const uint64_t whole,
               ReadLetters(file.fd_.get(), file.options_.path, file.options_.max_bytes, note));
  file.size_ = whole;
  TACIT_RETURN_IF_ERROR(file.CutTornEnd());
  return file;
}

// Opens the file that has the name now, or creates it. A device would keep no letter, or be read
// without an end.
Status LetterFile::Attach() {
  struct stat named {};
  if (::stat(options_.path.c_str(), &named) == 0 && !S_ISREG(named.st_mode))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("opening {}: is not a regular file", options_.path));
  UniqueFd fd(::open(options_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
  if (fd.get() < 0) return SystemFailure("opening", options_.path);
  TACIT_RETURN_IF_ERROR(SyncDirectory(options_.path));
  TACIT_ASSIGN(const struct stat info, StatOf(fd.get(), options_.path));
  fd_ = std::move(fd);
  size_ = static_cast<uint64_t>(info.st_size);
  return {};
}

bool LetterFile::IsMovedAway() const {
  struct stat named {
  }, open{};
  if (::stat(options_.path.c_str(), &named) != 0 || ::fstat(fd_.get(), &open) != 0) return true;
  return named.st_dev != open.st_dev || named.st_ino != open.st_ino;
}

// The bytes after `size_` lack a newline. If they begin a letter of ours, a crash cut it off: its
// Write never returned, so it is written again, and the rest is removed. Other bytes are left to
// their writer.
Status LetterFile::CutTornEnd() {
  std::string rest(64, '\0');
  const ssize_t got = ::pread(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(size_));
  if (got < 0) return SystemFailure("reading", options_.path);
  rest.resize(static_cast<size_t>(got));
  if (rest.empty() || !MayBeginLine(rest)) return {};
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0)
    return SystemFailure("truncating", options_.path);
  return {};
}

// Renames each file to the next age, up to the first gap: a rotation that failed half way resumes
// there and loses nothing more.
Status LetterFile::Rotate() {
  uint32_t gap = 1;
  while (gap + 1 < options_.files && ::access(PathOf(gap).c_str(), F_OK) == 0) ++gap;
  for (uint32_t age = gap; age > 0; --age)
    if (std::rename(PathOf(age - 1).c_str(), PathOf(age).c_str()) != 0)
      return SystemFailure("moving aside", PathOf(age - 1));
  return Attach();
}

// Finds the end to append at. Another program may have written since; `*before` ends its last line.
Status LetterFile::FindEnd(std::string* before) {
  TACIT_ASSIGN(const struct stat info, StatOf(fd_.get(), options_.path));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size == std::exchange(size_, size) || size == 0) return {};
  char last = '\n';
  if (::pread(fd_.get(), &last, 1, static_cast<off_t>(size - 1)) != 1)
    return SystemFailure("reading", options_.path);
  if (last != '\n') *before = "\n";
  return {};
}

Status LetterFile::Append(std::string_view lines) {
  if (IsMovedAway()) TACIT_RETURN_IF_ERROR(Attach());
  std::string bytes;
  TACIT_RETURN_IF_ERROR(FindEnd(&bytes));
  if (size_ > 0 && size_ + lines.size() > options_.max_bytes) {
    TACIT_RETURN_IF_ERROR(Rotate());
    bytes.clear();
  }
  return Write(bytes.append(lines));
}

// Writes all bytes or, if the system allows, none: cuts a failed write off again.
Status LetterFile::Write(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(size_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return CutBack();
    done += static_cast<size_t>(put);
  }
  if (::fdatasync(fd_.get()) != 0) return CutBack();
  size_ += bytes.size();
  return {};
}

Status LetterFile::CutBack() {
  Status failed = SystemFailure("writing", options_.path);
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0)
    failed.error().message += fmt::format(", and cutting it back: {}", std::strerror(errno));
  return failed;
}

}  // namespace tacit::event
