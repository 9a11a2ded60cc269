#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace tacit {

// A text's 128-bit hash under a secret key.
struct Hash128 {
  uint64_t low = 0, high = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

// SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012), a pseudo-random function of its key.
// Without the key an attacker cannot make two texts collide, and by chance 2^40 texts have a
// collision with probability 2^-49 only. For sets and counts of ids in people's records (users,
// events), which must be exact and must not reveal the ids. A value; thread-safe.
class SipHash {
 public:
  using Key = std::array<uint8_t, 16>;

  explicit SipHash(const Key& key = {}) {
    std::memcpy(&k0_, key.data(), 8);
    std::memcpy(&k1_, key.data() + 8, 8);
  }

  Hash128 operator()(std::string_view text) const;

 private:
  uint64_t k0_ = 0, k1_ = 0;
};

}  // namespace tacit

template <>
struct std::hash<tacit::Hash128> {
  size_t operator()(const tacit::Hash128& hash) const { return hash.low; }
};
