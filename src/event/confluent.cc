#include "event/confluent.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tacit::event {
namespace {

constexpr size_t kIdBytes = 4;
using Reason = std::optional<std::string>;

// Takes a zigzag varint off the front; returns nullopt if it ends too early or is too long.
std::optional<int64_t> TakeVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes->size() && i < 5; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    bytes->remove_prefix(i + 1);
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  return std::nullopt;
}

// Takes the message's index in its schema off the front; only the first message is accepted.
Reason TakeFirstMessage(std::string_view* bytes) {
  const auto count = TakeVarint(bytes);
  if (!count || *count < 0) return "schema frame: the message's indexes are damaged";
  if (*count == 0) return std::nullopt;
  const auto index = TakeVarint(bytes);
  if (!index) return "schema frame: the message's indexes are damaged";
  if (*count > 1 || *index != 0)
    return "schema frame: names another message of its schema than the first, which alone is known";
  return std::nullopt;
}

}  // namespace

Reason Unframe(std::string_view value, std::string_view header, PayloadKind kind, Unframed* out) {
  std::string_view frame = header.empty() ? value : header;
  if (frame.empty()) return "schema frame: the value is empty";
  const auto magic = static_cast<uint8_t>(frame[0]);
  frame.remove_prefix(1);
  if (header.empty()) {
    if (magic != 0) return "schema frame: the first byte is not 0x00";
    if (frame.size() < kIdBytes) return "schema frame: it ends within the schema's id";
    uint32_t id = 0;
    for (size_t i = 0; i < kIdBytes; ++i) id = id << 8 | static_cast<uint8_t>(frame[i]);
    out->schema = static_cast<int32_t>(id);
    frame.remove_prefix(kIdBytes);
  } else {
    SchemaGuid guid{};
    if (magic != 1) return fmt::format("header {}: the first byte is not 0x01", kSchemaIdHeader);
    if (frame.size() < guid.size())
      return fmt::format("header {}: it ends within the schema's GUID", kSchemaIdHeader);
    std::copy_n(frame.begin(), guid.size(), guid.begin());
    out->schema = guid;
    frame.remove_prefix(guid.size());
  }
  if (kind == PayloadKind::kProtobuf) {
    if (Reason reason = TakeFirstMessage(&frame)) return reason;
  }
  out->payload = header.empty() ? frame : value;
  return std::nullopt;
}

size_t SchemaKeyHash::operator()(const SchemaKey& key) const {
  if (const int32_t* id = std::get_if<int32_t>(&key)) return std::hash<int32_t>()(*id);
  const SchemaGuid& guid = std::get<SchemaGuid>(key);
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(guid.data()), guid.size()});
}

std::string Text(const SchemaKey& key) {
  if (const int32_t* id = std::get_if<int32_t>(&key)) return fmt::format("id {}", *id);
  std::string text = "guid ";
  const SchemaGuid& guid = std::get<SchemaGuid>(key);
  for (size_t i = 0; i < guid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", guid[i]);
  }
  return text;
}

}  // namespace tacit::event
