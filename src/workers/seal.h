#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"

// The sums of a period are raw: a slice may have one record. So they are sealed for the way over
// the brokers, under a key that trainer and workers share.
namespace tacit::workers {

using SharedKey = std::array<uint8_t, 32>;

// A new key as its file holds it: 64 hexadecimal digits and the end of the line.
std::string NewKeyText();
// kInvalidArgument: the text is no key. The message quotes nothing of it.
Result<SharedKey> ParseKey(std::string_view text);

// The key of the topics of this name, out of the key of a file. Other topics may have the same
// file: their records do not pass for records of these.
SharedKey KeyOfTopics(const SharedKey& file, std::string_view name);

// HMAC-SHA256 (RFC 2104).
Digest Hmac(std::string_view key, std::string_view text);
// HKDF-SHA256 (RFC 5869): `bytes` of output, 255 * 32 at most.
std::string Hkdf(std::string_view key, std::string_view salt, std::string_view info, size_t bytes);

using Nonce = std::array<uint8_t, 12>;
inline constexpr size_t kTagBytes = 16;
// AES-256-GCM (NIST SP 800-38D): the ciphertext, and the tag behind it.
std::string SealGcm(std::span<const uint8_t, 32> key, const Nonce& nonce,
                    std::string_view associated, std::string_view plain);
// Returns the plain text; nothing where key, nonce, associated data or a bit is another.
std::optional<std::string> OpenGcm(std::span<const uint8_t, 32> key, const Nonce& nonce,
                                   std::string_view associated, std::string_view sealed);

// The name of a body: equal bodies of a period have equal names, and without the key a name says
// nothing of its body.
using BodyName = std::array<uint8_t, 16>;

// The keys of one period, made of the shared key and the head of the ledger that the period begins
// at. Thread-safe; wiped at the end.
class PeriodSeal {
 public:
  PeriodSeal(const SharedKey& key, const Digest& head);
  ~PeriodSeal();
  PeriodSeal(const PeriodSeal&) = delete;
  PeriodSeal& operator=(const PeriodSeal&) = delete;

  // Seals under a nonce drawn for this call: nonce, ciphertext, tag.
  std::string Seal(std::string_view plain, std::string_view associated) const;
  // kCorruption: it was not sealed with this key, for this period and this associated data, or it
  // was changed.
  Result<std::string> Open(std::string_view sealed, std::string_view associated) const;
  BodyName NameOf(std::string_view body) const;
  // The mark of a plan, by which a worker knows that its trainer wrote it.
  Digest MarkOf(std::string_view plan) const;

 private:
  struct Keys {
    std::array<uint8_t, 32> sums{}, names{}, plans{};
  };
  Keys keys_;
};

// Compares in a time that does not tell where the two differ.
bool SameMark(const Digest& a, const Digest& b);

}  // namespace tacit::workers
