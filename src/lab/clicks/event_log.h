#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "event/batch.h"
#include "event/feature_transform.h"
#include "event/raw_records.h"

namespace tacit::lab {

// A log that many experiments read. It is decoded once and kept in memory while it fits, at 4 bytes
// for each number and each value of an event, and 5 more per event; otherwise it is read and
// decoded each time. Immutable; thread-safe.
class EventLog {
 public:
  // Takes a run of records and the examples decoded from them, as Participation::Cut does (the
  // frame has offsets and cuts, but no bytes). Returns false to stop.
  using Take =
      std::function<Result<bool>(const event::RawRecords& frame, const event::Batch& examples)>;

  // Reads everything once. `transform` must outlive the log. kInvalidArgument names file and line
  // of a record that is not there whole: the file is cut short or damaged there, or it is too long.
  static Result<std::unique_ptr<EventLog>> Open(const config::Source& log,
                                                const event::FeatureTransform& transform,
                                                uint64_t cache_bytes_max);

  // Calls `take` with the records [begin, end) in order. A file that ends at `end` counts as ended.
  Status ForEach(uint64_t begin, uint64_t end, const Take& take) const;

  uint64_t records() const { return records_; }  // dead letters included
  uint64_t dead_letters() const { return dead_letters_.count; }
  // Says where the first of them lies, and what is wrong with it; empty if there is none.
  const std::string& first_dead_letter() const { return dead_letters_.first; }
  // For each file, the offset after its last record.
  const std::vector<uint64_t>& file_ends() const { return file_ends_; }
  // Identifies the records: the same for the same records.
  const std::string& identity() const { return identity_; }
  bool cached() const { return cached_; }
  uint64_t cache_bytes() const { return cache_bytes_; }

 private:
  struct DeadLetters {
    uint64_t count = 0;
    std::string first = {};
  };
  // A batch without the columns that can be derived.
  struct Piece {
    uint64_t first_offset = 0;
    size_t records = 0;
    std::vector<event::PublicCut> cuts;
    std::vector<uint32_t> offset;  // from first_offset
    std::vector<uint8_t> label;
    std::vector<float> dense;
    std::vector<uint32_t> row;
    std::vector<uint32_t> slot_end;  // empty where each slot has one row

    uint64_t bytes() const;
    void Expand(const event::FeatureTransform& transform, event::RawRecords* frame,
                event::Batch* batch) const;
  };

  EventLog(const config::Source& log, const event::FeatureTransform& transform)
      : log_(log), transform_(transform) {}

  Status Read(const Take& take, std::string* identity, DeadLetters* dead) const;
  void Keep(const event::RawRecords& frame, const event::Batch& batch, uint64_t cache_bytes_max);

  const config::Source log_;
  const event::FeatureTransform& transform_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> file_ends_;
  std::string identity_;
  uint64_t records_ = 0, cache_bytes_ = 0;
  DeadLetters dead_letters_;
  bool cached_ = true;
};

}  // namespace tacit::lab
