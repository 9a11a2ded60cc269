#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "event/example_builder.h"

// Rules for the parts of records of a producer's own shape, whatever their format.
namespace tacit::event {

enum class TimeUnit { kMilliseconds, kSeconds, kMicroseconds, kNanoseconds, kRfc3339 };

// Reads a time as RFC 3339 has it, "2026-11-25T03:22:06.5+01:00", in milliseconds since 1970;
// finer parts are dropped. nullopt if it is none.
std::optional<int64_t> ReadRfc3339(std::string_view text);
// Reads a time in this unit, in milliseconds since 1970. nullopt if it is none.
std::optional<int64_t> ReadTime(std::string_view text, TimeUnit unit);

// A part of the example that is read from a place.
enum class PartKind : uint8_t { kLabel, kUser, kItem, kEventId, kTime, kWeight, kFeature };
struct ShapePart {
  PartKind kind = PartKind::kLabel;
  FeatureNames::Place place = {};
  std::string name = {};   // for messages: "label", "feature 'price'"
  std::string where = {};  // a JSON pointer, or a column
};
// The places of the parts that are no features; "": records have no such part.
struct OwnPlaces {
  const std::string &label, &user, &item, &event_id, &timestamp, &weight;
};
// Lists the parts that have a place.
std::vector<ShapePart> OwnParts(const OwnPlaces& places);

// Reads a whole text as a finite number.
std::optional<double> ReadNumber(std::string_view text);

// The label is 0 or 1; or one of `values`, each with its label; or a number, which is a label of 1
// from `at_least` on.
struct LabelRule {
  std::vector<std::pair<std::string, bool>> values;
  std::optional<double> at_least;
};
// The label of records that have none: each says that a user has met an item.
constexpr float kMetLabel = 1;
// `number`: what the text is as a number, if it is one. nullopt if it is no label.
std::optional<float> LabelOf(const LabelRule& rule, std::string_view text,
                             std::optional<double> number);
// Reads a weight: a number of at least 0. nullopt if it is none.
std::optional<double> WeightOf(std::optional<double> number);

// Features that have the same value in every record, by name.
using Constants = std::vector<std::pair<std::string, std::string>>;
// Checks that the schema has each, once, and that values of numbers are numbers. `key` is that of
// the shape, for the message.
Status CheckConstants(std::string_view key, const Constants& constants,
                      const FeatureSchema& schema);
// Sets them in an example that has just been started. REQUIRES CheckConstants.
void SetConstants(const Constants& constants, ExampleBuilder* example);

// Ends a message about a text that is no label: "is neither 0 nor 1".
std::string_view WhyNoLabel(const LabelRule& rule);

}  // namespace tacit::event
