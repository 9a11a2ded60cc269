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

// A learner as the store knows it. `key` identifies it in every key permanently; its place in the
// configuration may change.
struct LearnerRecord {
  uint16_t key = 0;
  std::string name;
  Digest model_fingerprint{};
  RowLayout layout;
};

std::string EncodeLearner(const LearnerRecord& record);
Result<LearnerRecord> DecodeLearner(uint16_t key, std::string_view bytes);

// Checks that `configured` is the same model as `stored`. kRefused names the learner and the first
// difference.
Status CheckSameModel(const LearnerRecord& stored, const LearnerLayout& configured);

// All learners of the store, and the keys of the configured ones. Immutable once built.
class LearnerDirectory {
 public:
  // `as_served`: the rows and dense parameters lie in the store as they are served, as in a release
  // checkpoint.
  LearnerDirectory(uint32_t shards, std::vector<LearnerRecord> records, bool as_served = false)
      : shards_(shards), records_(std::move(records)), as_served_(as_served) {}

  // Finds or adds each configured learner. A trained learner must be the same model; an untrained
  // one takes the new form. Returns the keys of the changed records.
  Result<std::vector<uint16_t>> Match(std::span<const LearnerLayout> configured,
                                      std::span<const uint8_t> trained);

  // All records, by key.
  const std::vector<LearnerRecord>& records() const { return records_; }
  uint32_t shards() const { return shards_; }
  size_t configured() const { return keys_.size(); }
  bool as_served() const { return as_served_; }
  // REQUIRES a learner of the configuration.
  uint16_t KeyOf(LearnerIndex learner) const;
  const LearnerRecord& Configured(LearnerIndex learner) const { return records_[KeyOf(learner)]; }

  // The place of a row in the store. `table` is the row's table.
  RowPlace Place(const LearnerRecord& learner, uint32_t table, uint64_t row) const {
    const uint64_t bucket = row - learner.layout.space.tables()[table].first;
    return {(bucket % shards_) << 32 | uint64_t{learner.key} << 16 | table, bucket};
  }

 private:
  uint32_t shards_;
  std::vector<LearnerRecord> records_;
  bool as_served_;
  std::vector<uint16_t> keys_;  // by place in the configuration
};

}  // namespace tacit::store
