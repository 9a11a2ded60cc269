#pragma once

#include <rocksdb/file_system.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace tacit::store {

// The files of a database as they were at one moment, for RocksDB to read beside the database's
// owner. RocksDB reads the list of tables first and the log later; an owner that folds in between
// would show it the end of a fold without its beginning. Here both end where they ended at that
// moment, and files that the owner deletes since then can still be read. Writes nothing.
// Thread-safe.
class FrozenFiles final : public rocksdb::FileSystemWrapper {
 public:
  // Opens the files of a folder. At most about `files_most` are kept open; tables beyond are read
  // by their names, as long as the owner keeps them. kNotFound: there is no database. kIo: the
  // disk, or a list of tables that never stood still.
  static Result<std::shared_ptr<FrozenFiles>> Freeze(const std::string& folder,
                                                     uint64_t files_most);
  const char* Name() const override { return "tacit.frozen_files"; }

  rocksdb::IOStatus NewSequentialFile(const std::string& file, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& file,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus FileExists(const std::string& file, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildren(const std::string& folder, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFileSize(const std::string& file, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* context) override;

  // Lets a file end here. REQUIRES that no file has been opened for RocksDB since then.
  void EndAt(const std::string& file, uint64_t bytes);
  // The same of a damaged log, and of those after it, which are empty then: RocksDB would go on
  // after some kinds of damage.
  void EndLogsAtDamage();

  // A file that ends at `bytes`, even if more is appended. `fd` -1: not kept open.
  struct Held {
    UniqueFd fd;
    uint64_t bytes = 0;
  };

 private:
  FrozenFiles(std::string folder, uint64_t files_most)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        folder_(std::move(folder)),
        files_most_(files_most) {}
  Result<bool> Look();
  Status Hold(const std::string& name);
  std::shared_ptr<const Held> Find(const std::string& file) const;
  bool IsInside(const std::string& file) const;

  const std::string folder_;  // without a slash at its end
  const uint64_t files_most_;
  std::map<std::string, std::shared_ptr<Held>> held_;  // by name, with the shard's folder
};

}  // namespace tacit::store
