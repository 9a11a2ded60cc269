#pragma once

#include <cstdint>

#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/matrix.h"

// Tiles of bf16 factors in shared memory, and their fragments for mma.sync m16n8k16. Inside of
// kernels.
namespace tacit::cuda {

inline constexpr uint32_t kChunk = 8;      // numbers in 16 bytes
inline constexpr uint32_t kFragment = 16;  // of the inner dimension in one instruction

// One stage of a factor, as it lies in memory. Rows are 16 bytes longer than their numbers, so that
// the eight rows that ldmatrix reads at once lie in different banks.
template <uint32_t kRows, uint32_t kCols>
struct alignas(16) Stage {
  static constexpr uint32_t kHeight = kRows, kWidth = kCols;
  uint16_t number[kRows][kCols + kChunk];
};

// Starts the copy of a chunk of a stage from x(row, col); what lies at or behind row_end or col_end
// becomes zero.
TACIT_IN_KERNEL void LoadChunk(uint16_t* to, const DeviceMatrix<const uint16_t>& x, uint32_t row,
                               uint32_t row_end, uint32_t col, uint32_t col_end) {
  const bool some = row < row_end && col < col_end;
  const uint32_t left = some ? col_end - col : 0;
  CopyAsync(to, some ? x.Row(row) + col : x.data, 2 * (left < kChunk ? left : kChunk));
}

// Calls body(row, column) for the first number of each chunk of a stage that this thread brings.
template <uint32_t kThreads, class S, class Body>
TACIT_IN_KERNEL void ForMyChunks(const Body& body) {
  constexpr uint32_t kChunks = S::kWidth / kChunk;
  static_assert(S::kHeight * kChunks % kThreads == 0);
  TACIT_UNROLL
  for (uint32_t i = 0; i < S::kHeight * kChunks / kThreads; ++i) {
    const uint32_t at = ThreadIndex().x + i * kThreads;
    body(at / kChunks, at % kChunks * kChunk);
  }
}

// Starts the copies of a stage whose first number is x(row0, col0).
template <uint32_t kThreads, class S>
TACIT_IN_KERNEL void LoadStage(S& stage, const DeviceMatrix<const uint16_t>& x, uint32_t row0,
                               uint32_t row_end, uint32_t col0, uint32_t col_end) {
  ForMyChunks<kThreads, S>([&](uint32_t r, uint32_t c) {
    LoadChunk(&stage.number[r][c], x, row0 + r, row_end, col0 + c, col_end);
  });
}

// The fragment of a: 16 rows from `m`, 16 of k from `k`.
template <bool kTrans, class S>
TACIT_IN_KERNEL void LoadA(uint32_t (&to)[4], const S& stage, uint32_t m, uint32_t k) {
  const uint32_t lane = LaneIndex();
  if constexpr (kTrans) {
    LoadMatrix4Transposed(to, &stage.number[k + lane % 8 + lane / 16 * 8][m + lane / 8 % 2 * 8]);
  } else {
    LoadMatrix4(to, &stage.number[m + lane % 16][k + lane / 16 * 8]);
  }
}
// The fragments of b: 16 of k from `k`, columns n to n + 7 in to[0] and to[1], the next 8 behind.
template <bool kTrans, class S>
TACIT_IN_KERNEL void LoadB(uint32_t (&to)[4], const S& stage, uint32_t k, uint32_t n) {
  const uint32_t lane = LaneIndex();
  if constexpr (kTrans) {
    LoadMatrix4(to, &stage.number[n + lane % 8 + lane / 16 * 8][k + lane / 8 % 2 * 8]);
  } else {
    LoadMatrix4Transposed(to, &stage.number[k + lane % 16][n + lane / 16 * 8]);
  }
}

// sum += the products of 16 kRows x 16 kColumns numbers from row `m` and column `n` of the stages,
// 16 of k from `k`.
template <bool kTransA, bool kTransB, uint32_t kRows, uint32_t kColumns, class A, class B>
TACIT_IN_KERNEL void AddFragments(float (&sum)[kRows][2 * kColumns][4], const A& a, const B& b,
                                  uint32_t m, uint32_t n, uint32_t k) {
  uint32_t of_a[kRows][4], of_b[kColumns][4];
  TACIT_UNROLL
  for (uint32_t i = 0; i < kRows; ++i) LoadA<kTransA>(of_a[i], a, m + 16 * i, k);
  TACIT_UNROLL
  for (uint32_t j = 0; j < kColumns; ++j) LoadB<kTransB>(of_b[j], b, k, n + 16 * j);
  TACIT_UNROLL
  for (uint32_t i = 0; i < kRows; ++i) {
    TACIT_UNROLL
    for (uint32_t j = 0; j < 2 * kColumns; ++j) {
      const uint32_t two[2] = {of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]};
      Mma16816(sum[i][j], of_a[i], two);
    }
  }
}

// Says whether cp.async may bring a matrix.
inline bool MayBeCopied(const DeviceMatrix<const uint16_t>& x) {
  return x.stride % kChunk == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

}  // namespace tacit::cuda
