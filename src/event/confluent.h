#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

// Confluent's wire format, by which producers with a schema registry name the schema of a value.
// Format 0: the value begins with a zero byte and the schema's id, 4 bytes, the most significant
// first. Format 1: the value is bare, and a header beside it holds a byte of value one and the
// schema's GUID. For Protobuf the index of the message in its schema follows: a count and that many
// indexes, as zigzag varints; a count of 0 stands for the single index 0.
namespace tacit::event {

enum class PayloadKind { kJson, kProtobuf, kAvro };

using SchemaGuid = std::array<uint8_t, 16>;
using SchemaKey = std::variant<int32_t, SchemaGuid>;

// The header that carries format 1.
inline constexpr std::string_view kSchemaIdHeader = "__value_schema_id";

// The length of the header's value, behind which other bytes say nothing.
inline constexpr size_t kGuidFrameBytes = 1 + SchemaGuid().size();

struct Unframed {
  SchemaKey schema;
  std::string_view payload;
};

// Takes the frame off a value; `header` is the value of kSchemaIdHeader, empty if there is none.
// Returns what is wrong with the frame, if anything. Refuses messages other than the first of their
// schema: the frame does not say what they mean.
std::optional<std::string> Unframe(std::string_view value, std::string_view header,
                                   PayloadKind kind, Unframed* out);

struct SchemaKeyHash {
  size_t operator()(const SchemaKey& key) const;
};

// Formats the key for messages: "id 7" or "guid 5f0c...".
std::string Text(const SchemaKey& key);

}  // namespace tacit::event
