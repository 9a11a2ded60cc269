#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/parts/matrix.h"
#include "cuda/learn/product_choice.h"
#include "model/dense_net.h"
#include "ops/backend.h"

namespace tacit::cuda {

// ops::SumPieces on the device: the end of each piece's rows, and 1 where its block ends.
struct DevicePieces {
  DeviceSpan<const uint32_t> end = {}, closes = {};
};

// model::DenseNet on the device: linear layers with ReLU between them, in f32 or bf16, for up to so
// many rows at a time. It keeps what one backward pass needs. Every call puts work on the stream
// that it was made with and returns; calls come in order: Input, Forward, Backward, then the rest.
// Its memory is taken when it is made.
class DeviceNet {
 public:
  virtual ~DeviceNet() = default;

  // Brings the inputs of the next rows.
  virtual Status Input(const GatherInput& from, uint32_t rows) = 0;
  // Computes logits of the inputs; `dense` are the flat parameters.
  virtual Status Forward(DeviceSpan<const float> dense, DeviceSpan<float> logits) = 0;
  // `input_gradient` gets the gradient of the input's first columns, as many as it has. REQUIRES a
  // net that learns, as all that follows.
  virtual Status Backward(DeviceSpan<const float> dlogit, DeviceMatrix<float> input_gradient) = 0;
  // As model::DenseNet::SquaredNorms, all layers' behind each other. `one_row_each`: no unit has
  // several rows. REQUIRES a net that learns privately.
  virtual Status SquaredNorms(DeviceSpan<const uint32_t> unit_end, bool one_row_each,
                              DeviceSpan<float> out) = 0;
  // Wipes the rows of units that are not bounded and of examples of no unit, kNone; those of
  // `input_gradient` as well.
  virtual Status Clear(DeviceSpan<const uint8_t> bounded, DeviceSpan<const uint32_t> unit_of,
                       DeviceMatrix<float> input_gradient) = 0;
  // sums = the layers' gradients summed over rows, row r scaled by scale[l * rows + r] (empty: as
  // it is), or that added to them with beta 1. Layers come from the last to the first, and
  // `summed(l)` is called behind each. The rows stay scaled: Backward comes before the next Sum.
  using Summed = std::function<Status(size_t layer)>;
  virtual Status Sum(DeviceSpan<const float> scale, float beta, DeviceSpan<float> sums,
                     const Summed& summed) = 0;
  // sums += the same in whole steps, per_step to 1, summed in pieces as model::DenseNet::SumOnGrid
  // has it. A block may go on in the next rows. REQUIRES a net that learns privately, and a step
  // whose last block ends.
  virtual Status SumOnGrid(DeviceSpan<const float> scale, const DevicePieces& pieces,
                           double per_step, DeviceSpan<int64_t> sums, const Summed& summed) = 0;
};

struct DeviceNetOptions {
  enum class Use : uint8_t { kScore, kLearn, kLearnPrivately };

  ops::Precision precision = ops::Precision::kF32;
  std::vector<model::LinearLayer> layers = {};  // the last one has one output
  uint32_t rows_max = 0;
  Use use = Use::kLearnPrivately;
  ProductOptions products = {};  // of matrices of bf16
};

// `stream` must outlive it. Fails with kRefused for more layers than a MatrixList has room for, and
// as ChooseProducts does.
Result<std::unique_ptr<DeviceNet>> MakeDeviceNet(Stream& stream, DeviceNetOptions options);

// The device memory of such a net; and the most that is taken while it is made and what multiplies
// is chosen, with cuBLAS's working memory where that is asked for. What private learning needs is
// counted for all that learns.
struct DeviceNetBytes {
  uint64_t kept = 0, making = 0;
};
DeviceNetBytes BytesOfDeviceNet(const DeviceFacts& facts, const DeviceNetOptions& options);

}  // namespace tacit::cuda
