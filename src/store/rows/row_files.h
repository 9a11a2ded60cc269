#pragma once

#include <rocksdb/sst_file_writer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/disk/rocks.h"

namespace tacit::store {

// Sorted files of rows that one family will take in. Removes the files that it was not asked for.
// Not thread-safe.
class RowFiles {
 public:
  // Files have about `bytes_most`, and are called PREFIX-N.tmp; they must be on the family's disk.
  RowFiles(const Rocks& rocks, rocksdb::ColumnFamilyHandle* family, std::string prefix,
           uint64_t bytes_most);
  ~RowFiles();
  RowFiles(RowFiles&&) = default;

  // REQUIRES ascending keys.
  Status Put(std::string_view key, std::string_view value);
  // Ends the last file.
  Status Finish();
  bool empty() const { return arg_.external_files.empty(); }

  // Has all these families take their files in, all or none. REQUIRES that each was finished, and
  // that the caller holds the log's lock where other threads write: it may begin a new log.
  static rocksdb::Status Ingest(const Rocks& rocks, std::vector<RowFiles>& files);

 private:
  Status Begin();
  std::string Doing() const;

  const Rocks* rocks_;
  std::string prefix_;
  uint64_t bytes_most_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
  rocksdb::IngestExternalFileArg arg_;
};

}  // namespace tacit::store
