#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/example_builder.h"
#include "event/record_shape.h"

// Rules for the parts of records of a producer's own shape, in any format.
namespace tacit::event {

// Reads a time as RFC 3339 has it, "2026-11-25T03:22:06.5+01:00", in milliseconds since 1970;
// finer parts are dropped. nullopt if it is none.
std::optional<int64_t> ReadRfc3339(std::string_view text);
// Reads a time without a zone by ISO 8601, "2019-11-01 17:59:13.5", "2019-11-01T17:59" or a date
// alone, which is its midnight; 24:00 is the midnight after. Its clock is `zone_minutes` ahead of
// UTC. nullopt if it is none.
std::optional<int64_t> ReadDatetime(std::string_view text, int32_t zone_minutes);
// Reads a time in the shape's unit, in milliseconds since 1970. nullopt if it is none.
std::optional<int64_t> ReadTime(std::string_view text, const RecordShape& shape);
// Ends a message about a text that is no time of the shape: it names a unit that would read it.
std::string_view WhyNoTime(std::string_view text);

// A part of the example that is read from a place.
enum class PartKind : uint8_t { kLabel, kUser, kItem, kEventId, kTime, kWeight, kFeature };
struct ShapePart {
  PartKind kind = PartKind::kLabel;
  FeatureNames::Place place = {};
  std::string name = {};   // for messages: "label", "feature 'price'"
  std::string where = {};  // a JSON pointer, or a column
};
// Lists the parts that have a place. `place_of` has the place of a feature that the shape does not
// name.
std::vector<ShapePart> PartsOf(
    const RecordShape& shape, const FeatureNames& names,
    const std::function<std::string(const std::string& name, FeatureNames::Place place)>& place_of);

// Checks what goes for every format: names of features, the label's rule, and the constants, each
// in the schema once, a number where it stands for one. `key` is that of the shape, for the
// message.
Status CheckShapeRules(std::string_view key, const RecordShape& shape, const FeatureSchema& schema);

// True if the text stands for no value (RecordShape::missing) in this part.
bool IsMissing(const RecordShape& shape, const ShapePart& part, std::string_view text);

// Reads a whole text as a finite number.
std::optional<double> ReadNumber(std::string_view text);

// The label of records that have none: each says that a user has met an item.
constexpr float kMetLabel = 1;
// `number`: what the text is as a number, if it is one. nullopt if it is no label.
std::optional<float> LabelOf(const LabelRule& rule, std::string_view text,
                             std::optional<double> number);
// Reads a weight: a number of at least 0. nullopt if it is none.
std::optional<double> WeightOf(std::optional<double> number);

// Sets the constants in an example that has just been started. REQUIRES CheckShapeRules.
void SetConstants(const Constants& constants, ExampleBuilder* example);

// Ends a message about a text that is no label: "is neither 0 nor 1".
std::string_view WhyNoLabel(const LabelRule& rule);

}  // namespace tacit::event
