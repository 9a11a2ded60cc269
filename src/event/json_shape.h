#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "event/codec.h"
#include "event/record_shape.h"

namespace tacit::event {

// Checks every place against the schema; the error names the part and the place. `key` is that of
// the shape.
Status CheckShape(const JsonShape& shape, const FeatureSchema& schema,
                  std::string_view key = "source.json");

// Makes a codec for JSON objects of this shape. A number may be in quotes; a category may be a
// text, a number as it is written, or true or false; a set is a list of such values or one of them.
// The other rules are those of MakeJsonCodec. REQUIRES CheckShape. `transform` must outlive it.
std::unique_ptr<Codec> MakeShapedJsonCodec(const FeatureTransform& transform, JsonShape shape,
                                           const InteractionOptions& options);

}  // namespace tacit::event
