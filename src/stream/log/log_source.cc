// The identity of a log. The notation is base/bytes.h's.
//     identity := format:u32 files:u32 file*files            those read so far, in their order
//     format   := 1
//     file     := base_name:string hashed:u64 digest ended:u8 records:u64 bytes:u64
// `digest` is that of the first `hashed` bytes of the file itself, packed or not; at most 1 MiB,
// and less only where the file was shorter when it was opened last.
// `records` and `bytes` are the file's once its end was seen (`ended`), else 0.
#include "stream/log/log_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/files/log.h"
#include "base/threads/mutex.h"
#include "stream/log/container_reader.h"
#include "stream/log/line_reader.h"

namespace tacit::stream {
namespace {

constexpr uint64_t kPrefixBytes = 1 << 20;
// A bound on a frame of long records; far below the 32 bits of its offsets.
constexpr size_t kFrameBytes = 8 << 20;
constexpr uint32_t kLogIdentityFormat = 1;

// The known facts about a file. Reading fills them in, or a stored identity.
struct LogFile {
  struct Prefix {
    uint64_t bytes = 0;
    Digest digest{};
  };
  struct End {
    uint64_t lines = 0;
    uint64_t raw_bytes = 0;
  };

  std::string path, name;
  uint64_t raw_size = 0;  // at open; for estimates
  bool input = false;     // standard input
  bool container = false;
  std::optional<Prefix> prefix;
  std::optional<End> end;

  std::string_view shown() const { return input ? kStandardInputShown : path; }
};

tl::unexpected<Error> Changed(const LogFile& file, std::string_view how) {
  if (file.input)
    return Fail(ErrorCode::kRefused,
                fmt::format("{}: {} since it was read. A store goes on with the bytes that it has "
                            "read, from the first one on",
                            file.shown(), how));
  return Fail(ErrorCode::kRefused,
              fmt::format("{}: {} since it was read. Put it back as it was; new records belong in "
                          "a new file after the last one",
                          file.path, how));
}

// REQUIRES file.end.
tl::unexpected<Error> Grown(const LogFile& file, uint64_t raw_bytes) {
  if (file.input) return Changed(file, fmt::format("has more than {} records", file.end->lines));
  if (file.container)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{}: has grown from {} to {} bytes since it was read to its end. To go "
                    "on, make it what it was (head -c {}), and write further records into a "
                    "new file after the last one",
                    file.path, file.end->raw_bytes, raw_bytes, file.end->raw_bytes));
  return Fail(
      ErrorCode::kRefused,
      fmt::format(
          "{}: has grown from {} to {} bytes since it was read to its end. To go on, make "
          "it what it was (head -c {}), and put its lines from {} on (tail -n +{}, unpacked) "
          "into a new file after the last one. A file that is still being written belongs "
          "under another name until it is whole",
          file.path, file.end->raw_bytes, raw_bytes, file.end->raw_bytes, file.end->lines + 1,
          file.end->lines + 1));
}

std::unique_ptr<RecordReader> MakeReader(const LogSourceOptions& options,
                                         std::unique_ptr<InputFile> file) {
  if (options.avro == nullptr)
    return std::make_unique<LineReader>(std::move(file), options.max_record_bytes);
  return std::make_unique<ContainerReader>(std::move(file), options.max_record_bytes, options.avro);
}

class LogSource final : public Source {
 public:
  LogSource(LogSourceOptions options, std::vector<LogFile> files)
      : options_(std::move(options)), files_(std::move(files)) {}

  // Returns a constant. A store has one log, and its name must not change when files are added. The
  // constant errs on the side of counting records as the same.
  std::string topic() const override { return "log"; }
  std::vector<int32_t> partitions() const override { return {0}; }

