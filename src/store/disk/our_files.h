#pragma once

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/files/unique_fd.h"
#include "store/disk/file_digest.h"
#include "store/disk/log_damage.h"
#include "store/disk/table_list.h"

namespace tacit::store {

// The default file system, which also records why a lock was refused (RocksDB passes on only its
// own message), and puts the names of tables on disk: where a family has a folder of its own,
// RocksDB syncs the folder of the database instead, after it has replayed a log into a table or
// taken one in by a link. A log or list of tables with damage that RocksDB would pass over is not
// opened.
class OurFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit OurFiles(std::string database)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), database_(std::move(database)) {}
  const char* Name() const override { return "tacit.files"; }
  rocksdb::IOStatus LockFile(const std::string& file, const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext* context) override {
    errno = 0;
    rocksdb::IOStatus status = FileSystemWrapper::LockFile(file, options, lock, context);
    const int error = errno;
    if (!status.ok()) error_ = error;
    return status;
  }
  rocksdb::IOStatus NewSequentialFile(const std::string& file, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* made,
                                      rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus status =
        FileSystemWrapper::NewSequentialFile(file, options, made, context);
    if (!status.ok() || !IsLog(file)) return status;
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
      return rocksdb::IOStatus::IOError(file, std::strerror(errno));
    return CheckNothingIsPassedOver(file, fd.get(), static_cast<uint64_t>(info.st_size));
  }
  rocksdb::IOStatus NewWritableFile(const std::string& file, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* made,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(file, options, made, context);
    if (status.ok() && std::filesystem::path(file).filename().string().starts_with("MANIFEST-"))
      *made = std::make_unique<TableList>(std::move(*made), list_in_doubt_);
    return SyncName(std::move(status), file);
  }
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override {
    return SyncName(FileSystemWrapper::LinkFile(from, to, options, context), to);
  }
  // RocksDB removes tables that a list names, if the call that wrote their names has failed.
  rocksdb::IOStatus DeleteFile(const std::string& file, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override {
    if (*list_in_doubt_)
      return rocksdb::IOStatus::IOError(file, "it stays, as the list of tables may name it");
    return FileSystemWrapper::DeleteFile(file, options, context);
  }
  // CURRENT may not name a list of tables whose own name a loss of power still takes.
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus synced = SyncFolderOf(to);
    return synced.ok() ? FileSystemWrapper::RenameFile(from, to, options, context) : synced;
  }
  // Errno of the last refused lock; 0: none was refused.
  int error() const { return error_; }

 private:
  rocksdb::IOStatus SyncName(rocksdb::IOStatus status, const std::string& file) const {
    const bool own = std::filesystem::path(file).parent_path() == database_;
    return !status.ok() || own ? status : SyncFolderOf(file);
  }
  static rocksdb::IOStatus SyncFolderOf(const std::string& file) {
    const Status synced = SyncFolder(std::filesystem::path(file).parent_path());
    return synced ? rocksdb::IOStatus::OK() : rocksdb::IOStatus::IOError(synced.error().message);
  }

  const std::string database_;
  const std::shared_ptr<std::atomic<bool>> list_in_doubt_ =
      std::make_shared<std::atomic<bool>>(false);
  std::atomic<int> error_ = 0;
};

}  // namespace tacit::store
