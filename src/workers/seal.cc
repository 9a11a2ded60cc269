#include "workers/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/text.h"

namespace tacit::workers {
namespace {

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}
uint8_t* Bytes(std::string* text) { return reinterpret_cast<uint8_t*>(text->data()); }
int Size(std::string_view text) { return static_cast<int>(text.size()); }

template <class Array>
std::string_view Text(const Array& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Array>
void Draw(Array* bytes) {
  TACIT_CHECK(RAND_bytes(bytes->data(), static_cast<int>(bytes->size())) == 1,
              "the system has no randomness");
}

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

// The cipher as far as key, nonce and associated data lead; `encrypt` is EVP_CipherInit_ex's.
Context BeginGcm(int encrypt, std::span<const uint8_t, 32> key, const Nonce& nonce,
                 std::string_view associated) {
  Context context(EVP_CIPHER_CTX_new());
  int size = 0;
  TACIT_CHECK(context != nullptr, "out of memory");
  TACIT_CHECK(
      EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce.data(),
                        encrypt) == 1 &&
          EVP_CipherUpdate(context.get(), nullptr, &size, Bytes(associated), Size(associated)) == 1,
      "OpenSSL has no AES-256-GCM");
  return context;
}

}  // namespace

std::string NewKeyText() {
  SharedKey key;
  Draw(&key);
  std::string text = ToHex(key) + "\n";
  OPENSSL_cleanse(key.data(), key.size());
  return text;
}

Result<SharedKey> ParseKey(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  SharedKey key{};
  if (!FromHex(text, key))
    return Fail(ErrorCode::kInvalidArgument,
                "is no key of workers, which has 64 hexadecimal digits: `tacit workers key` makes "
                "one");
  return key;
}

SharedKey KeyOfTopics(const SharedKey& file, std::string_view name) {
  SharedKey key;
  std::string made = Hkdf(Text(file), name, "tacit.workers.topics.v1", key.size());
  std::copy_n(made.begin(), key.size(), key.begin());
  OPENSSL_cleanse(made.data(), made.size());
  return key;
}

Digest Hmac(std::string_view key, std::string_view text) {
  Digest mac{};
  TACIT_CHECK(HMAC(EVP_sha256(), key.data(), Size(key), Bytes(text), text.size(), mac.data(),
                   nullptr) != nullptr,
              "OpenSSL has no HMAC");
  return mac;
}

std::string Hkdf(std::string_view key, std::string_view salt, std::string_view info, size_t bytes) {
  // 2.2: a salt that is not given is a block of zeros, which HMAC takes an empty key for.
  Digest extracted = Hmac(salt, key);
  std::string out, block;
  for (uint8_t counter = 1; out.size() < bytes; ++counter) {
    block.append(info).push_back(static_cast<char>(counter));
    block = Text(Hmac(Text(extracted), block));
    out += block;
  }
  OPENSSL_cleanse(extracted.data(), extracted.size());
  OPENSSL_cleanse(block.data(), block.size());
  out.resize(bytes);
  return out;
}

std::string SealGcm(std::span<const uint8_t, 32> key, const Nonce& nonce,
                    std::string_view associated, std::string_view plain) {
  const Context context = BeginGcm(1, key, nonce, associated);
  std::string out(plain.size() + kTagBytes, '\0');
  int size = 0, rest = 0;
  TACIT_CHECK(EVP_CipherUpdate(context.get(), Bytes(&out), &size, Bytes(plain), Size(plain)) == 1 &&
                  EVP_CipherFinal_ex(context.get(), Bytes(&out) + size, &rest) == 1 &&
                  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                                      Bytes(&out) + plain.size()) == 1,
              "OpenSSL seals any bytes");
  return out;
}

std::optional<std::string> OpenGcm(std::span<const uint8_t, 32> key, const Nonce& nonce,
                                   std::string_view associated, std::string_view sealed) {
  if (sealed.size() < kTagBytes) return std::nullopt;
  const Context context = BeginGcm(0, key, nonce, associated);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  sealed.remove_suffix(kTagBytes);
  std::string plain(sealed.size(), '\0');
  int size = 0, rest = 0;
  const bool good =
      EVP_CipherUpdate(context.get(), Bytes(&plain), &size, Bytes(sealed), Size(sealed)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
      EVP_CipherFinal_ex(context.get(), Bytes(&plain) + size, &rest) == 1;
  if (!good) return std::nullopt;
  return plain;
}

PeriodSeal::PeriodSeal(const SharedKey& key, const Digest& head) {
  std::string made = Hkdf(Text(key), Text(head), "tacit.workers.period.v1", sizeof(keys_));
  uint8_t* from = Bytes(&made);
  for (auto* to : {&keys_.sums, &keys_.names, &keys_.plans}) {
    std::copy_n(from, to->size(), to->begin());
    from += to->size();
  }
  OPENSSL_cleanse(made.data(), made.size());
}

PeriodSeal::~PeriodSeal() { OPENSSL_cleanse(&keys_, sizeof(keys_)); }

std::string PeriodSeal::Seal(std::string_view plain, std::string_view associated) const {
  Nonce nonce;
  Draw(&nonce);
  return std::string(Text(nonce)) + SealGcm(keys_.sums, nonce, associated, plain);
}

Result<std::string> PeriodSeal::Open(std::string_view sealed, std::string_view associated) const {
  Nonce nonce{};
  std::optional<std::string> plain;
  if (sealed.size() >= nonce.size()) {
    std::copy_n(sealed.begin(), nonce.size(), nonce.begin());
    plain = OpenGcm(keys_.sums, nonce, associated, sealed.substr(nonce.size()));
  }
  if (!plain)
    return Fail(
        ErrorCode::kCorruption,
        "does not open: it was sealed with another workers.key_file, or changed on its way");
  return *std::move(plain);
}

BodyName PeriodSeal::NameOf(std::string_view body) const {
  const Digest mac = Hmac(Text(keys_.names), body);
  BodyName name;
  std::copy_n(mac.begin(), name.size(), name.begin());
  return name;
}

Digest PeriodSeal::MarkOf(std::string_view plan) const { return Hmac(Text(keys_.plans), plan); }

bool SameMark(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tacit::workers
