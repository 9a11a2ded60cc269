#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace tacit {

// Hashes that are part of the store's format: changing one orphans every trained row. Their golden
// vectors (tests/golden) come from the publications of the algorithms.

// XXH64 of the value's bytes under the feature's seed, mapped to [0, buckets) by multiplication
// (Lemire): bucket = (hash * buckets) >> 64.
uint64_t BucketHash(std::string_view value, uint64_t seed);
uint64_t BucketOf(std::string_view value, uint64_t seed, uint64_t buckets);

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
