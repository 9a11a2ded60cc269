#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "event/batch.h"
#include "event/codec.h"
#include "event/raw_records.h"
#include "metrics/registry.h"
#include "train/dedupe.h"
#include "train/opt_out.h"

namespace tacit::train {

struct RecordFilterOptions {
  bool needs_user = false;         // some learner's unit is the user
  uint64_t dedupe_window = 0;      // 0: event ids are not compared
  uint64_t dedupe_partitions = 1;  // partitions that memory is set aside for; more are logged
  SipHash::Key key{};              // key of the hash that ids are compared by
  metrics::Counter duplicates = {};
  std::shared_ptr<const OptOut> opt_out = {};  // users who are never learnt from; null if nobody is
  metrics::Counter opted_out = {};
};

// Filters decoded records before any learner sees them: drops those of users who opted out, those
// without a required user, and duplicates. Not thread-safe.
class RecordFilter {
 public:
  explicit RecordFilter(const RecordFilterOptions& options);

  // Offsets that must be read before the first one to learn from, for deduplication.
  uint64_t window() const { return options_.dedupe_window; }
  // Removes from `batch` records of users who opted out (counted), records without a user, if one
  // is required (as dead letters), and duplicates (counted, but no dead letters: they were learnt
  // from).
  void Apply(const event::RawRecords& records, event::Batch* batch,
             std::vector<event::DeadLetter>* dead);
  // Starts over: the next batch is from the beginning of the stream.
  void BeginPass();

 private:
  void TakeOutOptedOut(event::Batch* batch);
  void TellOfMemory(int32_t partition);
  void TakeOut(const std::vector<uint32_t>& examples, event::Batch* batch);

  const RecordFilterOptions options_;
  std::optional<Deduper> deduper_;
  std::set<int32_t> partitions_;  // seen so far, when there is a window
  std::vector<uint32_t> out_;
  event::Batch rest_;
};

}  // namespace tacit::train
