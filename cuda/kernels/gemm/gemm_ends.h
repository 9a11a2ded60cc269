#pragma once

#include <cstdint>
#include <type_traits>

#include "base/device.h"
#include "cuda/device/buffer.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/matrix.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"

// The ends of kernels that multiply: what becomes of the sums, which lie in registers as neighbours
// of a row. The arithmetic is that of pointwise.h, in its order, so the bits are those of a product
// with the loop behind it. Not in an unnamed namespace: nvcc makes no kernels for types in one.
//
//   bytes:      written 2 a number (ActivateEnd, AddBiasRoundEnd, RoundEnd, MaskEnd) or 4; read 2
//   (MaskEnd) or, once for all
//               rows of a block, 4 a column (BiasEnd)
//   operations: two or three a number
// In place of a product in f32 that goes to memory and comes back: 8 bytes a number less, and a
// launch. Forecast for 16,384 x 598: of AddBias's 17 us and ReluBackward's 21 (an H200) none and
// some 7 are left, the time to read the mask, of which a multiprocessor's other block hides a part.
// Not measured on a card. Registers: README.md.
//
// An end has At(split), for the numbers of a part of the product, and HasPairs, whether two
// neighbours may be read and written at once: those of the columns `col`, an even one, and col + 1,
// which need not be there. Read reads what they need beside their sums, and Put writes them.
// Several are read before the first of them is put: to the compiler a number that is written might
// be the next one that is read, so each would wait for the one before. Put of an end that rounds
// adds what it wrote to `squares`, which costs nothing where nobody asks.
//
// Squared<End> asks: it leaves the rows' squares in parts (matrix.h), each of the columns that one
// warp has. In place of SquareRows, which reads the rows again: 2 bytes a number less, and a
// conversion and two operations in double a number more, beside the other block's products.
// Forecast for the four wide layers of a step of 16,384: 30 of 40 us less.
namespace tacit::cuda {

template <class T>
struct alignas(2 * sizeof(T)) Neighbours {
  T first, second;
};

template <class T>
TACIT_DEVICE inline bool BeginInPairs(const DeviceMatrix<T>& x) {
  return x.stride % 2 == 0 && reinterpret_cast<uintptr_t>(x.data) % (2 * sizeof(T)) == 0;
}
// The second is 0 where it is not there.
template <class T>
TACIT_DEVICE inline Neighbours<T> GetNeighbours(bool pairs, bool both, const T* from) {
  if (pairs && both) return *reinterpret_cast<const Neighbours<T>*>(from);
  return {from[0], both ? from[1] : T{0}};
}
template <class T>
TACIT_DEVICE inline void PutNeighbours(bool pairs, bool both, T first, T second, T* to) {
  if (pairs && both) {
    *reinterpret_cast<Neighbours<T>*>(to) = {first, second};
    return;
  }
  to[0] = first;
  if (both) to[1] = second;
}

// The squares of numbers in bf16, each of which is exact in double; and of those nobody asks about.
struct SquareSum {
  double sum = 0;
  TACIT_IN_KERNEL void Add(uint16_t number) {
    const double x{Widen(number)};
    sum = Fma(x, x, sum);
  }
};
struct NoSquareSum {
  template <class T>
  TACIT_IN_KERNEL void Add(T) {}
};

// c = sums + beta c; the parts of a product lie one behind the other.
struct SumsEnd {
  struct Before {};
  DeviceMatrix<float> c;
  float beta;

  TACIT_DEVICE SumsEnd At(uint32_t split) const {
    SumsEnd end = *this;
    end.c.data += uint64_t{split} * c.rows * c.cols;
    return end;
  }
  TACIT_DEVICE bool HasPairs() const { return BeginInPairs(c); }
  TACIT_DEVICE Before Read(bool, uint32_t, uint32_t) const { return {}; }
  template <class Squares>
  TACIT_IN_KERNEL void Put(bool pairs, uint32_t row, uint32_t col, const Before&, float first,
                           float second, Squares&) const {
    float* const to = c.Row(row) + col;
    const bool both = col + 1 < c.cols;
    if (beta != 0) {
      const Neighbours<float> before = GetNeighbours(pairs, both, to);
      first = before.first + first;
      second = before.second + second;
    }
    PutNeighbours(pairs, both, first, second, to);
  }
};

// out = sums + bias, with kRelu no less than 0, as AddBias; a column more of `out` becomes 1.
template <class T, bool kRelu>
struct BiasEnd {
  using Before = Neighbours<float>;
  const float* bias;
  uint32_t cols;  // of the product
  DeviceMatrix<T> out;

