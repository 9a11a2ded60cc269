#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "ops/backend.h"

namespace tacit::ops {

// Owns a matrix whose rows start on cache lines. Reset keeps the memory of the largest shape so
// far: a training step allocates only when it is larger than every step before it.
template <class T>
class MatrixBuffer {
 public:
  // Leaves the contents unspecified.
  void Reset(size_t rows, size_t cols) {
    const size_t stride = StrideFor(cols);
    if (rows * stride > capacity_) {
      capacity_ = rows * stride;
      data_.reset(static_cast<T*>(std::aligned_alloc(kLine, capacity_ * sizeof(T))));
      if (data_ == nullptr) throw std::bad_alloc();
    }
    view_ = {data_.get(), rows, cols, stride};
  }
  const MatrixView<T>& view() const { return view_; }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kPage = 4096;

  // Rounds up to whole lines, never whole pages: rows a page apart share the same few cache sets.
  static size_t StrideFor(size_t cols) {
    const size_t bytes = std::max(kLine, (cols * sizeof(T) + kLine - 1) / kLine * kLine);
    return (bytes % kPage == 0 ? bytes + kLine : bytes) / sizeof(T);
  }

  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T[], Free> data_;
  size_t capacity_ = 0;
  MatrixView<T> view_;
};

}  // namespace tacit::ops
