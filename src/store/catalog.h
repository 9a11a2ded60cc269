#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/rocks.h"
#include "store/store.h"

namespace tacit::store {

// A learner as the store knows it. `key` stands for it in every key for good; its place in the
// configuration may change.
struct LearnerRecord {
  uint16_t key = 0;
  std::string name;
  Digest model_fingerprint{};
  RowLayout layout;
};

std::string EncodeLearner(const LearnerRecord& record);
Result<LearnerRecord> DecodeLearner(uint16_t key, std::string_view bytes);

// What makes `configured` another model than `stored`, or nothing. kRefused names the learner and
// the first difference.
Status CheckSameModel(const LearnerRecord& stored, const LearnerLayout& configured);

// Every learner of the store, and where those of the configuration lie in it. Immutable once built.
class Catalog {
 public:
  Catalog(uint32_t shards, std::vector<LearnerRecord> records)
      : shards_(shards), records_(std::move(records)) {}

  // Finds or adds each configured learner. A learner that was trained must be the same model; one
  // that never was takes the new form. Returns the keys of the records that changed.
  Result<std::vector<uint16_t>> Match(std::span<const LearnerLayout> configured,
                                      std::span<const uint8_t> trained);

  // By key.
  const std::vector<LearnerRecord>& records() const { return records_; }
  size_t configured() const { return keys_.size(); }
  // REQUIRES a learner of the configuration.
  uint16_t KeyOf(LearnerIndex learner) const;
  const LearnerRecord& Configured(LearnerIndex learner) const { return records_[KeyOf(learner)]; }

  // Where a row lies. `table` is the row's table.
  RowPlace Place(const LearnerRecord& learner, uint32_t table, uint64_t row) const {
    const uint64_t bucket = row - learner.layout.space.tables()[table].first;
    return {(bucket % shards_) << 32 | uint64_t{learner.key} << 16 | table, bucket};
  }

 private:
  uint32_t shards_;
  std::vector<LearnerRecord> records_;
  std::vector<uint16_t> keys_;  // by place in the configuration
};

}  // namespace tacit::store
