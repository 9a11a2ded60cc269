#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

// How producers that use a schema registry say which schema a value was written by (Confluent's
// wire format). Format 0: the value begins with a zero byte and the schema's id, 4 bytes, the most
// significant first. Format 1: the value is bare, and a header beside it holds a one and the
// schema's GUID. For Protobuf the place of the message in its schema follows: a count and as many
// indexes, as zigzag varints, a count of 0 standing for the one index 0.
namespace tacit::event {

enum class PayloadKind { kJson, kProtobuf };

using SchemaGuid = std::array<uint8_t, 16>;
using SchemaKey = std::variant<int32_t, SchemaGuid>;

// The header that carries format 1.
inline constexpr std::string_view kSchemaIdHeader = "__value_schema_id";

struct Unframed {
  SchemaKey schema;
  std::string_view payload;
};

// Takes the frame off a value; `header` is what kSchemaIdHeader holds, empty where there is none.
// Otherwise says what is wrong with the frame. Messages other than their schema's first are
// refused: what they mean is not told in the frame.
std::optional<std::string> Unframe(std::string_view value, std::string_view header,
                                   PayloadKind kind, Unframed* out);

struct SchemaKeyHash {
  size_t operator()(const SchemaKey& key) const;
};

// "id 7" or "guid 5f0c...": for messages.
std::string Text(const SchemaKey& key);

}  // namespace tacit::event