  Result<PollOutcome> Poll(std::chrono::milliseconds timeout, event::RawRecords* records) override;
  Status Seek(std::span<const PartitionOffset> positions) override;
  void Pause(std::span<const int32_t> partitions) override { SetPaused(partitions, true); }
  void Resume(std::span<const int32_t> partitions) override { SetPaused(partitions, false); }
  void Advise(std::span<const PartitionOffset>, const StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const PartitionOffset> positions) const override;
  std::string Identity() const override;
  Status VerifyIdentity(const std::string& stored) override;
  SourceHealth health() const override {
    const MutexLock lock(mutex_);
    return {.alert = alert_};
  }

 private:
  void SetPaused(std::span<const int32_t> partitions, bool paused) {
    if (std::find(partitions.begin(), partitions.end(), 0) != partitions.end()) paused_ = paused;
  }
  // Returns true if there was no alert before.
  bool SetAlert(std::string alert) {
    const MutexLock lock(mutex_);
    alert_.swap(alert);
    return alert.empty();
  }
  Status SeekTo(uint64_t offset);
  // Opens the file and compares it with its known facts; notes its prefix if that is unknown.
  Result<std::unique_ptr<InputFile>> OpenChecked(LogFile* file) const;
  Result<std::unique_ptr<RecordReader>> OpenReader(size_t file);
  // Returns false while no more of a file that was cut is there.
  bool RestIsThere();
  // Opens the file of the next record, if it is not open, and skips what was read of it.
  Status OpenAtLine();
  Result<PollOutcome> AwaitRest(Error cut, std::chrono::milliseconds timeout);
  // Refuses a file that is no longer the one that was read.
  Status CheckStillThere(const InputFile& read, const LogFile& file) const;
  // Notes that the file ended after `lines` records; refuses if it ended elsewhere before, or if it
  // is no longer the one that was read.
  Status NoteEnd(const RecordReader& reader, uint64_t lines, LogFile* file) const;
  Status VerifyFile(size_t index, ByteReader* stored);

  const LogSourceOptions options_;
  std::vector<LogFile> files_;
  bool paused_ = false;

  // The position of the next record.
  uint64_t offset_ = 0;
  size_t file_ = 0;    // files_.size(): at the end
  uint64_t line_ = 0;  // in that file
  std::unique_ptr<RecordReader> reader_;
  std::optional<uint64_t> cut_at_;  // the file had this many bytes, and more are waited for

