#include "noise/aes_ctr.h"

#include <openssl/evp.h>

#include <cstring>

#include "base/check.h"
#include "base/cpu.h"
#include "noise/secret_pages.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacit::noise {
namespace {

class OpenSslCtr final : public AesCtr {
 public:
  OpenSslCtr() : context_(EVP_CIPHER_CTX_new()) {
    TACIT_CHECK(context_ != nullptr, "out of memory");
  }

  void Start(const Key& key, const CounterBlock& counter) override {
    TACIT_CHECK(EVP_EncryptInit_ex(context_.get(), EVP_aes_256_ctr(), nullptr, key.data(),
                                   counter.data()) == 1);
  }

  void Fill(std::span<uint8_t> out) override {
    std::memset(out.data(), 0, out.size());
    int length = 0;
    TACIT_CHECK(EVP_EncryptUpdate(context_.get(), out.data(), &length, out.data(),
                                  static_cast<int>(out.size())) == 1 &&
                length == static_cast<int>(out.size()));
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
};

#if defined(__x86_64__)

#define TACIT_AES [[gnu::target("aes,avx512f,avx512bw,avx512dq,avx512vl,vaes")]]

constexpr int kRounds = 14;

struct VaesState {
  __m128i round_key[kRounds + 1];
  uint64_t counter_low, counter_high;  // of the next block
};

// FIPS 197, section 5.2, with eight words of key: the next four words from the eight before. The
// S-box is the processor's; `assist` holds the substituted word, rotated or not, in every lane.
TACIT_AES __m128i NextRoundKey(__m128i eight_before, __m128i assist) {
  __m128i key = eight_before;
  for (int i = 0; i < 3; ++i) {
    eight_before = _mm_slli_si128(eight_before, 4);
    key = _mm_xor_si128(key, eight_before);
  }
  return _mm_xor_si128(key, assist);
}

template <int kRoundConstant>
TACIT_AES void ExpandPair(__m128i* keys) {
  keys[2] = NextRoundKey(
      keys[0], _mm_shuffle_epi32(_mm_aeskeygenassist_si128(keys[1], kRoundConstant), 0xff));
  keys[3] = NextRoundKey(keys[1], _mm_shuffle_epi32(_mm_aeskeygenassist_si128(keys[2], 0), 0xaa));
}

TACIT_AES void ExpandKey(const uint8_t* key, __m128i* keys) {
  keys[0] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key));
  keys[1] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key + 16));
  ExpandPair<0x01>(keys);
  ExpandPair<0x02>(keys + 2);
  ExpandPair<0x04>(keys + 4);
  ExpandPair<0x08>(keys + 6);
  ExpandPair<0x10>(keys + 8);
  ExpandPair<0x20>(keys + 10);
  keys[14] =
      NextRoundKey(keys[12], _mm_shuffle_epi32(_mm_aeskeygenassist_si128(keys[13], 0x40), 0xff));
}

// Adds `by` to the counters of four blocks, whose low halves are in the even places. Counters that
// may pass 2^64 carry into the odd places; carrying always would take too long.
template <bool kCarry>
TACIT_AES [[gnu::always_inline]] inline __m512i Advance(__m512i counters, __m512i by) {
  const __m512i sum = _mm512_add_epi64(counters, by);
  if (!kCarry) return sum;
  const auto carry = static_cast<__mmask8>((_mm512_cmplt_epu64_mask(sum, by) & 0x55) << 1);
  return _mm512_mask_add_epi64(sum, carry, sum, _mm512_set1_epi64(1));
}

// Keeps 256 bytes, sixteen blocks, in flight at once: enough to hide the latency of a round.
template <bool kCarry>
TACIT_AES void FillVaes(VaesState* state, uint8_t* out, size_t bytes) {
  __m512i key[kRounds + 1];
  for (int r = 0; r <= kRounds; ++r) key[r] = _mm512_broadcast_i32x4(state->round_key[r]);
  // A block is a big-endian number of 128 bits.
  const __m512i swap =
      _mm512_broadcast_i32x4(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const __m512i four = _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4);
  const auto low = static_cast<long long>(state->counter_low);
  const auto high = static_cast<long long>(state->counter_high);
  __m512i counters = Advance<kCarry>(_mm512_set_epi64(high, low, high, low, high, low, high, low),
                                     _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
  for (size_t at = 0; at < bytes; at += 256) {
    __m512i x[4];
    for (__m512i& block : x) {
      block = _mm512_xor_si512(_mm512_shuffle_epi8(counters, swap), key[0]);
      counters = Advance<kCarry>(counters, four);
    }
    for (int r = 1; r < kRounds; ++r)
      for (__m512i& block : x) block = _mm512_aesenc_epi128(block, key[r]);
    for (int i = 0; i < 4; ++i)
      _mm512_store_si512(out + at + 64 * i, _mm512_aesenclast_epi128(x[i], key[kRounds]));
  }
  state->counter_low = static_cast<uint64_t>(counters[0]);
  state->counter_high = static_cast<uint64_t>(counters[1]);
}

class VaesCtr final : public AesCtr {
 public:
  VaesCtr() {
    // The flag is not needed: Keystream notices a fork itself and starts the cipher again.
    bool wiped_on_fork = false;
    state_ = MakeSecretPages<VaesState>(&wiped_on_fork);
  }
  void Start(const Key& key, const CounterBlock& counter) override {
    ExpandKey(key.data(), state_->round_key);
    uint64_t high, low;
    std::memcpy(&high, counter.data(), 8);
    std::memcpy(&low, counter.data() + 8, 8);
    state_->counter_high = __builtin_bswap64(high);
    state_->counter_low = __builtin_bswap64(low);
  }
  void Fill(std::span<uint8_t> out) override {
    // The counters of FillVaes run three blocks further than those it uses.
    if (state_->counter_low > ~uint64_t{0} - out.size() / 16 - 3) {
      FillVaes<true>(state_.get(), out.data(), out.size());
    } else {
      FillVaes<false>(state_.get(), out.data(), out.size());
    }
  }

 private:
  SecretPages<VaesState> state_;
};

#endif

}  // namespace

std::unique_ptr<AesCtr> MakeOpenSslCtr() { return std::make_unique<OpenSslCtr>(); }

std::unique_ptr<AesCtr> MakeVaesCtr() {
#if defined(__x86_64__)
  if (ThisCpu().vaes) return std::make_unique<VaesCtr>();
#endif
  return nullptr;
}

std::unique_ptr<AesCtr> MakeAesCtr() {
  if (auto fast = MakeVaesCtr()) return fast;
  return MakeOpenSslCtr();
}

}  // namespace tacit::noise
