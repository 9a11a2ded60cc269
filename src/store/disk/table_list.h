#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tacit::store {

// The list of tables. RocksDB writes the records of a fold one by one and syncs them together, so a
// loss of power could leave one in part and a later one whole, as damage does (log_damage.h). Once
// the list is in force, which its first sync tells, what is not synced lies in one sector, or is
// one record. `in_doubt` is set once a call fails: what it wrote may be on disk, or not.
class TableList final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  TableList(std::unique_ptr<rocksdb::FSWritableFile> file,
            std::shared_ptr<std::atomic<bool>> in_doubt)
      : FSWritableFileOwnerWrapper(std::move(file)), in_doubt_(std::move(in_doubt)) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& record, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus ready = MakeReady(record.size(), options, context);
    return ready.ok() ? Noted(target()->Append(record, options, context)) : ready;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& record, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& checksum,
                           rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus ready = MakeReady(record.size(), options, context);
    return ready.ok() ? Noted(target()->Append(record, options, checksum, context)) : ready;
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* context) override {
    synced_ = bytes_;
    return Noted(target()->Sync(options, context));
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* context) override {
    synced_ = bytes_;
    return Noted(target()->Fsync(options, context));
  }

 private:
  static constexpr uint64_t kSector = 512;

  rocksdb::IOStatus Noted(rocksdb::IOStatus status) {
    if (!status.ok()) *in_doubt_ = true;
    return status;
  }
  rocksdb::IOStatus MakeReady(uint64_t record, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* context) {
    const bool apart =
        synced_ > 0 && synced_ < bytes_ && (bytes_ + record - 1) / kSector > synced_ / kSector;
    rocksdb::IOStatus synced = apart ? Sync(options, context) : rocksdb::IOStatus::OK();
    bytes_ += record;
    return synced;
  }

  const std::shared_ptr<std::atomic<bool>> in_doubt_;
  uint64_t bytes_ = 0, synced_ = 0;
};

}  // namespace tacit::store
