#include "event/dead_letters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/unique_fd.h"
#include "event/offset_set.h"

namespace tacit::event {
namespace {

std::string SystemMessage(std::string_view doing, const std::string& path) {
  return fmt::format("{} {}: {}", doing, path, std::strerror(errno));
}

using SeenOffsets = std::map<int32_t, OffsetSet>;

std::string ToLine(const DeadLetter& letter) {
  const boost::json::object json{{"file", letter.origin},
                                 {"line", letter.line},
                                 {"partition", letter.partition},
                                 {"offset", letter.offset},
                                 {"reason", letter.reason}};
  return boost::json::serialize(json) + '\n';
}

// Notes the letter's partition and offset; false when the line is no dead letter.
bool NoteLine(std::string_view line, SeenOffsets* seen) {
  boost::system::error_code error;
  boost::json::parse_options options;
  options.allow_invalid_utf8 = true;  // file names need not be UTF-8
  const auto json = boost::json::parse({line.data(), line.size()}, error, {}, options);
  if (error || !json.is_object()) return false;
  const auto* partition = json.as_object().if_contains("partition");
  const auto* offset = json.as_object().if_contains("offset");
  if (partition == nullptr || offset == nullptr) return false;
  boost::system::error_code not_partition, not_offset;
  const auto p = partition->to_number<int32_t>(not_partition);
  const auto o = offset->to_number<uint64_t>(not_offset);
  if (not_partition || not_offset) return false;
  (*seen)[p].Insert(o);
  return true;
}

// Reads all letters; the result is the length of the file up to its last complete line.
Result<uint64_t> ReadLetters(int fd, const std::string& path, SeenOffsets* seen) {
  std::string pending;
  std::vector<char> chunk(1 << 16);
  uint64_t complete = 0, lines = 0;
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrorCode::kIo, SystemMessage("reading", path));
    if (got == 0) return complete;
    pending.append(chunk.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      ++lines;
      if (!NoteLine(std::string_view(pending).substr(begin, end - begin), seen))
        return Fail(ErrorCode::kCorruption, fmt::format("{}:{}: not a dead letter", path, lines));
    }
    complete += begin;
    pending.erase(0, begin);
  }
}

// A new file is only there after a power cut when its directory is synced too.
Status SyncDirectory(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0)
    return Fail(ErrorCode::kIo, SystemMessage("syncing", directory.string()));
  return {};
}

class DeadLetterFile final : public DeadLetterSink {
 public:
  DeadLetterFile(UniqueFd fd, std::string path, uint64_t size, SeenOffsets seen)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size), seen_(std::move(seen)) {}

  Status Write(std::span<const DeadLetter> letters) override {
    std::string lines;
    SeenOffsets fresh;
    for (const DeadLetter& letter : letters) {
      if (seen_[letter.partition].Contains(letter.offset) ||
          fresh[letter.partition].Contains(letter.offset))
        continue;
      fresh[letter.partition].Insert(letter.offset);
      lines += ToLine(letter);
    }
    if (lines.empty()) return {};
    TACIT_RETURN_IF_ERROR(AppendDurably(lines));
    for (const DeadLetter& letter : letters) seen_[letter.partition].Insert(letter.offset);
    return {};
  }

 private:
  // All of it or, where the system allows, nothing: a failed write is cut off again.
  Status AppendDurably(std::string_view lines) {
    size_t done = 0;
    while (done < lines.size()) {
      const ssize_t put = ::pwrite(fd_.get(), lines.data() + done, lines.size() - done,
                                   static_cast<off_t>(size_ + done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return CutBack();
      done += static_cast<size_t>(put);
    }
    if (::fdatasync(fd_.get()) != 0) return CutBack();
    size_ += lines.size();
    return {};
  }

  Status CutBack() {
    Error error{ErrorCode::kIo, SystemMessage("writing dead letters to", path_)};
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0)
      error.message += fmt::format(", and cutting it back: {}", std::strerror(errno));
    return Fail(std::move(error));
  }

  const UniqueFd fd_;
  const std::string path_;
  uint64_t size_;
  SeenOffsets seen_;
};

}  // namespace

Result<std::unique_ptr<DeadLetterSink>> OpenDeadLetterFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (fd.get() < 0) return Fail(ErrorCode::kIo, SystemMessage("opening", path));
  SeenOffsets seen;
  TACIT_ASSIGN(const uint64_t complete, ReadLetters(fd.get(), path, &seen));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Fail(ErrorCode::kIo, SystemMessage("reading", path));
  // The rest of a line that a crash cut short: its Write never returned, so it will be repeated.
  if (static_cast<uint64_t>(info.st_size) != complete &&
      ::ftruncate(fd.get(), static_cast<off_t>(complete)) != 0)
    return Fail(ErrorCode::kIo, SystemMessage("truncating", path));
  TACIT_RETURN_IF_ERROR(SyncDirectory(path));
  return std::make_unique<DeadLetterFile>(std::move(fd), path, complete, std::move(seen));
}

}  // namespace tacit::event
