#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "event/bad_record.h"
#include "event/batch.h"
#include "event/codec.h"
#include "event/example_builder.h"
#include "event/raw_records.h"

// The parts of a record beside its features, for formats with named parts.
namespace tacit::event {

// The texts are views of bytes that must last until the example is appended.
struct RecordParts {
  std::string_view event_id, user;
  uint32_t item = kNoItem;
  std::optional<float> label = {};
  std::optional<int64_t> timestamp_ms = {};
  double weight = 1;  // at least 0
};

// Appends the example of record `i`. Returns a reason if the label is missing where it is learnt,
// the record's own time lies too far ahead, or a feature is missing that must be there. `place`
// says where the label should have been; it may be empty.
MaybeBad AppendExample(const RawRecords& records, size_t i, const RecordParts& parts,
                       const ExampleBuilder& example, const InteractionOptions& options,
                       std::string_view place, Batch* batch);

}  // namespace tacit::event
