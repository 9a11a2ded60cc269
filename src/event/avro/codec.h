#pragma once

#include <memory>
#include <string>

#include "event/avro/schemas.h"
#include "event/codec.h"
#include "event/record_shape.h"

namespace tacit::event {

// Makes a codec for Avro records of this shape: a JSON pointer names fields of records, keys of
// maps and elements of lists, and a union is its value. The rules of values are those of
// MakeShapedJsonCodec. An integer is a category by its digits, another number by the fewest that
// tell it from others; a decimal is the number it stands for; an enum is its symbol. A time that
// says its unit by a logical type is read by that, and else by the shape's.
//
// `framed`: each record has Confluent's frame, with the key of a schema in `schemas`, or of one
// that is read by the reader's own. Else all are of the reader's own. `transform` must outlive it.
// REQUIRES CheckShape, and `schemas` with the places of `shape` (AvroPlacesOf); or none: every
// record is bad then.
std::unique_ptr<Codec> MakeAvroCodec(const FeatureTransform& transform, JsonShape shape,
                                     std::shared_ptr<const AvroSchemas> schemas, bool framed,
                                     const InteractionOptions& options);

// The places that the codec wants values of. REQUIRES CheckShape.
AvroPlaces AvroPlacesOf(const JsonShape& shape, const FeatureSchema& schema);

// Writes a record as a line of JSON that says the same to MakeShapedJsonCodec. Returns a reason if
// the bytes are no such record. REQUIRES a program of all places.
MaybeBad WriteAsJson(const AvroProgram& program, std::string_view record, std::string* json);

}  // namespace tacit::event
