#include "http/token.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"

namespace tacit::http {
namespace {

constexpr std::string_view kTokenPrefix = "tacit_";
constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// RFC 4648, 5, without padding.
std::string Base64Url(std::span<const uint8_t> bytes) {
  std::string text;
  uint32_t bits = 0;
  int held = 0;
  for (const uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    for (held += 8; held >= 6; held -= 6) text += kBase64Url[bits >> (held - 6) & 63];
  }
  if (held > 0) text += kBase64Url[bits << (6 - held) & 63];
  return text;
}

constexpr bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// RFC 7235, 2.1: the letters of a token68, before the equals signs at its end.
// A table: every request has a token.
constexpr std::array<bool, 256> kTokenLetters = [] {
  std::array<bool, 256> letters{};
  for (int c = 0; c < 256; ++c)
    letters[static_cast<size_t>(c)] =
        IsAlphanumeric(static_cast<char>(c)) ||
        std::string_view("-._~+/").find(static_cast<char>(c)) != std::string_view::npos;
  return letters;
}();

bool IsTokenLetter(char c) { return kTokenLetters[static_cast<uint8_t>(c)]; }

bool IsBearer(std::string_view scheme) {
  constexpr std::string_view kBearer = "bearer";
  return std::ranges::equal(scheme, kBearer, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

}  // namespace

std::string NewToken() {
  std::array<uint8_t, 32> bytes{};
  TACIT_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "the system has no randomness");
  return std::string(kTokenPrefix) + Base64Url(bytes);
}

Digest DigestOfToken(std::string_view token) { return Sha256().Update(token).Finish(); }

std::string CallerLine(std::string_view role, std::string_view name, const Digest& digest,
                       std::string_view user) {
  std::string line = fmt::format("{} {} sha256:{}", role, name, ToHex(digest));
  if (user.empty()) return line;
  line += " user=";
  for (const char c : user)
    line += IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'
                ? std::string(1, c)
                : fmt::format("%{:02x}", static_cast<uint8_t>(c));
  return line;
}

std::string_view BearerToken(std::string_view field) {
  const size_t scheme_end = field.find(' ');
  if (scheme_end == field.npos || !IsBearer(field.substr(0, scheme_end))) return {};
  const size_t begin = field.find_first_not_of(' ', scheme_end);
  if (begin == field.npos) return {};
  const std::string_view token = field.substr(begin);
  std::string_view letters = token;
  while (letters.ends_with('=')) letters.remove_suffix(1);
  return !letters.empty() && std::ranges::all_of(letters, IsTokenLetter) ? token
                                                                         : std::string_view();
}

}  // namespace tacit::http
