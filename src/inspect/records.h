#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::event {
class AvroSchemas;
}  // namespace tacit::event

namespace tacit::inspect {

struct TopicFound;

// A record as it is looked at. Views are valid during the call that shows it.
struct Record {
  std::string_view text = {};    // without a line's end
  std::string_view fault = {};   // says why it cannot be read; if empty, it can
  bool is_null = false;          // a topic's record without a value: it has nothing of anybody
  std::string_view origin = {};  // the file, or "TOPIC[PARTITION]"
  uint64_t number = 0;           // the line, from 1 on, or the offset
  uint32_t origin_index = 0;     // the origin's, in Records::origins()
  int64_t timestamp_ms = 0;      // the topic's; 0: of a file
  uint32_t key_code = 0;         // of a topic's key, as Column::code has values; 0: there is none
};

// The records that are looked at: lines of files, or a sample of a topic. A walk shows them in the
// order in which they are learnt from, and each walk shows the same. Safe for many readers.
class Records {
 public:
  using Use = std::function<bool(const Record&)>;

  virtual ~Records() = default;

  // The names of files, or of partitions.
  virtual const std::vector<std::string>& origins() const = 0;
  // Parts whose form is told apart, by name: each file is one, and a topic is one.
  virtual const std::vector<std::string>& parts() const = 0;
  // Shows the records of a part until `use` returns false. `share_read`, if given, gets the share
  // of the part that was shown.
  virtual Status ForEach(size_t part, const Use& use, double* share_read = nullptr) const = 0;
  // The first line of a part may name its columns.
  virtual bool may_have_headers() const = 0;
  // They are Avro, and shown as JSON that says the same.
  virtual bool are_avro() const { return false; }
  // Places of records that the topic has besides those that a walk shows. Public.
  virtual uint64_t places_beyond() const { return 0; }
  // The topic's story; if null, they are of files.
  virtual const TopicFound* topic() const { return nullptr; }

  // "2 files", or "topic 'shop'".
  std::string Whence() const;
};

// The lines of log files, plain or packed, in this order; or the records of Avro's container files,
// if the first is one.
std::shared_ptr<const Records> RecordsOfFiles(std::vector<std::string> files);

// Writes a record with the frame of its schema as JSON. Returns why it cannot be read; if empty, it
// can.
std::string AvroToJson(const event::AvroSchemas& schemas, std::string_view framed,
                       std::string* json);

// Bytes of a record, at most: as source.max_record_bytes has it by default.
inline constexpr size_t kRecordBytesMost = 1 << 20;

}  // namespace tacit::inspect
