#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tacit::event {

// The part of a record that keeps it from being learnt from. Dead letters are counted by it.
enum class BadPart : uint8_t {
  kValue,   // there is none, or the source could not deliver it
  kSchema,  // its frame, its headers or the schema they name
  kSyntax,  // it is no valid JSON, no valid Protobuf or no line of the schema's columns
  kLabel,   // missing, or neither 0 nor 1
  kField,   // a feature, an item or an id
  kUser,    // missing where the user is the unit
  kTime,    // its own timestamp
};
inline constexpr size_t kBadParts = static_cast<size_t>(BadPart::kTime) + 1;

// The names of the parts in metrics and in the log.
inline constexpr std::array<std::string_view, kBadParts> kBadPartNames = {
    "value", "schema", "syntax", "label", "field", "user", "time"};
constexpr std::string_view NameOf(BadPart part) { return kBadPartNames[static_cast<size_t>(part)]; }

// The reason why a record cannot be learnt from. A bare text is about a field.
struct BadRecord {
  BadRecord(std::string why, BadPart of = BadPart::kField) : reason(std::move(why)), part(of) {}

  std::string reason;  // names the column or field and what is wrong, never what stands there
  BadPart part;
};
using MaybeBad = std::optional<BadRecord>;

}  // namespace tacit::event