  TACIT_DEVICE BiasEnd At(uint32_t) const { return *this; }
  TACIT_DEVICE bool HasPairs() const { return BeginInPairs(out); }
  TACIT_DEVICE Before Read(bool, uint32_t, uint32_t col) const {
    return GetNeighbours(false, col + 1 < cols, bias + col);
  }
  template <class Squares>
  TACIT_IN_KERNEL void Put(bool pairs, uint32_t row, uint32_t col, const Before& biases,
                           float first, float second, Squares& squares) const {
    T* const to = out.Row(row) + col;
    T numbers[2];
    Narrow(Of(first + biases.first), &numbers[0]);
    Narrow(col + 1 < cols ? Of(second + biases.second) : 1.0f, &numbers[1]);
    PutNeighbours(pairs, col + 1 < out.cols, numbers[0], numbers[1], to);
    squares.Add(numbers[0]);
    if (col + 1 < out.cols) squares.Add(numbers[1]);
    if (col + 2 == cols && cols < out.cols) {
      T one;
      Narrow(1.0f, &one);
      to[2] = one;
      squares.Add(one);
    }
  }
  TACIT_DEVICE static float Of(float y) { return kRelu && y < 0 ? 0.0f : y; }
};

// out = activation <= 0 ? 0 : sums, as ReluBackward.
struct MaskEnd {
  using Before = Neighbours<uint16_t>;
  DeviceMatrix<const uint16_t> activation;
  DeviceMatrix<uint16_t> out;

  TACIT_DEVICE MaskEnd At(uint32_t) const { return *this; }
  TACIT_DEVICE bool HasPairs() const { return BeginInPairs(activation) && BeginInPairs(out); }
  TACIT_DEVICE Before Read(bool pairs, uint32_t row, uint32_t col) const {
    return GetNeighbours(pairs, col + 1 < out.cols, activation.Row(row) + col);
  }
  template <class Squares>
  TACIT_IN_KERNEL void Put(bool pairs, uint32_t row, uint32_t col, const Before& active,
                           float first, float second, Squares& squares) const {
    const bool both = col + 1 < out.cols;
    uint16_t numbers[2];
    Narrow(Of(active.first, first), &numbers[0]);
    Narrow(Of(active.second, second), &numbers[1]);
    PutNeighbours(pairs, both, numbers[0], numbers[1], out.Row(row) + col);
    squares.Add(numbers[0]);
    if (both) squares.Add(numbers[1]);
  }
  TACIT_DEVICE float Of(uint16_t active, float sum) const { return Widen(active) <= 0 ? 0 : sum; }
};

// out = sums, rounded, as AddBias without a bias.
struct RoundEnd {
  struct Before {};
  DeviceMatrix<uint16_t> out;

  TACIT_DEVICE RoundEnd At(uint32_t) const { return *this; }
  TACIT_DEVICE bool HasPairs() const { return BeginInPairs(out); }
  TACIT_DEVICE Before Read(bool, uint32_t, uint32_t) const { return {}; }
  template <class Squares>
  TACIT_IN_KERNEL void Put(bool pairs, uint32_t row, uint32_t col, const Before&, float first,
                           float second, Squares&) const {
    uint16_t numbers[2];
    Narrow(first, &numbers[0]);
    Narrow(second, &numbers[1]);
    PutNeighbours(pairs, col + 1 < out.cols, numbers[0], numbers[1], out.Row(row) + col);
  }
};

// An end that leaves the squares of the rows it wrote.
template <class End>
struct Squared : End {
  RowSquares squares;

  TACIT_DEVICE Squared At(uint32_t) const { return *this; }
};
template <class End>
inline constexpr bool kHasSquares = requires(const End& end) {
  end.squares;
};
// The sum to which its numbers of a row are added.
template <class End>
using SquaresOf = std::conditional_t<kHasSquares<End>, SquareSum, NoSquareSum>;

// Ends kPairs pairs of a row, eight columns apart and from `col` on; sums_of(i) are the i-th
// pair's, first and second.
template <uint32_t kPairs, class End, class SumsOf>
TACIT_IN_KERNEL void PutPairs(const End& end, bool pairs, uint32_t row, uint32_t col, uint32_t cols,
                              const SumsOf& sums_of, SquaresOf<End>& squares) {
  typename End::Before before[kPairs] = {};
  TACIT_UNROLL
  for (uint32_t i = 0; i < kPairs; ++i)
    if (col + 8 * i < cols) before[i] = end.Read(pairs, row, col + 8 * i);
  TACIT_UNROLL
  for (uint32_t i = 0; i < kPairs; ++i) {
    const float* const sums = sums_of(i);
    if (col + 8 * i < cols) end.Put(pairs, row, col + 8 * i, before[i], sums[0], sums[1], squares);
  }
}

// Puts a part of a row's squares, of which each of four neighbouring lanes has some; behind all
// PutPairs of the row. All lanes of the warp must be there; `real` says whether the row is.
template <class End>
TACIT_IN_KERNEL void PutSquares(const End& end, bool real, uint32_t row, uint32_t part,
                                const SquaresOf<End>& squares) {
  if constexpr (kHasSquares<End>) {
    const double of_row = QuadSum(squares.sum);
    if (real && LaneIndex() % 4 == 0) end.squares.Row(part)[row] = of_row;
  }
}

using ActivateEnd = BiasEnd<uint16_t, true>;
using AddBiasEnd = BiasEnd<float, false>;
using AddBiasRoundEnd = BiasEnd<uint16_t, false>;

}  // namespace tacit::cuda
