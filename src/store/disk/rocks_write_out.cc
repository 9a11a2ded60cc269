// The part of Rocks that writes out what is in memory, so that a start has no log to replay.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "store/disk/rocks.h"

namespace tacit::store {

// A table gets the newest value of each key, and the deletions; memory has what was there before,
// too, such as the dense parameters of every commit.
uint64_t Rocks::RoomFor(rocksdb::ColumnFamilyHandle* family, bool replaced_values) const {
  using Properties = rocksdb::DB::Properties;
  constexpr uint64_t kEntryBytes = 128;  // with its share of index and filter, or its blob's head
  const auto number = [&](const std::string& property) {
    uint64_t value = 0;
    db_->GetIntProperty(family, property, &value);
    return value;
  };
  const uint64_t all = number(Properties::kCurSizeAllMemTables);
  // An older snapshot keeps values that were replaced since, and so does a table that is being
  // written now.
  const uint64_t oldest = number(Properties::kOldestSnapshotSequence);
  if (replaced_values || number(Properties::kNumImmutableMemTable) > 0 ||
      (oldest != 0 && oldest < db_->GetLatestSequenceNumber()))
    return all;
  rocksdb::ReadOptions in_memory;
  in_memory.read_tier = rocksdb::kMemtableTier;
  uint64_t bytes = kEntryBytes * number(Properties::kNumDeletesActiveMemTable);
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(in_memory, family));
  for (it->SeekToFirst(); it->Valid(); it->Next())
    bytes += it->key().size() + it->value().size() + kEntryBytes;
  return it->status().ok() ? std::min(all, bytes) : all;
}

// RocksDB does not survive if the disk fills up while it writes out.
Status Rocks::CheckRoomToWriteOut() const {
  uint64_t needed = 0;
  std::error_code error;
  const auto disk = std::filesystem::space(path_, error);
  for (const bool replaced_values : {true, false}) {
    needed = uint64_t{16} << 20;
    for (auto* family : all_families()) needed += RoomFor(family, replaced_values);
    if (error || disk.available >= needed) return {};
  }
  constexpr double kMiB = 1 << 20;
  return Fail(ErrorCode::kIo, fmt::format("its disk has {:.1f} MiB left, and {:.1f} may be needed",
                                          static_cast<double>(disk.available) / kMiB,
                                          static_cast<double>(needed) / kMiB));
}

Status Rocks::EmptyLog() const {
  const MutexLock lock(log_mutex_);
  TACIT_RETURN_IF_ERROR(latch_->status());
  TACIT_RETURN_IF_ERROR(CheckRoomToWriteOut());
  std::vector<rocksdb::ColumnFamilyHandle*> all = all_families();
  all.push_back(default_family_);
  TACIT_RETURN_IF_ERROR(Latch(db_->Flush({}, all), "writing out"));
  // A family that a RocksDB thread was just flushing holds the old log until there is a new one.
  // The deletion of a missing key creates the new log.
  TACIT_RETURN_IF_ERROR(Latch(db_->Delete({}, default_family_, "settled"), "writing"));
  return Latch(db_->Flush({}, default_family_), "writing out");
}

}  // namespace tacit::store
