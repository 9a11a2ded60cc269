#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"

namespace tacit::store {

// Reads rows shard by shard, with MultiGet over sorted keys; missing rows get their initial value.
// Keeps its scratch memory between calls; not thread-safe.
class RowReader {
 public:
  enum class Extent {
    kServed,     // the embedding, or its moving average as of `step`
    kWithState,  // the whole row of a store that has them whole
  };

  // Writes row i of `rows` (any order, repeats allowed) to out[i], as of `snapshot` or (null) now.
  Status Read(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
              const LearnerDirectory& directory, const LearnerRecord& learner,
              std::span<const uint64_t> rows, std::span<float* const> out, Extent extent,
              uint32_t step = 0);

 private:
  struct Wanted {
    RowPlace place;
    uint64_t row;
    uint32_t table;
    float* out;
  };
  static uint64_t ShardOf(const Wanted& wanted) { return wanted.place.high >> 32; }
  Status ReadBatch(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                   const LearnerRecord& learner, bool as_served, std::span<const Wanted> wanted,
                   Extent extent, uint32_t step);
  // Copies out a stored row. False if it is none of its table's.
  bool CopyOut(const RowLayout& layout, const Wanted& wanted, std::string_view stored,
               bool as_served, Extent extent, uint32_t step);

  std::vector<Wanted> wanted_;
  std::vector<RowKey> keys_;
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> statuses_;
  std::vector<float> row_;
};

// Fills in the row as it is before any learning: drawn embedding, zeroed optimiser state.
void FillInitialRow(const RowLayout& layout, uint32_t table, uint64_t row, std::span<float> out);

}  // namespace tacit::store
