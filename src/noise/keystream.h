#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "noise/aes_ctr.h"
#include "noise/secret_pages.h"

namespace tacit::noise {

// The keystream of AES-256-CTR (NIST SP 800-38A) as a source of random words. It is made 16 KiB at
// a time, because OpenSSL is four times slower on 1 KiB calls.
//
// Key schedule and unused keystream lie in memory that is locked (as far as the limit allows), kept
// out of core dumps, wiped when done and zeroed by the kernel in a forked child, which is how a
// child knows that it must take a key of its own. If OpenSSL makes the stream, its copy of the key
// schedule is on its own heap; it wipes the copy on release. Not thread-safe.
class Keystream {
 public:
  static constexpr size_t kChunkBytes = 16 << 10;
  using Key = AesCtr::Key;
  using CounterBlock = AesCtr::CounterBlock;

  // A key from getrandom(2).
  Keystream();
  // A known key, for test vectors and tests that plant a weak stream. Never for noise.
  Keystream(const Key& key, const CounterBlock& counter,
            std::unique_ptr<AesCtr> cipher = MakeAesCtr());
  ~Keystream();
  Keystream(const Keystream&) = delete;
  Keystream& operator=(const Keystream&) = delete;

  // Returns the next words of the stream, in whole granules: at least one granule, at most as many
  // as fit into `words_max` and into the rest of the chunk. A rest that is no whole granule is
  // dropped. Valid until the next call. REQUIRES an even granule of at most kChunkBytes, and
  // words_max >= granule.
  std::span<const uint32_t> Take(size_t words_max, size_t granule = 2);
  // The next 64 bits.
  uint64_t Next64();

  // Drops unused keystream and continues under a new key from getrandom(2).
  void Rekey();

 private:
  // Whole pages of their own. All zero in a forked child.
  struct Secret {
    uint64_t alive;
    Key key;
    CounterBlock counter;
    alignas(64) std::array<uint8_t, kChunkBytes> chunk;
  };

  void SetKey();
  void Refill();
  bool InForkedChild() const;

  SecretPages<Secret> secret_;
  std::unique_ptr<AesCtr> cipher_;
  size_t used_ = kChunkBytes;  // bytes of the chunk given out
  int owner_pid_ = 0;          // set only where the kernel cannot wipe memory on fork
};

}  // namespace tacit::noise
