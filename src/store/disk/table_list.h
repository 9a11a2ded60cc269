#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace tacit::store {

// The list of tables. RocksDB writes the records of a fold one by one and syncs them together, so a
// loss of power could leave one in part and a later one whole, as damage does (log_damage.h). Once
// the list is in force, which its first sync tells, what is not synced lies in one sector, or is
// one record.
class TableList final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  explicit TableList(std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& record, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus ready = MakeReady(record.size(), options, context);
    return ready.ok() ? target()->Append(record, options, context) : ready;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& record, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& checksum,
                           rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus ready = MakeReady(record.size(), options, context);
    return ready.ok() ? target()->Append(record, options, checksum, context) : ready;
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* context) override {
    synced_ = bytes_;
    return target()->Sync(options, context);
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* context) override {
    synced_ = bytes_;
    return target()->Fsync(options, context);
  }

 private:
  static constexpr uint64_t kSector = 512;

  rocksdb::IOStatus MakeReady(uint64_t record, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* context) {
    const bool apart =
        synced_ > 0 && synced_ < bytes_ && (bytes_ + record - 1) / kSector > synced_ / kSector;
    rocksdb::IOStatus synced = apart ? Sync(options, context) : rocksdb::IOStatus::OK();
    bytes_ += record;
    return synced;
  }

  uint64_t bytes_ = 0, synced_ = 0;
};

}  // namespace tacit::store
