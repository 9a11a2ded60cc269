#pragma once

// kernel.h for g++: each name asks the emulator. Code that touches a kernel's memory is in this
// header, not in emulator.cc, so that it is compiled with the sanitizers.
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cuda/device/emulator.h"
#include "cuda/device/stream.h"

#define TACIT_KERNEL void
#define TACIT_KERNEL_OF(threads, blocks) void
#define TACIT_IN_KERNEL inline
#define TACIT_IN_PLACE

namespace tacit::cuda {

inline runtime::Extent ThreadIndex() { return emulator::Here().thread; }
inline runtime::Extent BlockIndex() { return emulator::Here().block; }
inline runtime::Extent BlockSize() { return emulator::Here().block_size; }
inline runtime::Extent GridSize() { return emulator::Here().grid_size; }
inline uint32_t ThreadRank() { return emulator::Here().rank; }

// The last parameters of these are the place of the call; callers do not pass them.
inline void SyncBlock(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::SyncBlock({file, line});
}
inline void SyncWarp(uint32_t mask = ~0u, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
  emulator::SyncWarp(mask, {file, line});
}
template <class T>
T Shuffle(T value, uint32_t lane, uint32_t mask = ~0u, const char* file = __builtin_FILE(),
          int line = __builtin_LINE()) {
  const emulator::Meeting all(mask, "Shuffle", {file, line}, value);
  return all.Of<T>(lane % 32);
}
inline uint32_t Ballot(bool predicate, uint32_t mask = ~0u, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  const emulator::Meeting all(mask, "Ballot", {file, line}, predicate);
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) bits |= uint32_t{all.Of<bool>(lane)} << lane;
  return bits;
}

inline bool Opaque(bool condition) { return condition; }

template <class T>
T& SharedAs() {
  static_assert(alignof(T) <= 128);
  return *static_cast<T*>(emulator::SharedMemory(sizeof(T)));
}

inline uint32_t AtomicAdd(uint32_t* to, uint32_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
inline int64_t AtomicAdd(int64_t* to, int64_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

inline uint32_t AtomicMin(uint32_t* to, uint32_t value) {
  uint32_t before = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value < before && !__atomic_compare_exchange_n(to, &before, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
  }
  return before;
}

inline void CopyAsync(void* to, const void* from, uint32_t bytes) {
  emulator::StartCopy({to, from, bytes});
}
inline void CommitCopies() { emulator::CommitCopies(); }
template <int n>
void WaitCopies() {
  for (emulator::AsyncCopy copy; emulator::TakeCopy(n, &copy);) {
    std::memset(copy.to, 0, 16);
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

// The addresses that lanes 8i to 8i + 7 bring are the rows of matrix i, 8 numbers of 16 bits each.
// Lane l receives numbers 2 (l % 4) and the next of row l / 4.
inline void LoadMatrix4(uint32_t (&r)[4], const void* row, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  emulator::CheckAligned(row);
  const emulator::Meeting all(~0u, "LoadMatrix4", {file, line}, row);
  const uint32_t lane = ThreadRank() % 32;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto* from = static_cast<const unsigned char*>(all.Of<const void*>(8 * i + lane / 4));
    std::memcpy(&r[i], from + 4 * (lane % 4), 4);
  }
}
// The same with rows and columns of each matrix exchanged.
inline void LoadMatrix4Transposed(uint32_t (&r)[4], const void* row,
                                  const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  emulator::CheckAligned(row);
  const emulator::Meeting all(~0u, "LoadMatrix4Transposed", {file, line}, row);
  const uint32_t lane = ThreadRank() % 32;
  for (uint32_t i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (uint32_t k = 0; k < 2; ++k) {
      const auto* from =
          static_cast<const unsigned char*>(all.Of<const void*>(8 * i + 2 * (lane % 4) + k));
      std::memcpy(&pair[k], from + 2 * (lane / 4), 2);
    }
    r[i] = pair[0] | uint32_t{pair[1]} << 16;
  }
}
inline void LoadMatrix2Transposed(uint32_t (&r)[2], const void* row,
                                  const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  emulator::CheckAligned(row);
  const emulator::Meeting all(~0u, "LoadMatrix2Transposed", {file, line}, row);
  const uint32_t lane = ThreadRank() % 32;
  const auto at = [&](uint32_t from_lane) {
    uint16_t number;
    std::memcpy(&number,
                static_cast<const unsigned char*>(all.Of<const void*>(from_lane)) + 2 * (lane / 4),
                2);
    return uint32_t{number};
  };
  for (uint32_t i = 0; i < 2; ++i)
    r[i] = at(8 * i + 2 * (lane % 4)) | at(8 * i + 2 * (lane % 4) + 1) << 16;
}

// c += a b for a of 16 x 16, row by row, b of 16 x 8, column by column, c of 16 x 8 in f32.
// Products of bf16 are exact in f32. The device adds them in an undocumented order; here, in rising
// k.
inline void Mma16816(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  struct Fragments {
    uint32_t a[4], b[2];
  };
  const emulator::Meeting all(~0u, "Mma16816", {file, line},
                              Fragments{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  const auto number = [](uint32_t pair, uint32_t which) {
    return std::bit_cast<float>(which ? pair & 0xffff0000u : pair << 16);
  };
  const uint32_t lane = ThreadRank() % 32;
  for (uint32_t e = 0; e < 4; ++e) {
    const uint32_t row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
    for (uint32_t k = 0; k < 16; ++k) {
      const auto& of_a = all.Of<Fragments>(4 * (row % 8) + k % 8 / 2);
      const auto& of_b = all.Of<Fragments>(4 * column + k % 8 / 2);
      c[e] += number(of_a.a[row / 8 + 2 * (k / 8)], k % 2) * number(of_b.b[k / 8], k % 2);
    }
  }
}

inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float Sqrt(float x) { return __builtin_sqrtf(x); }
inline double Sqrt(double x) { return __builtin_sqrt(x); }
inline double Abs(double x) { return __builtin_fabs(x); }
inline double Exp(double x) { return __builtin_exp(x); }
inline double Expm1(double x) { return __builtin_expm1(x); }
inline double Log1p(double x) { return __builtin_log1p(x); }
inline double Erfc(double x) { return __builtin_erfc(x); }
inline double Pow(double x, double y) { return __builtin_pow(x, y); }
inline uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }

// Puts a kernel on the stream. The arguments are copied now.
template <class... P>
Status Launch(Stream& stream, const char* name, const runtime::LaunchShape& shape,
              void (*kernel)(P...), std::type_identity_t<P>... arguments) {
  if (stream.Lists(reinterpret_cast<const void*>(kernel), shape, arguments...)) return {};
  return LaunchEmulated(stream, name, shape, [=] { kernel(arguments...); });
}

}  // namespace tacit::cuda
