#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tacit::noise {

// The keystream of AES-256 in counter mode (NIST SP 800-38A). Constant time: the processor's AES
// instructions, no tables. Not thread-safe.
class AesCtr {
 public:
  using Key = std::array<uint8_t, 32>;
  using CounterBlock = std::array<uint8_t, 16>;

  virtual ~AesCtr() = default;
  virtual void Start(const Key& key, const CounterBlock& counter) = 0;
  // The next bytes of the keystream. REQUIRES a multiple of 256 bytes, 64-byte aligned.
  virtual void Fill(std::span<uint8_t> out) = 0;
};

// Runs everywhere. About 5.5 GB/s a core; its key schedule is on OpenSSL's heap, which wipes it on
// release.
std::unique_ptr<AesCtr> MakeOpenSslCtr();
// Four blocks per instruction (VAES with AVX-512), three times as fast; its key schedule is in
// locked pages. Null where the processor has no such instructions.
std::unique_ptr<AesCtr> MakeVaesCtr();
// Returns the faster of the two; both make the same bytes.
std::unique_ptr<AesCtr> MakeAesCtr();

}  // namespace tacit::noise
