#include "base/siphash.h"

#include <bit>

namespace tacit {
namespace {

struct State {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
  uint64_t Finish() {
    for (int i = 0; i < 4; ++i) Round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

Hash128 SipHash::operator()(std::string_view text) const {
  State state{k0_ ^ 0x736f6d6570736575, k1_ ^ 0x646f72616e646f6d ^ 0xee, k0_ ^ 0x6c7967656e657261,
              k1_ ^ 0x7465646279746573};
  const char* at = text.data();
  for (size_t words = text.size() / 8; words > 0; --words, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state.Absorb(word);
  }
  uint64_t last = uint64_t{text.size()} << 56;
  for (size_t i = 0; i < text.size() % 8; ++i)
    last |= uint64_t{static_cast<uint8_t>(at[i])} << (8 * i);
  state.Absorb(last);
  state.v2 ^= 0xee;
  Hash128 hash;
  hash.low = state.Finish();
  state.v1 ^= 0xdd;
  hash.high = state.Finish();
  return hash;
}

}  // namespace tacit
