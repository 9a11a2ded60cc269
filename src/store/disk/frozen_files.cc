#include "store/disk/frozen_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "store/disk/folder.h"
#include "store/disk/log_damage.h"
#include "store/disk/row_families.h"

namespace tacit::store {
namespace {

using rocksdb::IOStatus;
constexpr auto kFreezePatience = std::chrono::seconds(5);
constexpr auto kFreezePause = std::chrono::microseconds(200);
// RocksDB moves a whole CURRENT into place, and removes a list only after that. One that names no
// list for so long, and stays the same, is damaged.
constexpr auto kDamagedAfter = std::chrono::milliseconds(100);

// Reads up to `n` bytes at `offset`; fewer only at the end.
IOStatus ReadHeld(const FrozenFiles::Held& file, uint64_t offset, size_t n, rocksdb::Slice* result,
                  char* out) {
  n = static_cast<size_t>(std::min<uint64_t>(n, file.bytes - std::min(file.bytes, offset)));
  size_t done = 0;
  while (done < n) {
    const ssize_t got =
        pread(file.fd.get(), out + done, n - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IOStatus::IOError("reading a frozen file", std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  *result = rocksdb::Slice(out, done);
  return IOStatus::OK();
}

class FrozenSequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit FrozenSequentialFile(std::shared_ptr<const FrozenFiles::Held> file)
      : file_(std::move(file)) {}
  IOStatus Read(size_t n, const rocksdb::IOOptions&, rocksdb::Slice* result, char* scratch,
                rocksdb::IODebugContext*) override {
    IOStatus status = ReadHeld(*file_, offset_, n, result, scratch);
    if (status.ok()) offset_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<const FrozenFiles::Held> file_;
  uint64_t offset_ = 0;
};

class FrozenRandomFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit FrozenRandomFile(std::shared_ptr<const FrozenFiles::Held> file)
      : file_(std::move(file)) {}
  IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions&, rocksdb::Slice* result,
                char* scratch, rocksdb::IODebugContext*) const override {
    return ReadHeld(*file_, offset, n, result, scratch);
  }
  void Hint(AccessPattern pattern) override {
    if (pattern == kRandom) (void)posix_fadvise(file_->fd.get(), 0, 0, POSIX_FADV_RANDOM);
  }

 private:
  const std::shared_ptr<const FrozenFiles::Held> file_;
};

bool IsTable(const std::string& name) { return name.ends_with(".sst") || name.ends_with(".blob"); }
bool IsOfDatabase(const std::string& name) {
  return IsTable(name) || name.ends_with(".log") || name.starts_with("MANIFEST-") ||
         name == "CURRENT" || name == "IDENTITY";
}

// The name of the list of tables that is in force, as CURRENT has it.
std::string ListInForce(const std::string& folder) {
  std::ifstream current(folder + "/CURRENT");
  std::string name;
  std::getline(current, name);
  return name;
}

std::optional<uint64_t> BytesOf(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return static_cast<uint64_t>(file.st_size);
}

// The name and size of the list of tables that is in force; nothing if there is none at present.
std::optional<std::pair<std::string, uint64_t>> TablesListed(const std::string& folder) {
  std::string name = ListInForce(folder);
  const auto bytes = BytesOf(folder + "/" + name);
  if (!bytes) return std::nullopt;
  return std::pair(std::move(name), *bytes);
}

// Tells whether CURRENT has named the same list, which is not there, for too long.
class DamagedCurrent {
 public:
  bool Sees(const std::string& folder, std::chrono::steady_clock::time_point now) {
    std::string name = ListInForce(folder);
    if (BytesOf(folder + "/" + name)) {
      missing_.reset();
    } else if (!missing_ || *missing_ != name) {
      missing_ = std::move(name);
      since_ = now;
    }
    return missing_ && now - since_ > kDamagedAfter;
  }

 private:
  std::optional<std::string> missing_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace

Result<std::shared_ptr<FrozenFiles>> FrozenFiles::Freeze(const std::string& folder,
                                                         uint64_t files_most) {
  std::string plain = folder;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  std::shared_ptr<FrozenFiles> files(new FrozenFiles(plain, files_most));
  const auto deadline = std::chrono::steady_clock::now() + kFreezePatience;
  DamagedCurrent damaged;
  for (;;) {
    TACIT_ASSIGN(const bool still, files->Look());
    if (still) return files;
    const auto now = std::chrono::steady_clock::now();
    if (now > deadline || damaged.Sees(folder, now))
      return Fail(ErrorCode::kIo,
                  fmt::format("the files of store {} do not stand still to be read", folder));
    std::this_thread::sleep_for(kFreezePause);
  }
}

// Opens what is there. Returns true if the list of tables was the same before and after: then all
// files of the list are open, and the sizes of the logs belong to it. Files that are open from the
// look before are not opened again, so that the next look takes less time than a fold.
Result<bool> FrozenFiles::Look() {
  const auto before = TablesListed(folder_);
  if (!before) return false;
  std::map<std::string, std::shared_ptr<Held>> known = std::exchange(held_, {});
  TACIT_ASSIGN(const auto folders, FoldersOf(folder_));
  for (const std::string& folder : folders) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(NameIn(folder_, folder), error), end;
         !error && it != end; it.increment(error)) {
      const std::string file = it->path().filename(), name = NameIn(folder, file);
      if (!IsOfDatabase(file)) continue;
      const auto found = known.find(name);
      if (found != known.end() && IsTable(name))
        held_.insert(*found);
      else
        TACIT_RETURN_IF_ERROR(Hold(name));
    }
    if (error == std::errc::no_such_file_or_directory && !folder.empty()) continue;  // cut anew
    if (error) return Fail(FolderError(error.value(), "reading", NameIn(folder_, folder)));
  }
  const auto list = held_.find(before->first);
  if (before != TablesListed(folder_) || list == held_.end()) return false;
  list->second->bytes = before->second;
  return true;
}

Status FrozenFiles::Hold(const std::string& name) {
  const std::string path = folder_ + "/" + name;
  auto file = std::make_shared<Held>();
  struct stat now {};
  if (IsTable(name) && held_.size() >= files_most_) {
    if (stat(path.c_str(), &now) != 0) return {};
  } else {
    file->fd = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file->fd.get() < 0 && errno == ENOENT) return {};  // deleted since it was listed
    if (file->fd.get() < 0 || fstat(file->fd.get(), &now) != 0)
      return Fail(FolderError(errno, "opening", path));
  }
  file->bytes = static_cast<uint64_t>(now.st_size);
  held_[name] = std::move(file);
  return {};
}

void FrozenFiles::EndAt(const std::string& file, uint64_t bytes) {
  const auto found = held_.find(file.substr(folder_.size() + 1));
  if (found != held_.end()) found->second->bytes = std::min(found->second->bytes, bytes);
}

void FrozenFiles::EndLogsAtDamage() {
  const auto found = CheckLogs(folder_);
  if (!found) return;
  for (const LogDamage& damage : *found) {
    if (!damage.file.ends_with(".log")) continue;
    EndAt(damage.file, damage.offset);
    if (damage.torn) continue;
    for (auto file = held_.upper_bound(damage.file.substr(folder_.size() + 1)); file != held_.end();
         ++file)
      if (file->first.ends_with(".log")) file->second->bytes = 0;
  }
}

bool FrozenFiles::IsInside(const std::string& file) const {
  return file.size() > folder_.size() + 1 && file.starts_with(folder_) &&
         file[folder_.size()] == '/';
}

std::shared_ptr<const FrozenFiles::Held> FrozenFiles::Find(const std::string& file) const {
  if (!IsInside(file)) return nullptr;
  const auto found = held_.find(file.substr(folder_.size() + 1));
  return found == held_.end() ? nullptr : found->second;
}

IOStatus FrozenFiles::NewSequentialFile(const std::string& file,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                        rocksdb::IODebugContext* context) {
  auto held = Find(file);
  if (held == nullptr || held->fd.get() < 0)
    return FileSystemWrapper::NewSequentialFile(file, options, result, context);
  IOStatus status =
      IsLog(file) ? CheckNothingIsPassedOver(file, held->fd.get(), held->bytes) : IOStatus::OK();
  *result = std::make_unique<FrozenSequentialFile>(std::move(held));
  return status;
}

IOStatus FrozenFiles::NewRandomAccessFile(const std::string& file,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                          rocksdb::IODebugContext* context) {
  auto held = Find(file);
  if (held == nullptr || held->fd.get() < 0)
    return FileSystemWrapper::NewRandomAccessFile(file, options, result, context);
  *result = std::make_unique<FrozenRandomFile>(std::move(held));
  return IOStatus::OK();
}

IOStatus FrozenFiles::FileExists(const std::string& file, const rocksdb::IOOptions& options,
                                 rocksdb::IODebugContext* context) {
  if (!IsInside(file)) return FileSystemWrapper::FileExists(file, options, context);
  return Find(file) != nullptr ? IOStatus::OK() : IOStatus::NotFound(file);
}

IOStatus FrozenFiles::GetChildren(const std::string& folder, const rocksdb::IOOptions& options,
                                  std::vector<std::string>* names,
                                  rocksdb::IODebugContext* context) {
  std::string plain = folder;
  while (plain.ends_with('/')) plain.pop_back();
  if (plain != folder_ && !IsInside(plain))
    return FileSystemWrapper::GetChildren(folder, options, names, context);
  plain += '/';
  names->clear();
  for (const auto& [name, file] : held_) {
    const std::string path = folder_ + "/" + name;
    if (path.starts_with(plain) && path.find('/', plain.size()) == path.npos)
      names->push_back(path.substr(plain.size()));
  }
  return IOStatus::OK();
}

IOStatus FrozenFiles::GetFileSize(const std::string& file, const rocksdb::IOOptions& options,
                                  uint64_t* bytes, rocksdb::IODebugContext* context) {
  const auto held = Find(file);
  if (held == nullptr) return FileSystemWrapper::GetFileSize(file, options, bytes, context);
  *bytes = held->bytes;
  return IOStatus::OK();
}

}  // namespace tacit::store
