#include "store/checkpoint/checkpoint_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "base/files/unique_fd.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/disk/file_digest.h"
#include "store/disk/folder.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadAtOnce = size_t{1} << 20;
constexpr uint64_t kManifestBytesMost = uint64_t{64} << 20;
constexpr int kFileMode = 0640;

struct WriterDeleter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct ReaderDeleter {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
struct EntryDeleter {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

// Writes the members of an archive.
class Packer {
 public:
  static Result<std::unique_ptr<Packer>> Begin(int fd, const std::string& path) {
    std::unique_ptr<Packer> packer(new Packer(path));
    archive* const writer = packer->writer_.get();
    if (writer == nullptr || archive_write_add_filter_zstd(writer) != ARCHIVE_OK ||
        archive_write_set_format_pax_restricted(writer) != ARCHIVE_OK ||
        archive_write_open_fd(writer, fd) != ARCHIVE_OK)
      return Fail(packer->Failure().error());
    return packer;
  }
  Status AddHeader(const std::string& name, uint64_t bytes, int64_t time_ms) {
    const std::unique_ptr<archive_entry, EntryDeleter> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), kFileMode);
    archive_entry_set_mtime(entry.get(), time_ms / 1000, 0);
    return archive_write_header(writer_.get(), entry.get()) == ARCHIVE_OK ? Status() : Failure();
  }
  Status AddBytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const la_ssize_t wrote = archive_write_data(writer_.get(), bytes.data(), bytes.size());
      if (wrote <= 0) return Failure();
      bytes.remove_prefix(static_cast<size_t>(wrote));
    }
    return {};
  }
  Status Finish() {
    return archive_write_close(writer_.get()) == ARCHIVE_OK ? Status() : Failure();
  }

 private:
  explicit Packer(std::string path) : path_(std::move(path)), writer_(archive_write_new()) {}
  Status Failure() const {
    const char* why = writer_ == nullptr ? nullptr : archive_error_string(writer_.get());
    return Fail(ErrorCode::kIo, fmt::format("writing {}: {}", path_, why ? why : "out of memory"));
  }

  const std::string path_;
  const std::unique_ptr<archive, WriterDeleter> writer_;
};

// Reads the members of an archive.
class Unpacker {
 public:
  static Result<std::unique_ptr<Unpacker>> Open(const std::string& path) {
    std::unique_ptr<Unpacker> unpacker(new Unpacker(path));
    archive* const reader = unpacker->reader_.get();
    if (reader == nullptr || archive_read_support_filter_zstd(reader) != ARCHIVE_OK ||
        archive_read_support_format_tar(reader) != ARCHIVE_OK ||
        archive_read_open_filename(reader, path.c_str(), kReadAtOnce) != ARCHIVE_OK)
      return Fail(unpacker->Damaged().error());
    return unpacker;
  }
  // Goes to the next member; false at the end.
  Result<bool> Next() {
    const int got = archive_read_next_header(reader_.get(), &entry_);
    if (got == ARCHIVE_EOF) return false;
    if (got != ARCHIVE_OK) return Fail(Damaged().error());
    if (archive_entry_filetype(entry_) != AE_IFREG)
      return Fail(ErrorCode::kCorruption,
                  fmt::format("{} is no packed checkpoint: '{}' in it is no file", path_, name()));
    return true;
  }
  std::string name() const {
    const char* name = archive_entry_pathname(entry_);
    return name == nullptr ? "" : name;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(archive_entry_size(entry_)); }
  // The next bytes of the member; none at its end.
  Result<std::string_view> Read() {
    const la_ssize_t got = archive_read_data(reader_.get(), buffer_.data(), buffer_.size());
    if (got < 0) return Fail(Damaged().error());
    return std::string_view(buffer_.data(), static_cast<size_t>(got));
  }

 private:
  explicit Unpacker(std::string path)
      : path_(std::move(path)), reader_(archive_read_new()), buffer_(kReadAtOnce) {}
  Status Damaged() const {
    const char* why = reader_ == nullptr ? nullptr : archive_error_string(reader_.get());
    return Fail(ErrorCode::kCorruption,
                fmt::format("{} cannot be unpacked: {}", path_, why ? why : "out of memory"));
  }

  const std::string path_;
  const std::unique_ptr<archive, ReaderDeleter> reader_;
  archive_entry* entry_ = nullptr;  // the reader's
  std::vector<char> buffer_;
};

// A file under a name of work, which goes with the object until it has its own name.
class WorkFile {
 public:
  explicit WorkFile(std::string name) : name_(std::move(name)) {}
  ~WorkFile() {
    std::error_code ignored;
    if (!named_) fs::remove(name_, ignored);
  }
  WorkFile(const WorkFile&) = delete;
  WorkFile& operator=(const WorkFile&) = delete;

  Status GiveName(const std::string& name) {
    std::error_code error;
    fs::rename(name_, name, error);
    if (error) return Fail(FolderError(error.value(), "giving its name to", name));
    named_ = true;
    return {};
  }

 private:
  const std::string name_;
  bool named_ = false;
};

Status PackFiles(const std::string& folder, const CheckpointManifest& manifest, Packer* packer) {
  const std::string prefix = manifest.FolderName() + "/";
  const std::string head = EncodeManifest(manifest);
  TACIT_RETURN_IF_ERROR(
      packer->AddHeader(prefix + kCheckpointManifestName, head.size(), manifest.time_ms));
  TACIT_RETURN_IF_ERROR(packer->AddBytes(head));
  for (const CheckpointFile& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    TACIT_RETURN_IF_ERROR(packer->AddHeader(prefix + file.name, file.bytes, manifest.time_ms));
    TACIT_ASSIGN(const Digest digest, ReadPieces(path, file.bytes, [&](std::string_view piece) {
                   return packer->AddBytes(piece);
                 }));
    if (digest != file.sha256)
      return Fail(ErrorCode::kCorruption,
                  fmt::format("{} does not match its SHA-256 in the manifest: the checkpoint is "
                              "damaged, use another",
                              path));
  }
  return packer->Finish();
}

