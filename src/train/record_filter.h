#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "event/batch.h"
#include "event/codec.h"
#include "event/raw_records.h"
#include "metrics/registry.h"
#include "stream/dedupe.h"

namespace tacit::train {

struct RecordFilterOptions {
  bool needs_user = false;         // some learner's unit is the user
  uint64_t dedupe_window = 0;      // 0: event ids are not looked at
  uint64_t dedupe_partitions = 1;  // that there is memory for; of more the log tells
  SipHash::Key key{};              // that they are compared under
  metrics::Counter duplicates = {};
};

// What decoded records have to be, beside well-formed, before any learner sees them. Not
// thread-safe.
class RecordFilter {
 public:
  explicit RecordFilter(const RecordFilterOptions& options);

  // How many offsets before the first that anybody learns from must come by to know what is new.
  uint64_t window() const { return options_.dedupe_window; }
  // Takes out of `batch` what names no user, where one is needed (a dead letter), and what was
  // there before (counted, and no dead letter: it was learnt from).
  void Apply(const event::RawRecords& records, event::Batch* batch,
             std::vector<event::DeadLetter>* dead);
  // The next batch is from the beginning of the stream.
  void BeginPass();

 private:
  void TellOfMemory(int32_t partition);
  void TakeOut(const std::vector<uint32_t>& examples, event::Batch* batch);

  const RecordFilterOptions options_;
  std::optional<stream::Deduper> deduper_;
  std::set<int32_t> partitions_;  // with a window
  std::vector<uint32_t> out_;
  event::Batch rest_;
};

}  // namespace tacit::train
