#include "ops/rounded_gemm.h"

#include "ops/bf16.h"

namespace tacit::ops {
namespace {

ConstMatrix Rounded(ConstMatrix x, MatrixBuffer<float>* room) {
  room->Reset(x.rows, x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    const float* from = x.Row(r);
    float* to = room->view().Row(r);
#pragma GCC ivdep
    for (size_t c = 0; c < x.cols; ++c) to[c] = FromBf16(ToBf16(from[c]));
  }
  return room->view();
}

}  // namespace

Status RoundedGemm::Run(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
                        Matrix c) {
  if (precision_ == Precision::kF32) return library_.F32(ta, a, tb, b, beta, c);
  return library_.F32(ta, Rounded(a, &a_), tb, Rounded(b, &b_), beta, c);
}

}  // namespace tacit::ops
