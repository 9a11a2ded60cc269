// Compiled for AVX-512 (see CMakeLists.txt): called only where the processor has it.
#include "event/wide_fields.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#include <cstring>

#include "base/hash.h"

namespace tacit::event {
namespace {

__m512i InEachByte(char byte) { return _mm512_set1_epi8(byte); }
__m512i InEachWord(uint64_t word) { return _mm512_set1_epi64(static_cast<int64_t>(word)); }

// Some fields of a record: lane i is field i.
struct Lanes {
  __mmask8 lanes;
  __m512i length, begin_words;  // the first 8 bytes of each

  Lanes(const char* text, const uint32_t* ends, size_t count)
      : lanes(static_cast<__mmask8>((1u << count) - 1)) {
    const __m256i begin =
        _mm256_add_epi32(_mm256_maskz_loadu_epi32(lanes, ends), _mm256_set1_epi32(1));
    const __m256i end = _mm256_maskz_loadu_epi32(lanes, ends + 1);
    length = _mm512_cvtepu32_epi64(_mm256_sub_epi32(end, begin));
    alignas(32) uint32_t places[kFieldsAtOnce];
    _mm256_store_si256(reinterpret_cast<__m256i*>(places), begin);
    const auto word = [&](size_t i) {  // of a lane without a field: the text's own second byte
      int64_t bytes = 0;
      std::memcpy(&bytes, text + places[i], sizeof bytes);
      return bytes;
    };
    // Eight loads: a gather is slow on many processors.
    begin_words =
        _mm512_set_epi64(word(7), word(6), word(5), word(4), word(3), word(2), word(1), word(0));
  }
};

}  // namespace

size_t FindTabsWide(std::string_view record, std::span<uint32_t> out) {
  const __m512i first_places =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  uint32_t* const to = out.data();
  const size_t size = record.size(), room = out.size();
  size_t found = 0;
  for (size_t i = 0; i < size; i += 16) {
    const size_t left = size - i < 16 ? size - i : 16;
    const __m128i bytes =
        _mm_maskz_loadu_epi8(static_cast<__mmask16>(0xffffu >> (16 - left)), record.data() + i);
    const __mmask16 hits = _mm_cmpeq_epi8_mask(bytes, _mm_set1_epi8('\t'));
    const __m512i places = _mm512_add_epi32(first_places, _mm512_set1_epi32(static_cast<int>(i)));
    const __m512i found_here = _mm512_maskz_compress_epi32(hits, places);
    // No branch on their number: the next places overwrite those behind the last tab.
    const size_t kept = found >= room ? 0 : room - found < 16 ? room - found : 16;
    _mm512_mask_storeu_epi32(to + found, static_cast<__mmask16>((1u << kept) - 1), found_here);
    found += static_cast<size_t>(__builtin_popcount(hits));
  }
  return found;
}

uint32_t ReadIntegersWide(const char* text, const uint32_t* ends, size_t count, int64_t* values) {
  const Lanes fields(text, ends, count);
  const __m512i minus = InEachWord('-'), one = InEachWord(1), zero = _mm512_setzero_si512();
  const __mmask8 negative =
      _mm512_mask_cmpeq_epi64_mask(_mm512_test_epi64_mask(fields.length, fields.length),
                                   _mm512_and_si512(fields.begin_words, InEachWord(0xff)), minus);
  const __m512i words = _mm512_mask_srli_epi64(fields.begin_words, negative, fields.begin_words, 8);
  const __m512i digits = _mm512_mask_sub_epi64(fields.length, negative, fields.length, one);
  // Digits move to the end of their lane, and zeros lead: a shift by 64 or more leaves none.
  __m512i number =
      _mm512_sllv_epi64(_mm512_xor_si512(words, InEachByte('0')),
                        _mm512_sub_epi64(InEachWord(64), _mm512_slli_epi64(digits, 3)));
  const __m512i other = _mm512_or_si512(number, _mm512_add_epi64(number, InEachByte(0x76)));
  __mmask8 bad = _mm512_test_epi64_mask(other, InEachByte(static_cast<char>(0x80)));
  bad |= _mm512_cmpgt_epi64_mask(fields.length, InEachWord(8));
  bad |= _mm512_mask_cmpeq_epi64_mask(negative, digits, zero);
  // The sum of each two neighbours, the first of them times 10, 100 and 10,000.
  number = _mm512_maddubs_epi16(number, _mm512_set1_epi16(0x010a));
  number = _mm512_madd_epi16(number, _mm512_set1_epi32(0x00010064));
  number =
      _mm512_add_epi64(_mm512_mul_epu32(number, InEachWord(10'000)), _mm512_srli_epi64(number, 32));
  number = _mm512_mask_sub_epi64(number, negative, zero, number);
  _mm512_mask_storeu_epi64(values, fields.lanes, number);
  return bad & fields.lanes;
}

uint32_t ReadRowsWide(const char* text, const uint32_t* ends, size_t count,
                      const WideBuckets& buckets, uint64_t* rows) {
  const Lanes fields(text, ends, count);
  const auto of = [&](const uint64_t* from) {
    return _mm512_maskz_loadu_epi64(fields.lanes, from);
  };
  const __m512i bucket_count = of(buckets.count);
  // HashOfEight, a lane each.
  __m512i word = _mm512_mullo_epi64(fields.begin_words, InEachWord(kXxPrime2));
  word = _mm512_mullo_epi64(_mm512_rol_epi64(word, 31), InEachWord(kXxPrime1));
  __m512i hash = _mm512_add_epi64(of(buckets.seed), InEachWord(kXxPrime5 + 8));
  hash = _mm512_rol_epi64(_mm512_xor_si512(hash, word), 27);
  hash = _mm512_add_epi64(_mm512_mullo_epi64(hash, InEachWord(kXxPrime1)), InEachWord(kXxPrime4));
  const auto mix = [&hash](unsigned by) {
    return _mm512_xor_si512(hash, _mm512_srli_epi64(hash, by));
  };
  hash = _mm512_mullo_epi64(mix(33), InEachWord(kXxPrime2));
  hash = _mm512_mullo_epi64(mix(29), InEachWord(kXxPrime3));
  hash = mix(32);
  // (hash * count) >> 64, by halves of the hash.
  const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(hash, bucket_count), 32);
  const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(hash, 32), bucket_count);
  const __m512i bucket = _mm512_srli_epi64(_mm512_add_epi64(high, low), 32);
  const __mmask8 whole = _mm512_cmpeq_epi64_mask(fields.length, InEachWord(8));
  const __mmask8 none = _mm512_testn_epi64_mask(fields.length, fields.length);
  const __m512i missing = of(buckets.missing);
  const __m512i row =
      _mm512_mask_add_epi64(missing, whole, _mm512_add_epi64(missing, bucket), InEachWord(1));
  _mm512_mask_storeu_epi64(rows, fields.lanes, row);
  return static_cast<uint32_t>(fields.lanes & ~(whole | none));
}

}  // namespace tacit::event
#else

namespace tacit::event {
size_t FindTabsWide(std::string_view record, std::span<uint32_t> out) {
  return FindTabsPortable(record, out);
}
uint32_t ReadIntegersWide(const char*, const uint32_t*, size_t count, int64_t*) {
  return (1u << count) - 1;
}
uint32_t ReadRowsWide(const char*, const uint32_t*, size_t count, const WideBuckets&, uint64_t*) {
  return (1u << count) - 1;
}
}  // namespace tacit::event
#endif