  mutable Mutex mutex_;
  std::string alert_ TACIT_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<InputFile>> LogSource::OpenChecked(LogFile* file) const {
  // At the end of a file the operator passed a cut, if it has one.
  const bool passed = file->end || file->path == options_.past_cut;
  TACIT_ASSIGN(auto input, InputFile::Open(file->path, passed ? InputFile::CutIs::kDamage
                                                              : InputFile::CutIs::kUnfinished));
  const uint64_t size = input->raw_size();
  const uint64_t prefix = file->prefix ? file->prefix->bytes : std::min(size, kPrefixBytes);
  if (size < prefix) return Changed(*file, "has become shorter");
  TACIT_ASSIGN(const Digest digest, input->HashPrefix(prefix));
  if (file->prefix && file->prefix->digest != digest) return Changed(*file, "has changed");
  if (file->end && size > file->end->raw_bytes) return Grown(*file, size);
  if (file->end && size < file->end->raw_bytes && !file->input)
    return Changed(*file, "has become shorter");
  file->prefix = {prefix, digest};
  const uint64_t known = std::min(size, kPrefixBytes);
  if (file->end || known == prefix) return input;
  TACIT_ASSIGN(const Digest longer, input->HashPrefix(known));
  file->prefix = {known, longer};
  return input;
}

Result<std::unique_ptr<RecordReader>> LogSource::OpenReader(size_t file) {
  TACIT_ASSIGN(auto input, OpenChecked(&files_[file]));
  return MakeReader(options_, std::move(input));
}

// A file that was cut is opened again where other bytes may be in its place, or where so little of
// it was there that more can identify it. Else what was unpacked so far need not be unpacked again.
bool LogSource::RestIsThere() {
  if (!cut_at_) return true;
  const auto now = InputFile::Open(files_[file_].path);
  if (!now || (*now)->raw_size() <= *cut_at_) return false;
  if (*cut_at_ < kPrefixBytes || (*now)->inode() != reader_->file().inode()) reader_.reset();
  cut_at_.reset();
  return true;
}

Status LogSource::OpenAtLine() {
  if (reader_ != nullptr) return {};
  TACIT_ASSIGN(auto reader, OpenReader(file_));
  TACIT_ASSIGN(const uint64_t skipped, reader->Skip(line_));
  if (skipped < line_)
    return Changed(files_[file_],
                   fmt::format("has {} records instead of {} or more", skipped, line_));
  reader_ = std::move(reader);
  return {};
}

Result<PollOutcome> LogSource::AwaitRest(Error cut, std::chrono::milliseconds timeout) {
  cut.message +=
      fmt::format(". If no more of it exists, tacitd --past-cut {} goes on without the rest",
                  files_[file_].path);
  if (!options_.waits_for_rest) return Fail(std::move(cut));
  cut_at_ = reader_->file().raw_read();
  if (SetAlert(cut.message)) spdlog::warn("{}", cut.message);
  std::this_thread::sleep_for(timeout);
  return PollOutcome::kNothing;
}

Status LogSource::CheckStillThere(const InputFile& read, const LogFile& file) const {
  if (file.input) return {};
  const auto now = InputFile::Open(file.path);
  if (!now && now.error().code == ErrorCode::kNotFound)
    return ChangedWhileRead(file.path, "was moved or removed");
  if (!now) return Fail(now.error());
  if ((*now)->raw_size() < read.raw_read())
    return ChangedWhileRead(file.path, "has become shorter");
  TACIT_ASSIGN(const Digest digest, (*now)->HashPrefix(file.prefix->bytes));
  if (digest != file.prefix->digest) return ChangedWhileRead(file.path, "was overwritten");
  return {};
}

Status LogSource::NoteEnd(const RecordReader& reader, uint64_t lines, LogFile* file) const {
  TACIT_RETURN_IF_ERROR(CheckStillThere(reader.file(), *file));
  if (file->end && file->end->lines != lines)
    return Changed(*file, fmt::format("has {} records instead of {}", lines, file->end->lines));
  // A sound file's size is what was read: bytes added later are a change. Past damage nothing is
  // read, so the size at opening counts too.
  const InputFile& input = reader.file();
  const bool all = reader.fault().empty();
  file->end = {lines, all ? input.raw_read() : std::max(input.raw_size(), input.raw_read())};
  return {};
}

Result<PollOutcome> LogSource::Poll(std::chrono::milliseconds timeout, event::RawRecords* records) {
  records->Clear();
  if (paused_ || !RestIsThere()) {
    std::this_thread::sleep_for(timeout);
    return PollOutcome::kNothing;
  }
  if (file_ == files_.size()) return PollOutcome::kEnd;
  TACIT_RETURN_IF_ERROR(OpenAtLine());
  LogFile& file = files_[file_];
  records->first_offset = offset_;
  records->origin = file.shown();
  records->origin_line = line_ + 1;
  Status read = reader_->Read(options_.records_per_poll, kFrameBytes, records);
  if (!read && reader_->file().waiting()) return PollOutcome::kNothing;
  if (!read && !reader_->cut().empty()) return AwaitRest(std::move(read.error()), timeout);
  if (!read) return Fail(std::move(read.error()));
  offset_ += records->size();
  line_ += records->size();
  if (file.end && line_ > file.end->lines) return Grown(file, reader_->file().raw_read());

  TACIT_ASSIGN(const bool at_end, reader_->AtEnd());
  if (at_end) {
    TACIT_RETURN_IF_ERROR(NoteEnd(*reader_, line_, &file));
    records->cuts.push_back({event::PublicCut::Kind::kFileEnd, offset_, file.name});
    if (!SetAlert("")) spdlog::info("{}: is whole now", file.path);
    reader_.reset();
    ++file_;
    line_ = 0;
  }
  return PollOutcome::kRecords;
}

// Files known to lie before the offset are checked but not read. The end of a file that ends right
// at the offset is not reported again.
Status LogSource::Seek(std::span<const PartitionOffset> positions) {
  for (const PartitionOffset& position : positions)
    if (position.partition != 0)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a log has one partition, 0 (got {})", position.partition));
  if (positions.size() != 1)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a log has one partition (got {})", positions.size()));
  // The given offset must exist, even if reading begins before it.
  const uint64_t offset = positions[0].from_beginning ? 0 : positions[0].offset;
  TACIT_RETURN_IF_ERROR(SeekTo(offset));
  return positions[0].first() == offset ? Status{} : SeekTo(positions[0].first());
}

Status LogSource::SeekTo(uint64_t offset) {
  uint64_t begin = 0;  // first offset of files_[file]
  size_t file = 0;
  uint64_t line = 0;
  std::unique_ptr<RecordReader> reader;
  while (begin < offset && file < files_.size()) {
    LogFile& passed = files_[file];
    if (passed.end && begin + passed.end->lines <= offset && !passed.input) {
      TACIT_RETURN_IF_ERROR(OpenChecked(&passed));
      begin += passed.end->lines;
      ++file;
      continue;
    }
    TACIT_ASSIGN(reader, OpenReader(file));
    TACIT_ASSIGN(line, reader->Skip(offset - begin));
    TACIT_ASSIGN(const bool at_end, reader->AtEnd());
    if (!at_end) break;
    TACIT_RETURN_IF_ERROR(NoteEnd(*reader, line, &passed));
    begin += line;
    line = 0;
    reader.reset();
    ++file;
  }
  if (reader != nullptr && files_[file].end && line == files_[file].end->lines)
    return Grown(files_[file], reader->file().raw_read());
  if (begin + line != offset)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("offset {} is past the end of the log, which has {} records", offset, begin));
  offset_ = offset;
  file_ = file;
  line_ = line;
  reader_ = std::move(reader);
  cut_at_.reset();
  SetAlert("");
  return {};
}

