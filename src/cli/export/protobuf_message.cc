#include "cli/export/protobuf_message.h"

namespace tacit::cli {
namespace {

// The wire types: the low three bits of a field's tag.
enum WireType : uint64_t { kVarint = 0, kLengthDelimited = 2 };

uint64_t Tag(uint32_t field, WireType type) { return uint64_t{field} << 3 | type; }

}  // namespace

// Seven bits a byte, the low ones first; the high bit says that more follow.
void ProtobufMessage::Varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}

ProtobufMessage& ProtobufMessage::Integer(uint32_t field, uint64_t value) {
  Varint(Tag(field, kVarint));
  Varint(value);
  return *this;
}

ProtobufMessage& ProtobufMessage::Bytes(uint32_t field, std::string_view value) {
  Varint(Tag(field, kLengthDelimited));
  Varint(value.size());
  bytes_ += value;
  return *this;
}

}  // namespace tacit::cli
