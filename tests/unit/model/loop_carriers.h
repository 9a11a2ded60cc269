#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "model/carriers/carriers.h"

// Matrices of doubles, row by row, and what carriers make of a gradient that is formed in full.
namespace tacit::model::testing {

struct LoopMatrix {
  size_t rows = 0, cols = 0;
  std::vector<double> at;

  LoopMatrix(size_t r, size_t c) : rows(r), cols(c), at(r * c) {}
  LoopMatrix(size_t r, size_t c, std::span<const double> values)
      : rows(r), cols(c), at(values.begin(), values.end()) {}
  explicit LoopMatrix(ops::ConstMatrix x) : LoopMatrix(x.rows, x.cols) {
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c) at[r * cols + c] = x.Row(r)[c];
  }
  double& operator()(size_t r, size_t c) { return at[r * cols + c]; }
  double operator()(size_t r, size_t c) const { return at[r * cols + c]; }

  double Length() const {
    double sum = 0;
    for (double x : at) sum += x * x;
    return std::sqrt(sum);
  }
};

inline LoopMatrix operator*(const LoopMatrix& a, const LoopMatrix& b) {
  LoopMatrix product(a.rows, b.cols);
  for (size_t r = 0; r < a.rows; ++r)
    for (size_t k = 0; k < a.cols; ++k)
      for (size_t c = 0; c < b.cols; ++c) product(r, c) += a(r, k) * b(k, c);
  return product;
}

inline LoopMatrix Added(const LoopMatrix& a, double factor, const LoopMatrix& b) {
  LoopMatrix sum = a;
  for (size_t i = 0; i < sum.at.size(); ++i) sum.at[i] += factor * b.at[i];
  return sum;
}

inline LoopMatrix Transposed(const LoopMatrix& x) {
  LoopMatrix t(x.cols, x.rows);
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.cols; ++c) t(c, r) = x(r, c);
  return t;
}

// L (in x r) and R (r x out).
struct LoopPair {
  LoopMatrix left, right;

  explicit LoopPair(const Carriers::Pair& pair)
      : left(Transposed(LoopMatrix(pair.left))), right(pair.right) {}
  LoopMatrix OfLeft(const LoopMatrix& dw) const { return dw * Transposed(right); }
  LoopMatrix OfRight(const LoopMatrix& dw) const { return Transposed(left) * dw; }
  // The part of a gradient that L and R span.
  LoopMatrix Projected(const LoopMatrix& dw) const {
    const LoopMatrix l = left * (Transposed(left) * dw);
    const LoopMatrix r = (dw * Transposed(right)) * right;
    const LoopMatrix both = left * (Transposed(left) * r);
    return Added(Added(l, 1, r), -1, both);
  }
};

}  // namespace tacit::model::testing
