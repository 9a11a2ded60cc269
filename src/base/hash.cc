#include "base/hash.h"

#include <openssl/evp.h>
// Inlines the library's code: most values are shorter than a call takes. clang-tidy would walk into
// it, and takes an empty text's address for one that is read.
#ifndef __clang_analyzer__
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "base/check.h"
#include "base/philox.h"

namespace tacit {

uint64_t HashOfAny(std::string_view value, uint64_t seed) {
  return XXH64(value.data(), value.size(), seed);
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