// Estimates the lines of files not yet read to their end from the bytes per line so far.
uint64_t LogSource::RecordsAfter(std::span<const PartitionOffset> positions) const {
  double known_lines = 0, known_bytes = 0, other_bytes = 0;
  if (files_[0].input && !files_[0].end) return 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    const LogFile& file = files_[i];
    if (file.end) {
      known_lines += static_cast<double>(file.end->lines);
      known_bytes += static_cast<double>(file.end->raw_bytes);
    } else {
      other_bytes += static_cast<double>(file.raw_size);
    }
  }
  double seen_lines = known_lines, seen_bytes = known_bytes;
  if (reader_ != nullptr && !files_[file_].end) {
    seen_lines += static_cast<double>(line_);
    seen_bytes += static_cast<double>(reader_->file().raw_read());
  }
  const double lines_per_byte = seen_bytes > 0 ? seen_lines / seen_bytes : 0;
  const double total = known_lines + other_bytes * lines_per_byte;
  const double before = positions.empty() ? 0 : static_cast<double>(positions[0].offset);
  return total > before ? static_cast<uint64_t>(total - before) : 0;
}

std::string LogSource::Identity() const {
  const auto unread =
      std::find_if(files_.begin(), files_.end(), [](const LogFile& f) { return !f.prefix; });
  ByteWriter out;
  out.Put(kLogIdentityFormat).Put(static_cast<uint32_t>(unread - files_.begin()));
  for (auto file = files_.begin(); file != unread; ++file) {
    out.PutString(file->name).Put(file->prefix->bytes);
    out.PutArray(std::span<const uint8_t>(file->prefix->digest));
    const LogFile::End end = file->end.value_or(LogFile::End{});
    out.Put(static_cast<uint8_t>(file->end.has_value())).Put(end.lines).Put(end.raw_bytes);
  }
  return std::move(out).Take();
}

