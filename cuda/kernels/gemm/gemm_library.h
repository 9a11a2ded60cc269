#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/blas.h"
#include "cuda/kernels/gemm/gemm.h"

namespace tacit::cuda {

// Gemm16 by the library, under the same contract: c = op(a) op(b) + beta c, on the library's
// stream. There is no plan, because the library has its own, and none of k may be missing.
// REQUIRES k > 0; strides, rows and columns below 2^31.
Status GemmByLibrary(Blas& blas, Form form_a, DeviceMatrix<const uint16_t> a, Form form_b,
                     DeviceMatrix<const uint16_t> b, float beta, DeviceMatrix<float> c);

// Holds products of small whole numbers by the library against the host's, which must be the same
// to the last bit. Fails with kCorruption if one is not: a library that is loaded at run time is
// none that was tested here.
Status CheckLibrary(Blas& blas);

}  // namespace tacit::cuda
