#include "base/siphash.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <numeric>
#include <random>
#include <string>

namespace tacit {
namespace {

// By OpenSSL, which shares nothing with ours.
std::string OfOpenSsl(const SipHash::Key& key, const std::string& text) {
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
  EVP_MAC_CTX* context = EVP_MAC_CTX_new(mac);
  size_t size = 16;
  const OSSL_PARAM size_is[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                OSSL_PARAM_construct_end()};
  std::string out(16, '\0');
  EXPECT_EQ(EVP_MAC_CTX_set_params(context, size_is), 1);
  EXPECT_EQ(EVP_MAC_init(context, key.data(), key.size(), nullptr), 1);
  EXPECT_EQ(EVP_MAC_update(context, reinterpret_cast<const uint8_t*>(text.data()), text.size()), 1);
  EXPECT_EQ(EVP_MAC_final(context, reinterpret_cast<uint8_t*>(out.data()), &size, out.size()), 1);
  EVP_MAC_CTX_free(context);
  EVP_MAC_free(mac);
  return out;
}

std::string Ours(const SipHash::Key& key, const std::string& text) {
  const Hash128 hash = SipHash(key)(text);
  std::string out(16, '\0');
  std::memcpy(out.data(), &hash.low, 8);
  std::memcpy(out.data() + 8, &hash.high, 8);
  return out;
}

// The reference implementation's first vectors: key 00..0f, text of 0 and 1 bytes.
TEST(SipHashTest, PublishedVectors) {
  SipHash::Key key;
  std::iota(key.begin(), key.end(), uint8_t{0});
  EXPECT_EQ(Ours(key, ""), "\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93");
  EXPECT_EQ(Ours(key, std::string(1, '\0')),
            "\xda\x87\xc1\xd8\x6b\x99\xaf\x44\x34\x76\x59\x11\x9b\x22\xfc\x45");
}

TEST(SipHashTest, IsThatOfOpenSslForEveryLength) {
  std::mt19937 random(1);
  for (size_t length = 0; length < 80; ++length) {
    SipHash::Key key;
    for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
    std::string text(length, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    EXPECT_EQ(Ours(key, text), OfOpenSsl(key, text)) << length;
  }
}

}  // namespace
}  // namespace tacit
