#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Shapes of records that their producers chose, as a configuration writes them. Plain values.
namespace tacit::event {

enum class TimeUnit {
  kMilliseconds,
  kSeconds,
  kMicroseconds,
  kNanoseconds,
  kRfc3339,
  kDatetime,  // a text without a zone
};

// The label is 0, 1, false or true; or one of `values`, each with its label; or a number, which is
// a label of 1 from `at_least` on.
struct LabelRule {
  std::vector<std::pair<std::string, bool>> values = {};
  std::optional<double> at_least = {};

  bool operator==(const LabelRule&) const = default;
};

// Features that have the same value in every record, by name.
using Constants = std::vector<std::pair<std::string, std::string>>;

// The places of an example's parts: JSON pointers (RFC 6901), "/user/id", or names of columns.
// "": the records have no such part. A place that is not there, or is null or empty, is missing.
struct RecordShape {
  std::string label = {};  // without a place, the label is 1
  LabelRule label_rule = {};
  std::string user = {}, item = {}, event_id = {}, timestamp = {};
  TimeUnit timestamp_unit = TimeUnit::kMilliseconds;
  int32_t timestamp_zone_minutes = 0;  // kDatetime: the clock of times is so much ahead of UTC
  // A number of at least 0 by which a record counts; a record without it has a weight of 1.
  std::string weight = {};
  double weight_most = 1;                                          // larger ones count as this one
  std::vector<std::pair<std::string, std::string>> features = {};  // by name, where named
  Constants constants = {};                                        // read from no place
  // Texts that stand for no value, "guest" say, but not in numbers, times and weights.
  std::vector<std::string> missing = {};

  bool operator==(const RecordShape&) const = default;
};

// JSON objects. Features that are not named lie at `features_at`/NAME, but a categorical feature
// called `user` or `item` takes the value of that part. The defaults are
// schemas/interaction.schema.json.
struct JsonShape : RecordShape {
  JsonShape()
      : RecordShape{.label = "/label",
                    .user = "/user",
                    .item = "/item",
                    .event_id = "/event_id",
                    .timestamp = "/timestamp_ms"} {}

  std::string features_at = "/features";

  bool operator==(const JsonShape&) const = default;
  bool is_own() const { return *this != JsonShape(); }
};

// Avro records. Places are as in JSON: a key is a field's name, or a map's key.
struct AvroShape : JsonShape {
  std::string schema_file = {};  // the schema that records are read by; "": their own

  bool operator==(const AvroShape&) const = default;
};

// Lines of values with a separator between them (RFC 4180). Features that are not named are in the
// column of their own name.
struct CsvShape : RecordShape {
  CsvShape() : RecordShape{.label = "label"} {}

  std::vector<std::string> columns;  // in the order of the line
  char separator = ',';
  char set_separator = '|';  // between the values of a set
  bool header = true;        // the first line of a file names the columns, and is no record
};

}  // namespace tacit::event
