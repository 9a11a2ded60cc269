#include "feed/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace tacit::feed {
namespace {

static_assert(std::endian::native == std::endian::little,
              "words are taken from their first byte on");

using CrcTable = std::array<uint32_t, 256>;

constexpr CrcTable MakeCrcTable() {
  constexpr uint32_t kReflected = 0x82f63b78;
  CrcTable table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? (rest >> 1) ^ kReflected : rest >> 1;
    table[byte] = rest;
  }
  return table;
}

constexpr size_t kAtOnce = 8;

// Table n is for a byte that n bytes follow, so that eight bytes are taken at once.
constexpr std::array<CrcTable, kAtOnce> MakeCrcTables() {
  std::array<CrcTable, kAtOnce> tables{};
  tables[0] = MakeCrcTable();
  for (size_t n = 1; n < kAtOnce; ++n)
    for (size_t byte = 0; byte < tables[n].size(); ++byte) {
      const uint32_t before = tables[n - 1][byte];
      tables[n][byte] = tables[0][before & 0xff] ^ (before >> 8);
    }
  return tables;
}

constexpr std::array<CrcTable, kAtOnce> kCrcTables = MakeCrcTables();

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  for (; bytes.size() >= kAtOnce; bytes.remove_prefix(kAtOnce)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kAtOnce);
    word ^= crc;
    crc = 0;
    for (size_t n = 0; n < kAtOnce; ++n) crc ^= kCrcTables[kAtOnce - 1 - n][word >> (8 * n) & 0xff];
  }
  for (const char c : bytes)
    crc = kCrcTables[0][(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace tacit::feed
