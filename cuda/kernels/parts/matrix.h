#pragma once

#include <cstdint>
#include <type_traits>

#include "base/device.h"

namespace tacit::cuda {

// A row-major matrix in device memory, not owned; a value, passed to kernels as it is. `stride` is
// in elements.
template <class T>
struct DeviceMatrix {
  T* data = nullptr;
  uint32_t rows = 0, cols = 0;
  uint64_t stride = 0;

  DeviceMatrix() = default;
  TACIT_DEVICE DeviceMatrix(T* begin, uint32_t r, uint32_t c, uint64_t s)
      : data(begin), rows(r), cols(c), stride(s) {}
  // Converts to a matrix that only reads.
  template <class U>
  requires std::is_same_v<const U, T> TACIT_DEVICE DeviceMatrix(DeviceMatrix<U> other)
      : data(other.data), rows(other.rows), cols(other.cols), stride(other.stride) {}

  TACIT_DEVICE T* Row(uint64_t r) const { return data + r * stride; }
};

// |x_r|^2 of the rows of a matrix x, in parts whose sum it is: a row for each part, a column for
// each row of x.
using RowSquares = DeviceMatrix<double>;

// Matrices that one launch works on, a value passed to kernels as it is.
template <class T>
struct MatrixList {
  static constexpr uint32_t kMost = 16;

  uint32_t count = 0;
  DeviceMatrix<T> at[kMost] = {};

  MatrixList() = default;
  template <class U>
  MatrixList(DeviceMatrix<U> one) {
    Add(one);
  }
  // Converts to a list that only reads.
  template <class U>
  requires std::is_same_v<const U, T> MatrixList(const MatrixList<U>& other) {
    for (uint32_t i = 0; i < other.count; ++i) Add(other.at[i]);
  }
  // REQUIRES fewer than kMost before.
  void Add(DeviceMatrix<T> one) { at[count++] = one; }
  uint32_t rows_max() const {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; ++i) most = at[i].rows > most ? at[i].rows : most;
    return most;
  }
  uint32_t cols_max() const {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; ++i) most = at[i].cols > most ? at[i].cols : most;
    return most;
  }
};

}  // namespace tacit::cuda
