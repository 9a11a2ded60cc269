#pragma once

#include <cstdint>

#include "base/bytes.h"

// Numbers in few bytes where most are small. Notation of the grammars:
//     varint  := seven bits a byte, the least first; all bytes but the last have the highest set
//     zigzag  := varint        2n for a number n from 0 on, -2n - 1 for one below
namespace tacit {

inline void PutVarint(uint64_t value, ByteWriter* writer) {
  for (; value >= 0x80; value >>= 7) writer->Put(static_cast<uint8_t>(value | 0x80));
  writer->Put(static_cast<uint8_t>(value));
}

// Reads only the form that PutVarint writes; false for any other, and where the bytes end.
inline bool GetVarint(ByteReader* reader, uint64_t* value) {
  uint64_t all = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = reader->Get<uint8_t>();
    if (shift == 63 && byte > 1) return false;
    all |= uint64_t{byte & 0x7fu} << shift;
    if (byte >= 0x80) continue;
    *value = all;
    return reader->ok() && (byte != 0 || shift == 0);
  }
  return false;
}

inline uint64_t ToZigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t FromZigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

}  // namespace tacit
