// The notation is base/bytes.h's, except for numbers in keys, which are big-endian, as in the
// store's.
//
//     key     := row | block | dense | state | entry | end
//     row     := 'r' learner:u16 table:u16 bucket:u64
//     block   := 'b' learner:u16 table:u16 block:u64  of rows (row_blocks.h)
//     dense   := 'd' learner:u16 chunk:u32
//     state   := 's' learner:u16 chunk:u32           released state of a mechanism
//     entry   := 'l' entry:u64                       of the ledger
//     end     := 'm'
//
//     value   := magic:byte*3 format:u8 version:u64 lineage:byte*16 model:u64 payload:string
//                checksum:u32
//     magic   := "TFR"    format := 1, or 2 in a version whose rows tell how they moved
// `checksum` is the CRC-32C of the key and of the value before it. The payloads:
//
//     of a row     f32*dim, the embedding; with a moving average f32*dim, the average, and the step
//                  that it is as of (CountAsFloat), which serving reads it by; in format 2 then
//                  f32*2, a weight's last move and the release that moved it (CountAsFloat)
//     of a block   row_blocks.h, of rows as above
//     of dense     chunks:u32 f32*...    parameters as served, cut into chunks of kPayloadBytesMost
//     of state     chunks:u32 byte*...   cut in the same way
//     of an entry  privacy::LedgerEntry, encoded
//     of an end    version_end.cc
#include "feed/record.h"

#include <fmt/format.h>

#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/first_format.h"
#include "base/text.h"
#include "feed/crc32c.h"

namespace tacit::feed {
namespace {

constexpr std::string_view kMagic = "TFR", kMagicBeforeFirst = "TFD";
constexpr uint8_t kFormat = 1, kFormatWithMoves = 2;
constexpr size_t kHeadBytes = 3 + 1 + 8 + 16 + 8;
constexpr size_t kChecksumBytes = sizeof(uint32_t);
constexpr size_t kAroundPayload = kHeadBytes + sizeof(uint32_t) + kChecksumBytes;

struct KindShape {
  RecordKind kind;
  char letter;
  size_t key_bytes;
};
constexpr std::array<KindShape, 6> kShapes = {{{RecordKind::kRow, 'r', 13},
                                               {RecordKind::kBlock, 'b', 13},
                                               {RecordKind::kDense, 'd', 7},
                                               {RecordKind::kReleased, 's', 7},
                                               {RecordKind::kLedger, 'l', 9},
                                               {RecordKind::kVersionEnd, 'm', 1}}};

template <class T>
void PutBig(T number, std::string* out) {
  for (int shift = 8 * (static_cast<int>(sizeof(T)) - 1); shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(static_cast<uint64_t>(number) >> shift));
}

uint64_t GetBig(std::string_view* key, size_t bytes) {
  uint64_t number = 0;
  for (const char c : key->substr(0, bytes)) number = number << 8 | static_cast<uint8_t>(c);
  key->remove_prefix(bytes);
  return number;
}

tl::unexpected<Error> NoRecord(std::string why) {
  return Fail(ErrorCode::kCorruption, "is no record of a feed: " + std::move(why));
}

Result<RecordPlace> DecodeKey(std::string_view key) {
  const KindShape* shape = nullptr;
  for (const KindShape& one : kShapes)
    if (!key.empty() && key.front() == one.letter) shape = &one;
  if (shape == nullptr || key.size() != shape->key_bytes)
    return NoRecord(fmt::format(
        "its key has {} bytes and begins with {}", key.size(),
        key.empty() ? "none" : fmt::format("0x{:02x}", static_cast<uint8_t>(key.front()))));
  key.remove_prefix(1);
  RecordPlace place{.kind = shape->kind};
  switch (shape->kind) {
    case RecordKind::kRow:
    case RecordKind::kBlock:
      place.learner = static_cast<uint16_t>(GetBig(&key, 2));
      place.table = static_cast<uint16_t>(GetBig(&key, 2));
      place.number = GetBig(&key, 8);
      break;
    case RecordKind::kDense:
    case RecordKind::kReleased:
      place.learner = static_cast<uint16_t>(GetBig(&key, 2));
      place.number = GetBig(&key, 4);
      break;
    case RecordKind::kLedger:
      place.number = GetBig(&key, 8);
      break;
    case RecordKind::kVersionEnd:
      break;
  }
  return place;
}

}  // namespace

uint64_t ModelId(const Digest& fingerprint) {
  uint64_t id = 0;
  std::memcpy(&id, fingerprint.data(), sizeof(id));
  return id;
}

Result<LineageId> LineageIdOf(std::string_view lineage) {
  LineageId id{};
  if (!FromHex(lineage, id))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("lineage '{}': must be 32 hexadecimal digits", lineage));
  return id;
}

