#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "cuda/kernels/parts/matrix.h"
#include "model/sequence/layout.h"

// Parts of a transformer on the device, and the memory in which a wave keeps what its backward pass
// needs. T is float or uint16_t, a bf16, as which factors of products are kept.
namespace tacit::cuda {

// A matrix whose memory grows; rows begin at multiples of 16 bytes.
template <class T>
class Grown {
 public:
  Status Take(Device& device, size_t rows, size_t cols) {
    stride_ = StrideOf(cols);
    rows_ = static_cast<uint32_t>(rows), cols_ = static_cast<uint32_t>(cols);
    return Reserve(device, rows * stride_, &buffer_);
  }
  // Makes room for `rows` by `cols`.
  Status Plan(BufferTaker taker, size_t rows, size_t cols) {
    return taker.Take(rows * StrideOf(cols), &buffer_);
  }
  DeviceMatrix<T> view() const { return {buffer_.span().data, rows_, cols_, stride_}; }

 private:
  static uint64_t StrideOf(size_t cols) { return (cols + 7) / 8 * 8; }

  Buffer<T> buffer_;
  uint32_t rows_ = 0, cols_ = 0;
  uint64_t stride_ = 0;
};

// A linear layer keeps these for its gradient: inputs and outputs' gradients as factors, and its
// weights for products.
template <class T>
struct Linear {
  const model::LinearLayer* layer = nullptr;
  Grown<T> in, grad, weights;
  Grown<T> squares;  // of the weights from some column on; where attention is corrected
};
struct Norm {
  const model::NormLayer* layer = nullptr;
  Grown<float> normal, of_units;
  Buffer<float> inverse;
};
template <class T>
struct Block {
  size_t index = 0;
  bool last = false;
  Linear<T> qkv, projection, inner, outer;
  Norm first, second;
  // Attention reads `factors` where it is given those, else `out_qkv`. `activation` is of f32, and
  // taken where variances go through it.
  Grown<T> factors;
  Grown<float> out_qkv, kept, middle, activation;

  void SetLayers(const model::SequenceLayout::Block& layers) {
    qkv.layer = &layers.qkv;
    projection.layer = &layers.projection;
    inner.layer = &layers.inner;
    outer.layer = &layers.outer;
    first.layer = &layers.first;
    second.layer = &layers.second;
  }
};

// The rows of logits that are formed at a time, where nothing has to be done to all of them: so
// many stay in the second-level cache (50 MB on an H100 or H200) until their exponentials are
// taken. A multiple of the rows of products' tiles.
inline size_t LogitRowsInCache(size_t items) {
  constexpr size_t kBytes = size_t{24} << 20, kTileRows = 128;
  const size_t fit = kBytes / sizeof(float) / std::max<size_t>(1, items);
  return std::max<size_t>(1, fit / kTileRows) * kTileRows;
}

// Rows of a matrix.
template <class T>
DeviceMatrix<T> RowsOf(const DeviceMatrix<T>& x, size_t begin, size_t count) {
  return {x.data + begin * x.stride, static_cast<uint32_t>(count), x.cols, x.stride};
}

}  // namespace tacit::cuda
