// The identity of a topic. The notation is base/bytes.h's.
//     identity := format:u32 topic:string partitions:u32 partition*partitions
//     format   := "KFA1"
//     partition := partition:i32 offset:u64 timestamp_ms:i64 hash:u64    of the last record read
// `hash` is XXH64 of the record's value, with seed 0; of no value with seed 1.
#include "stream/kafka/identity.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/bytes.h"

namespace tacit::stream {
namespace {

constexpr uint32_t kFormat = 0x3141464b;  // "KFA1"

// Takes "NAME:VALUE" and the blank after it off the front.
std::optional<std::string_view> TakeField(std::string_view name, std::string_view* text) {
  if (!text->starts_with(name) || !text->substr(name.size()).starts_with(':')) return std::nullopt;
  text->remove_prefix(name.size() + 1);
  const std::string_view value = text->substr(0, text->find(' '));
  text->remove_prefix(std::min(text->size(), value.size() + 1));
  return value;
}

}  // namespace

std::string KafkaIdentity::Encode() const {
  ByteWriter out;
  out.Put(kFormat).PutString(topic).Put(static_cast<uint32_t>(last.size()));
  for (const auto& [partition, record] : last)
    out.Put(partition).Put(record.offset).Put(record.timestamp_ms).Put(record.hash);
  return std::move(out).Take();
}

Result<KafkaIdentity> KafkaIdentity::Decode(std::string_view bytes) {
  KafkaIdentity identity;
  ByteReader in(bytes);
  if (in.Get<uint32_t>() != kFormat)
    return Fail(ErrorCode::kRefused,
                "the store has read records from another kind of source than Kafka: use that "
                "source, or another store");
  identity.topic = in.GetString();
  const auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto partition = in.Get<int32_t>();
    LastRecord& record = identity.last[partition];
    record.offset = in.Get<uint64_t>();
    record.timestamp_ms = in.Get<int64_t>();
    record.hash = in.Get<uint64_t>();
  }
  if (!in.at_end())
    return Fail(ErrorCode::kCorruption, "the stored identity of the topic cannot be read");
  return identity;
}

std::string Text(const StoreMark& mark) {
  std::string text =
      fmt::format("lineage:{} seq:{} head:{}", mark.lineage, mark.sequence, mark.head);
  if (!mark.term.empty()) text += " term:" + mark.term;
  return text;
}

std::optional<StoreMark> ParseStoreMark(std::string_view metadata) {
  const auto lineage = TakeField("lineage", &metadata);
  if (!lineage || lineage->empty()) return std::nullopt;
  const auto sequence = TakeField("seq", &metadata);
  if (!sequence) return std::nullopt;
  StoreMark mark;
  mark.lineage = *lineage;
  const char* end = sequence->data() + sequence->size();
  const auto [stop, error] = std::from_chars(sequence->data(), end, mark.sequence);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (const auto head = TakeField("head", &metadata)) mark.head = *head;
  if (const auto term = TakeField("term", &metadata)) mark.term = *term;
  return mark;
}

}  // namespace tacit::stream
