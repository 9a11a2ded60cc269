#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tacit::noise {

// The keystream of AES-256-CTR (NIST SP 800-38A) as a source of random words. Made 16 KiB at a
// time, because OpenSSL is four times slower on 1 KiB calls.
//
// Key and unused keystream lie in memory that is locked (as far as the limit allows), kept out of
// core dumps, wiped when done and zeroed by the kernel in a forked child, which is how a child
// knows that it must take a key of its own. OpenSSL's copy of the key schedule is on its own heap;
// it wipes it on release. Not thread-safe.
class Keystream {
 public:
  static constexpr size_t kChunkBytes = 16 << 10;
  using Key = std::array<uint8_t, 32>;
  using CounterBlock = std::array<uint8_t, 16>;

  // A key from getrandom(2).
  Keystream();
  // A known key, for test vectors and tests that plant a weak stream. Never for noise.
  Keystream(const Key& key, const CounterBlock& counter);
  ~Keystream();
  Keystream(const Keystream&) = delete;
  Keystream& operator=(const Keystream&) = delete;

  // The next words of the stream, at least two, at most `words_max` or what is left of the chunk,
  // an even number. Valid until the next call. REQUIRES words_max >= 2.
  std::span<const uint32_t> Take(size_t words_max);
  // The next 64 bits.
  uint64_t Next64();

  // Drops what is left and goes on under a new key from getrandom(2).
  void Rekey();

 private:
  struct Secret;
  struct SecretDeleter {
    void operator()(Secret* secret) const;
  };
  struct CipherDeleter {
    void operator()(void* context) const;
  };

  void SetKey();
  void Refill();
  bool InForkedChild() const;

  std::unique_ptr<Secret, SecretDeleter> secret_;
  std::unique_ptr<void, CipherDeleter> cipher_;  // EVP_CIPHER_CTX
  size_t used_ = kChunkBytes;                    // bytes of the chunk given out
  int owner_pid_ = 0;  // set only where the kernel cannot wipe memory on fork
};

}  // namespace tacit::noise
