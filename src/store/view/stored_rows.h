#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"
#include "store/view/snapshot_impl.h"

namespace tacit::store {

// Shows every row of all learners that was ever written, as of the snapshot: its key, and its bytes
// as the store or an unfolded commit has them (DecodeRow reads both). The keys of a family of rows
// ascend, and so do those of unfolded commits among them. A failure of `each` ends it.
using EachStoredRow = std::function<Status(std::string_view key, std::string_view stored)>;
Status ForStoredRows(const Rocks& rocks, const SnapshotImpl& snapshot,
                     const LearnerDirectory& directory, const EachStoredRow& each);

// Takes stored rows apart. One thread at a time.
class StoredRowParser {
 public:
  explicit StoredRowParser(const LearnerDirectory& directory) : records_(directory.records()) {}

  struct Row {
    const LearnerRecord* learner = nullptr;
    uint16_t number = 0;  // the table's, in keys
    uint32_t dim = 0;
    uint64_t bucket = 0;
    std::span<const float> floats;  // with the optimiser's; valid until the next call
  };
  // kCorruption: it is no row of these learners.
  Result<Row> Parse(std::string_view key, std::string_view stored);

 private:
  const std::vector<LearnerRecord>& records_;
  std::vector<float> floats_;
};

}  // namespace tacit::store
