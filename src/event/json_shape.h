#pragma once

#include <cstdint>
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

// The places of an example's parts in JSON objects of somebody else's shape. They are JSON
// pointers (RFC 6901): "/user/id", "/tags/0"; "" means that the records have no such part. A place
// that is not there, or is null, is missing.
struct JsonShape {
  // The label is 0, 1, false or true; or one of `label_values`, each with its label; or a number,
  // which is a label 1 from `label_at_least` on. Where the records have none, it is 1.
  std::string label = "/label";
  std::vector<std::pair<std::string, bool>> label_values = {};
  std::optional<double> label_at_least = {};

  std::string user = "/user", item = "/item", event_id = "/event_id";

  std::string timestamp = "/timestamp_ms";
  TimeUnit timestamp_unit = TimeUnit::kMilliseconds;

  // A number of at least 0 by which a record counts; a record without it has a weight of 1.
  std::string weight = "";

  // Features by name. Those that are not named lie at `features_at`/NAME, but a categorical feature
  // called `user` or `item` takes the value of that part.
  std::vector<std::pair<std::string, std::string>> features = {};
  std::string features_at = "/features";
  Constants constants = {};  // features that are read from no place

  bool operator==(const JsonShape&) const = default;
};

// Checks every place against the schema; the error names the part and the place.
Status CheckShape(const JsonShape& shape, const FeatureSchema& schema);

// Makes a codec for JSON objects of this shape. A number may be in quotes; a category may be a
// text, a number as it is written, or true or false; a set is a list of such values or one of them.
// The other rules are those of MakeJsonCodec. REQUIRES CheckShape. `transform` must outlive it.
std::unique_ptr<Codec> MakeShapedJsonCodec(const FeatureTransform& transform, JsonShape shape,
                                           const InteractionOptions& options);

}  // namespace tacit::event