std::string EncodeKey(const RecordPlace& place) {
  const KindShape& shape = kShapes[static_cast<size_t>(place.kind)];
  std::string key(1, shape.letter);
  switch (place.kind) {
    case RecordKind::kRow:
    case RecordKind::kBlock:
      PutBig(place.learner, &key);
      PutBig(place.table, &key);
      PutBig(place.number, &key);
      break;
    case RecordKind::kDense:
    case RecordKind::kReleased:
      PutBig(place.learner, &key);
      PutBig(static_cast<uint32_t>(place.number), &key);
      break;
    case RecordKind::kLedger:
      PutBig(place.number, &key);
      break;
    case RecordKind::kVersionEnd:
      break;
  }
  TACIT_CHECK(key.size() == shape.key_bytes);
  return key;
}

uint32_t AppendValue(const RecordPlace& place, const RecordOrigin& origin, std::string_view payload,
                     std::string* out) {
  return AppendValue(EncodeKey(place), origin, payload, out);
}

uint32_t AppendValue(std::string_view key, const RecordOrigin& origin, std::string_view payload,
                     std::string* out) {
  TACIT_CHECK(payload.size() <= kPayloadBytesMost, "a payload is longer than a record may be");
  const size_t begin = out->size();
  out->resize(begin + payload.size() + kAroundPayload);
  char* at = out->data() + begin;
  // One pass without a writer of its own: this is what publishing a row costs.
  const auto put = [&at](const void* bytes, size_t size) {
    std::memcpy(at, bytes, size);
    at += size;
  };
  const auto size = static_cast<uint32_t>(payload.size());
  put(kMagic.data(), kMagic.size());
  put(origin.moves ? &kFormatWithMoves : &kFormat, sizeof(kFormat));
  put(&origin.version.value, sizeof(origin.version.value));
  put(origin.lineage.data(), origin.lineage.size());
  put(&origin.model, sizeof(origin.model));
  put(&size, sizeof(size));
  put(payload.data(), payload.size());
  const std::string_view checked(out->data() + begin,
                                 payload.size() + kAroundPayload - kChecksumBytes);
  const uint32_t checksum = Crc32c(checked, Crc32c(key));
  put(&checksum, sizeof(checksum));
  return checksum;
}

Result<Record> DecodeRecord(std::string_view key, std::string_view value) {
  Record record;
  TACIT_ASSIGN(record.place, DecodeKey(key));
  const bool before_first = value.starts_with(kMagicBeforeFirst);
  if (!value.starts_with(kMagic) && !before_first)
    return NoRecord("its value begins with other bytes");
  if (value.size() < kAroundPayload)
    return NoRecord(fmt::format("its value has {} bytes", value.size()));
  const auto format = static_cast<uint8_t>(value[kMagic.size()]);
  const std::string_view checked = value.substr(0, value.size() - kChecksumBytes);
  std::memcpy(&record.checksum, value.data() + checked.size(), kChecksumBytes);
  const bool intact = Crc32c(checked, Crc32c(key)) == record.checksum;
  if (intact && before_first)
    return WrittenBeforeFirst("this record", "make a new topic for the feed");
  record.origin.moves = format == kFormatWithMoves;
  if (intact && format != kFormat && !record.origin.moves)
    return Fail(ErrorCode::kRefused,
                fmt::format("is a record of format {}, this program reads {} and {}: it needs a "
                            "newer program",
                            format, kFormat, kFormatWithMoves));
  if (!intact) return NoRecord("its checksum is another");
  ByteReader reader(checked.substr(kMagic.size() + 1));
  record.origin.version = CommitSeq(reader.Get<uint64_t>());
  reader.GetArray(std::span<uint8_t>(record.origin.lineage));
  record.origin.model = reader.Get<uint64_t>();
  record.payload = reader.GetString();
  if (!reader.at_end() || record.payload.size() > kPayloadBytesMost)
    return NoRecord("its length is another");
  return record;
}

}  // namespace tacit::feed
