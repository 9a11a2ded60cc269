#include "base/hash.h"

#include <openssl/evp.h>
// Inlines the library's code: most values are shorter than a call takes.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/philox.h"

namespace tacit {

namespace {

// XXH64 of 8 bytes, which many logs' values have: its specification without the loops for other
// lengths.
inline uint64_t HashOfEight(const char* bytes, uint64_t seed) {
  constexpr uint64_t kPrime1 = 0x9e3779b185ebca87u, kPrime2 = 0xc2b2ae3d27d4eb4fu,
                     kPrime3 = 0x165667b19e3779f9u, kPrime4 = 0x85ebca77c2b2ae63u,
                     kPrime5 = 0x27d4eb2f165667c5u;
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  word = std::rotl(word * kPrime2, 31) * kPrime1;
  uint64_t hash = std::rotl((seed + kPrime5 + 8) ^ word, 27) * kPrime1 + kPrime4;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

// Made part of both callers: a call takes about as long as a short value.
[[gnu::always_inline]] inline uint64_t Hashed(std::string_view value, uint64_t seed) {
  if (value.size() == 8) return HashOfEight(value.data(), seed);
  return XXH64(value.data(), value.size(), seed);
}

}  // namespace

uint64_t BucketHash(std::string_view value, uint64_t seed) { return Hashed(value, seed); }

uint64_t BucketOf(std::string_view value, uint64_t seed, uint64_t buckets) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{Hashed(value, seed)} * buckets) >> 64);
}

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  uint32_t words[4] = {c[0], c[1], c[2], c[3]};
  PhiloxInPlace(words, k[0], k[1]);
  return {words[0], words[1], words[2], words[3]};
}

void InitialRow(uint64_t seed, uint64_t row, float scale, std::span<float> out) {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (size_t i = 0; i < out.size(); i += 4) {
    const auto words = Philox({static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32),
                               static_cast<uint32_t>(i / 4), 0},
                              key);
    for (size_t j = 0; j < 4 && i + j < out.size(); ++j) {
      // 24 bits: every value is exact in a float.
      const float unit = static_cast<float>(words[j] >> 8) * 0x1p-23f - 1.0f;
      out[i + j] = unit * scale;
    }
  }
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  TACIT_CHECK(context_ != nullptr, "out of memory");
  TACIT_CHECK(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

Sha256& Sha256::Update(std::span<const uint8_t> bytes) {
  TACIT_CHECK(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()) ==
              1);
  return *this;
}

Sha256& Sha256::Update(std::string_view bytes) {
  return Update({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

Digest Sha256::Finish() {
  Digest digest;
  auto* context = static_cast<EVP_MD_CTX*>(context_);
  TACIT_CHECK(EVP_DigestFinal_ex(context, digest.data(), nullptr) == 1);
  TACIT_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  return digest;
}

}  // namespace tacit
