#pragma once

#include <memory>

#include "ops/backend.h"

namespace tacit::ops {

// oneDNN's GEMMs, run by the calling thread alone: the backend splits the work, and a second layer
// of OpenMP threads would only fight it for the cores. One object per worker; not thread-safe.
//
// Shapes are given at run time, so nothing is compiled or cached per shape: batches vary in size
// from step to step, and a primitive made for one size costs about a millisecond.
class DnnlGemm {
 public:
  DnnlGemm();
  ~DnnlGemm();
  DnnlGemm(const DnnlGemm&) = delete;
  DnnlGemm& operator=(const DnnlGemm&) = delete;

  // c = op(a) op(b) + beta c. REQUIRES agreeing shapes and no empty dimension.
  Status F32(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta, Matrix c);
  // REQUIRES HasFastBf16().
  Status F16(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, float beta, Matrix c);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// AVX512_BF16, and an oneDNN that may use it (ONEDNN_MAX_CPU_ISA can forbid it).
bool HasFastBf16();

}  // namespace tacit::ops
