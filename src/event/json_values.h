#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <string>
#include <string_view>
#include <utility>

#include "event/bad_record.h"
#include "event/raw_records.h"

// This is shared by the JSON codecs; nobody else includes simdjson. Values, fields and objects go
// by reference: a copy of one that was just written waits until it has left the processor's store
// queue, which takes longer than reading it.
namespace tacit::event {

namespace ondemand = simdjson::ondemand;

inline MaybeBad Said(std::string_view field, std::string_view what,
                     BadPart part = BadPart::kField) {
  return BadRecord(fmt::format("{}: {}", field, what), part);
}

inline MaybeBad NoRecord(std::string what) { return BadRecord(std::move(what), BadPart::kSyntax); }

inline MaybeBad Broken(simdjson::error_code error) {
  return NoRecord(fmt::format("no valid JSON: {}", simdjson::error_message(error)));
}

inline std::string_view Trimmed(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

// Tells whether a value is null. Its type alone tells no more than that it begins with an n.
inline bool IsNull(ondemand::value value) {
  bool null = false;
  return value.is_null().get(null) == simdjson::SUCCESS && null;
}

// A parser with its memory, for one record after the other.
class RecordParser {
 public:
  // Parses record `i` and calls `read(object)`, which returns MaybeBad. A record must be one object
  // and nothing else.
  template <class Read>
  MaybeBad ReadObject(const RawRecords& records, size_t i, const Read& read) {
    const std::string_view record = records[i];
    if (record.empty()) return NoRecord("the record is empty");
    ondemand::document document;
    if (const auto error = parser_.iterate(Padded(records, record)).get(document))
      return Broken(error);
    ondemand::object object;
    if (const auto error = document.get_object().get(object))
      return error == simdjson::INCORRECT_TYPE ? NoRecord("no JSON object") : Broken(error);
    if (MaybeBad reason = read(object)) return reason;
    // A document that was read to its end has no current location.
    if (document.current_location().error() == simdjson::SUCCESS)
      return NoRecord("no valid JSON: something follows the object");
    return std::nullopt;
  }

 private:
  // Returns the record with padding: the parser reads some bytes after it, most often the next
  // record's.
  simdjson::padded_string_view Padded(const RawRecords& records, std::string_view record) {
    const size_t room =
        records.bytes.capacity() - static_cast<size_t>(record.data() - records.bytes.data());
    if (room >= record.size() + simdjson::SIMDJSON_PADDING)
      return simdjson::padded_string_view(record.data(), record.size(), room);
    copy_.assign(record);
    copy_.resize(record.size() + simdjson::SIMDJSON_PADDING);
    return simdjson::padded_string_view(copy_.data(), record.size(), copy_.size());
  }

  ondemand::parser parser_;
  std::string copy_;  // of a record that lacks padding after it
};

}  // namespace tacit::event
