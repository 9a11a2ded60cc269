#pragma once

#include <algorithm>

#include "base/check.h"
#include "ops/backend.h"

namespace tacit::ops {

// c is m x n, the inner dimension k.
struct GemmShape {
  size_t m = 0, n = 0, k = 0;
};

// Checks the arguments as all backends require, and returns the shape.
template <class T>
GemmShape ShapeOf(Transpose ta, MatrixView<const T> a, Transpose tb, MatrixView<const T> b,
                  Matrix c) {
  const GemmShape shape{ta == Transpose::kYes ? a.cols : a.rows,
                        tb == Transpose::kYes ? b.rows : b.cols,
                        ta == Transpose::kYes ? a.rows : a.cols};
  const size_t inner_b = tb == Transpose::kYes ? b.cols : b.rows;
  TACIT_CHECK(shape.k == inner_b && c.rows == shape.m && c.cols == shape.n, "GEMM shapes differ");
  TACIT_CHECK(a.stride >= a.cols && b.stride >= b.cols && c.stride >= c.cols, "rows overlap");
  return shape;
}

// Returns whether there is nothing to multiply; c then holds the result.
inline bool IsSumOfNothing(const GemmShape& shape, float beta, Matrix c) {
  if (shape.m == 0 || shape.n == 0) return true;
  if (shape.k > 0) return false;
  for (size_t r = 0; beta == 0 && r < shape.m; ++r) std::fill_n(c.Row(r), shape.n, 0.0f);
  return true;
}

template <class T, class U>
void CheckSameShape(const MatrixView<T>& x, const MatrixView<U>& y) {
  TACIT_CHECK(x.rows == y.rows && x.cols == y.cols, "shapes differ");
}

template <class T>
void CheckBlockSums(const SumPieces& pieces, const MatrixView<const T>& a,
                    const MatrixView<const T>& g, const MatrixView<int64_t>& sums) {
  TACIT_CHECK(a.rows == g.rows && sums.rows == a.cols && sums.cols == g.cols, "shapes differ");
  TACIT_CHECK(pieces.end.size() == pieces.closes.size(), "one end per piece");
  TACIT_CHECK(
      pieces.end.empty() ? a.rows == 0 : pieces.end.back() == a.rows && pieces.closes.back() == 1,
      "pieces must cover all rows");
}

inline void CheckUnits(std::span<const uint32_t> unit_end, size_t rows, size_t out) {
  TACIT_CHECK(unit_end.size() == out, "one norm per unit");
  TACIT_CHECK(unit_end.empty() ? rows == 0 : unit_end.back() == rows, "units must cover all rows");
}

inline void CheckSlots(const Backend::Slots& slots, const Matrix& x) {
  TACIT_CHECK(slots.column.size() == slots.dim.size(), "one column per slot");
  TACIT_CHECK(slots.slot_end.size() == x.rows * slots.dim.size(), "one end per example and slot");
}

}  // namespace tacit::ops
