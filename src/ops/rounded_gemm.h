#pragma once

#include "ops/backend.h"
#include "ops/dnnl_gemm.h"
#include "ops/matrix_buffer.h"

namespace tacit::ops {

// The library's f32 products; if they are to be of bf16, factors are rounded first. One object per
// worker; not thread-safe.
class RoundedGemm {
 public:
  explicit RoundedGemm(Precision precision) : precision_(precision) {}

  // c = op(a) op(b) + beta c. REQUIRES agreeing shapes and no empty dimension.
  Status Run(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta, Matrix c);
  // The same for a `b` that Rounded returned.
  Status RunRounded(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta, Matrix c);
  // Returns x itself in f32, else its rounded copy in `room`.
  ConstMatrix Rounded(ConstMatrix x, MatrixBuffer<float>* room) const;

 private:
  const Precision precision_;
  DnnlGemm library_;
  MatrixBuffer<float> a_, b_;
};

}  // namespace tacit::ops
