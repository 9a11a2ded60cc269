#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tacit {

// Hashes that are part of the store's format: changing one orphans every trained row. Their golden
// vectors (tests/golden) come from the publications of the algorithms.

inline constexpr uint64_t kXxPrime1 = 0x9e3779b185ebca87u, kXxPrime2 = 0xc2b2ae3d27d4eb4fu,
                          kXxPrime3 = 0x165667b19e3779f9u, kXxPrime4 = 0x85ebca77c2b2ae63u,
                          kXxPrime5 = 0x27d4eb2f165667c5u;

// XXH64 of the value's bytes under the feature's seed. A call would take longer than the hash of a
// short value, and the values of many logs have 8 bytes.
uint64_t HashOfAny(std::string_view value, uint64_t seed);
inline uint64_t BucketHash(std::string_view value, uint64_t seed) {
  if (value.size() != 8) return HashOfAny(value, seed);
  uint64_t word = 0;
  std::memcpy(&word, value.data(), sizeof word);
  word = std::rotl(word * kXxPrime2, 31) * kXxPrime1;
  uint64_t hash = std::rotl((seed + kXxPrime5 + 8) ^ word, 27) * kXxPrime1 + kXxPrime4;
  hash = (hash ^ (hash >> 33)) * kXxPrime2;
  hash = (hash ^ (hash >> 29)) * kXxPrime3;
  return hash ^ (hash >> 32);
}

// The hash mapped to [0, buckets) by multiplication (Lemire): (hash * buckets) >> 64.
inline uint64_t BucketOf(std::string_view value, uint64_t seed, uint64_t buckets) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{BucketHash(value, seed)} * buckets) >> 64);
}

// Philox4x32-10 (Salmon et al., SC'11), a counter-based pseudo-random function. Used only for
// public values (initial rows, generated logs), never for noise.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The initial value of a row: uniform in [-scale, scale), a function of (seed, row) alone. `out`
// is the whole row.
void InitialRow(uint64_t seed, uint64_t row, float scale, std::span<float> out);

using Digest = std::array<uint8_t, 32>;

// SHA-256 (FIPS 180-4), fed in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& Update(std::span<const uint8_t> bytes);
  Sha256& Update(std::string_view bytes);
  // Ends the message and resets the object for the next one.
  Digest Finish();

 private:
  void* context_;  // EVP_MD_CTX
};

}  // namespace tacit
