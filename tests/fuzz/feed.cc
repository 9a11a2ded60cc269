// Fuzzes what a feed's topic holds. A record's checksum is set right, so that what lies behind it
// is reached: a writer of the topic can do that too.
#include <cstring>

#include "feed/crc32c.h"
#include "feed/record.h"
#include "feed/version_end.h"
#include "fuzz.h"

namespace tacit {
namespace {

void ReadRecord(std::string_view bytes) {
  const size_t key_bytes = std::min<size_t>(fuzz::TakeChoice(&bytes), bytes.size());
  const std::string key(bytes.substr(0, key_bytes));
  std::string value(bytes.substr(key_bytes));
  fuzz::DemandGoodError(feed::DecodeRecord(key, value));
  const uint32_t checksum = feed::Crc32c(value, feed::Crc32c(key));
  value.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  const auto record = feed::DecodeRecord(key, value);
  fuzz::DemandGoodError(record);
  if (!record) return;
  fuzz::Demand(feed::EncodeKey(record->place) == key, "a key has one form");
  std::string again;
  feed::AppendValue(record->place, record->origin, record->payload, &again);
  fuzz::Demand(again == value, "a value has one form");
}

void ReadVersionEnd(std::string_view bytes) {
  const auto end = feed::DecodeVersionEnd(bytes);
  fuzz::DemandGoodError(end);
  if (end) fuzz::Demand(feed::EncodeVersionEnd(*end) == bytes, "a version end has one form");
}

}  // namespace
}  // namespace tacit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  if (tacit::fuzz::TakeChoice(&bytes) % 2 == 0)
    tacit::ReadRecord(bytes);
  else
    tacit::ReadVersionEnd(bytes);
  return 0;
}
