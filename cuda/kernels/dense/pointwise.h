#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Work on each number by itself, as ops::Backend has it: the bits are the CPU's, except in
// the exponential of LogisticLoss. T is float or uint16_t, a bf16.
namespace tacit::cuda {

// out = max(x + bias, 0), or x + bias without relu; no bias where it is empty. A column more of
// `out` becomes 1, the factor of the biases. `out` may be x.
template <class T>
Status AddBias(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<const float> bias, bool relu,
               DeviceMatrix<T> out);
// out = activation <= 0 ? 0 : grad; `out` may be grad.
template <class T>
Status ReluBackward(Stream& stream, DeviceMatrix<const T> activation,
                    DeviceMatrix<const float> grad, DeviceMatrix<T> out);
// Matrices rounded to bf16.
Status RoundAll(Stream& stream, const MatrixList<const float>& x, const MatrixList<uint16_t>& out);
// out[r,:] = scale[r] * x[r,:] for matrices of equally many rows, one's scales behind the other's;
// `out` may be x.
template <class T>
Status ScaleRows(Stream& stream, DeviceSpan<const float> scale, const MatrixList<const T>& x,
                 const MatrixList<T>& out);
// The logistic loss and its derivative, for each logit.
Status LogisticLoss(Stream& stream, DeviceSpan<const float> logit, DeviceSpan<const float> label,
                    DeviceSpan<float> loss, DeviceSpan<float> dlogit);
// out[c] += sum of x[r,c], rows in order.
Status ColumnSums(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<float> out);

}  // namespace tacit::cuda