Status LogSource::VerifyIdentity(const std::string& stored) {
  if (stored.empty()) return {};  // nothing was read
  ByteReader in(stored);
  const auto format = in.Get<uint32_t>();
  const auto count = in.Get<uint32_t>();
  if (!in.ok() || format != kLogIdentityFormat)
    return Fail(ErrorCode::kCorruption, "the stored identity of the log cannot be read");
  for (uint32_t i = 0; i < count; ++i) TACIT_RETURN_IF_ERROR(VerifyFile(i, &in));
  if (!in.at_end())
    return Fail(ErrorCode::kCorruption, "the stored identity of the log cannot be read");
  return {};
}

Status LogSource::VerifyFile(size_t index, ByteReader* stored) {
  const std::string name(stored->GetString());
  LogFile::Prefix prefix;
  prefix.bytes = stored->Get<uint64_t>();
  stored->GetArray(std::span<uint8_t>(prefix.digest));
  const bool ended = stored->Get<uint8_t>() != 0;
  LogFile::End end;
  end.lines = stored->Get<uint64_t>();
  end.raw_bytes = stored->Get<uint64_t>();
  if (!stored->ok() || prefix.bytes > kPrefixBytes)
    return Fail(ErrorCode::kCorruption, "the stored identity of the log cannot be read");
  if (index >= files_.size())
    return Fail(ErrorCode::kRefused,
                fmt::format("'{}', file {} of the log, was read and is no longer in the list", name,
                            index + 1));
  LogFile& file = files_[index];
  if (file.name != name)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("file {} of the log was '{}' when it was read and is now '{}': keep the files "
                    "that were read in the list, in their order, and add new files after them",
                    index + 1, name, file.path));
  file.prefix = prefix;
  if (ended) file.end = end;
  TACIT_RETURN_IF_ERROR(OpenChecked(&file));
  return {};
}

}  // namespace

Result<std::unique_ptr<Source>> OpenLogSource(LogSourceOptions options) {
  if (options.files.empty()) return Fail(ErrorCode::kInvalidArgument, "the log has no files");
  TACIT_CHECK(options.records_per_poll > 0 && options.max_record_bytes > 0);
  TACIT_CHECK(options.max_record_bytes < UINT32_MAX - kFrameBytes, "frames have 32-bit offsets");
  std::vector<LogFile> files;
  // A look at the first records, and the source behind it, read the same ones.
  StandardInput::Get().Keep(2 * (kFrameBytes + options.max_record_bytes));
  std::map<InputFile::Inode, std::string> seen;
  for (const std::string& path : options.files) {
    TACIT_ASSIGN(auto input, InputFile::Open(path));
    const auto [first, fresh] = seen.emplace(input->inode(), path);
    if (!fresh)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: is the same file as {}; records of a log are read once", path,
                              first->second));
    LogFile file;
    file.input = input->is_standard_input();
    if (file.input && options.files.size() > 1)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} is the whole log, and stands alone", kStandardInputShown));
    file.path = path;
    file.name = std::filesystem::path(path).filename().string();
    file.raw_size = input->raw_size();
    file.container = options.avro != nullptr;
    if (file.container)
      TACIT_RETURN_IF_ERROR(ContainerReader(std::move(input), 0, options.avro).Open());
    files.push_back(std::move(file));
  }
  if (!options.past_cut.empty() &&
      std::ranges::find(files, options.past_cut, &LogFile::path) == files.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--past-cut {}: is none of the log's files, which are named as "
                            "source.files has them",
                            options.past_cut));
  return std::make_unique<LogSource>(std::move(options), std::move(files));
}

}  // namespace tacit::stream
