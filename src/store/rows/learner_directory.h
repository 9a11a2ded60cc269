#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/disk/rocks.h"
#include "store/types/learner_layout.h"
#include "store/types/learner_record.h"

namespace tacit::store {

// Checks that `configured` is the same model as `stored`, whose form was noted as this (empty: it
// was not). kRefused names the learner and the first difference.
Status CheckSameModel(const LearnerRecord& stored, const LearnerLayout& configured,
                      std::string_view form);
// The form of the learner with this key; empty if none was noted.
std::string_view FormOf(std::span<const std::string> forms, uint16_t key);

// All learners of the store, and the keys of the configured ones. Immutable once built.
class LearnerDirectory {
 public:
  // `as_served`: the rows and dense parameters lie in the store as they are served, as in a release
  // checkpoint.
  LearnerDirectory(uint32_t shards, std::vector<LearnerRecord> records, bool as_served = false)
      : shards_(shards), records_(std::move(records)), as_served_(as_served) {}

  struct Matched {
    std::vector<uint16_t> changed;  // keys of the records that are new, or changed at once
    std::vector<size_t> others;     // configured learners whose trained model is another
  };
  // Finds or adds each configured learner. A trained learner must be the same model, or, where
  // forms are given (by key), one that may grow; an untrained one becomes the new model. `renames`:
  // StoreOptions::renames.
  Result<Matched> Match(std::span<const LearnerLayout> configured, std::span<const uint8_t> trained,
                        std::span<const std::string> forms = {},
                        const std::map<std::string, std::string>& renames = {});
  // Puts a record in the place of that of its key.
  void Replace(LearnerRecord record);

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
    return {PlaceHigh(bucket % shards_, learner.key, learner.layout.PlaceOf(table).number), bucket};
  }

 private:
  uint32_t shards_;
  std::vector<LearnerRecord> records_;
  bool as_served_;
  std::vector<uint16_t> keys_;  // by place in the configuration
};

}  // namespace tacit::store
