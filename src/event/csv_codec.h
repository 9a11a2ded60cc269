#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/codec.h"
#include "event/record_shape.h"

namespace tacit::event {

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
