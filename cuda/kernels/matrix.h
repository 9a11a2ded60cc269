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

}  // namespace tacit::cuda