// Takes the manifest, which is the archive's first member.
Result<CheckpointManifest> UnpackManifest(const std::string& file, Unpacker* unpacker) {
  TACIT_ASSIGN(const bool any, unpacker->Next());
  if (!any || fs::path(unpacker->name()).filename() != kCheckpointManifestName ||
      unpacker->bytes() > kManifestBytesMost)
    return Fail(ErrorCode::kCorruption,
                fmt::format("{} is no packed checkpoint: it does not begin with {}", file,
                            kCheckpointManifestName));
  std::string bytes;
  for (;;) {
    TACIT_ASSIGN(const std::string_view piece, unpacker->Read());
    if (piece.empty()) break;
    bytes.append(piece);
  }
  auto manifest = DecodeManifest(bytes);
  if (!manifest) return Fail(std::move(manifest.error()).Context(file));
  return manifest;
}

// kIo: the disk has less room than the files of the manifest take, whether or not it is honest.
Status CheckRoomFor(const std::string& file, const CheckpointManifest& manifest,
                    const std::string& parent) {
  std::error_code error;
  const auto disk = fs::space(parent, error);
  if (error) return Fail(FolderError(error.value(), "asking for the room of", parent));
  uint64_t left = disk.available;
  for (const CheckpointFile& one : manifest.files) {
    if (one.bytes > left)
      return Fail(ErrorCode::kIo,
                  fmt::format("{} cannot be unpacked into {}: its disk has {} MiB left, and the "
                              "files take more; make room there",
                              file, parent, disk.available >> 20));
    left -= one.bytes;
  }
  return {};
}

// Takes one file of the manifest. Its name there leads nowhere else, so that it stays in the draft.
Status UnpackFile(const std::string& file, const CheckpointManifest& manifest,
                  const std::string& folder, std::set<std::string>* taken, Unpacker* unpacker) {
  const std::string prefix = manifest.FolderName() + "/";
  const auto known = std::ranges::find_if(manifest.files, [&](const CheckpointFile& one) {
    return prefix + one.name == unpacker->name();
  });
  if (known == manifest.files.end() || !taken->insert(known->name).second)
    return Fail(ErrorCode::kCorruption, fmt::format("{} has a member '{}', which its manifest has "
                                                    "not, or twice",
                                                    file, unpacker->name()));
  if (unpacker->bytes() != known->bytes)
    return Fail(ErrorCode::kCorruption,
                fmt::format("'{}' in {} has {} bytes, and {} in the manifest", known->name, file,
                            unpacker->bytes(), known->bytes));
  const fs::path target = fs::path(folder) / known->name;
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) return Fail(FolderError(error.value(), "creating", target.parent_path()));
  TACIT_ASSIGN(const Digest digest, WritePieces(target, [&] { return unpacker->Read(); }));
  if (digest == known->sha256) return {};
  return Fail(
      ErrorCode::kCorruption,
      fmt::format("'{}' in {} does not match its SHA-256 in the manifest", known->name, file));
}

}  // namespace

Status PackCheckpoint(const std::string& folder, const std::string& file) {
  TACIT_ASSIGN(const CheckpointManifest manifest,
               CheckCheckpoint(folder, CheckpointCheck::kAtOpen));
  std::error_code error;
  if (fs::exists(file, error))
    return Fail(ErrorCode::kIo, fmt::format("{} is there already", file));
  const std::string work = fmt::format("{}.part-{}", file, getpid());
  // A file that a killed process of the same number left behind is nobody's.
  unlink(work.c_str());
  const UniqueFd fd(open(work.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (fd.get() < 0) return Fail(FolderError(errno, "creating", work));
  WorkFile packed(work);
  TACIT_ASSIGN(const auto packer, Packer::Begin(fd.get(), work));
  TACIT_RETURN_IF_ERROR(PackFiles(folder, manifest, packer.get()));
  if (fsync(fd.get()) != 0) return Fail(FolderError(errno, "syncing", work));
  TACIT_RETURN_IF_ERROR(packed.GiveName(file));
  const std::string parent = fs::absolute(file).parent_path();
  return SyncFolder(parent);
}

Result<CheckpointPlace> UnpackCheckpoint(const std::string& file, const std::string& parent) {
  TACIT_ASSIGN(const auto unpacker, Unpacker::Open(file));
  TACIT_ASSIGN(CheckpointManifest manifest, UnpackManifest(file, unpacker.get()));
  TACIT_ASSIGN(const CheckpointParent lock, CheckpointParent::Lock(parent));
  const std::string place = parent + "/" + manifest.FolderName();
  std::error_code error;
  if (fs::exists(place, error))
    return Fail(ErrorCode::kRefused, fmt::format("{} is there already", place));
  TACIT_RETURN_IF_ERROR(CheckRoomFor(file, manifest, parent));
  TACIT_ASSIGN(CheckpointDraft draft, CheckpointDraft::Begin(lock));
  std::set<std::string> taken;
  for (;;) {
    TACIT_ASSIGN(const bool more, unpacker->Next());
    if (!more) break;
    TACIT_RETURN_IF_ERROR(UnpackFile(file, manifest, draft.folder(), &taken, unpacker.get()));
  }
  for (const CheckpointFile& one : manifest.files)
    if (!taken.contains(one.name))
      return Fail(ErrorCode::kCorruption, fmt::format("{} lacks '{}'", file, one.name));
  return draft.Finish(std::move(manifest));
}

}  // namespace tacit::store
