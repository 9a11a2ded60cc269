#include "ops/rounded_gemm.h"

#include "ops/bf16.h"

namespace tacit::ops {

ConstMatrix RoundedGemm::Rounded(ConstMatrix x, MatrixBuffer<float>* room) const {
  if (precision_ == Precision::kF32) return x;
  room->Reset(x.rows, x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    const float* from = x.Row(r);
    float* to = room->view().Row(r);
#pragma GCC ivdep
    for (size_t c = 0; c < x.cols; ++c) to[c] = FromBf16(ToBf16(from[c]));
  }
  return room->view();
}

Status RoundedGemm::Run(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
                        Matrix c) {
  return RunRounded(ta, a, tb, Rounded(b, &b_), beta, c);
}

Status RoundedGemm::RunRounded(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
                               Matrix c) {
  return library_.F32(ta, Rounded(a, &a_), tb, b, beta, c);
}

}  // namespace tacit::ops
