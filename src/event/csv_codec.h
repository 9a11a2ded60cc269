#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "event/codec.h"
#include "event/shape_rules.h"

namespace tacit::event {

// Lines of values with a separator between them (RFC 4180), and the columns that an example's parts
// are in. "" names no column: the records have no such part. An empty value is a missing one.
struct CsvShape {
  std::vector<std::string> columns;  // in the order of the line
  char separator = ',';
  char set_separator = '|';  // between the values of a set
  bool header = true;        // the first line of a file names the columns, and is no record

  std::string label = "label";
  LabelRule label_rule = {};
  std::string user = {}, item = {}, event_id = {}, timestamp = {};
  std::string weight = {};  // as in JsonShape
  TimeUnit timestamp_unit = TimeUnit::kMilliseconds;
  // Columns of features by name. Those that are not named are in the column of their own name.
  std::vector<std::pair<std::string, std::string>> features = {};
  Constants constants = {};  // features that are in no column
};

// Splits a line: a value that begins with a quote ends with the next one, "" in it stands for one
// quote, and a carriage return at the line's end belongs to none. `text` gets the values' bytes,
// and must outlive them. Returns a reason if the line is none.
MaybeBad SplitCsvLine(std::string_view line, char separator, std::string* text,
                      std::vector<std::string_view>* values);

// Checks every column against the schema; the error names the part and the column.
Status CheckCsvShape(const CsvShape& shape, const FeatureSchema& schema);

// Makes a codec for such lines. Values in quotes cannot hold line breaks: a record is one line.
// REQUIRES CheckCsvShape, or no columns: every record is bad then. `transform` must outlive it.
std::unique_ptr<Codec> MakeCsvCodec(const FeatureTransform& transform, CsvShape shape,
                                    const InteractionOptions& options);

}  // namespace tacit::event
