#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// cuBLAS of CUDA 13, by the name under which the loader looks for it.
inline constexpr char kBlasLibrary[] = "libcublas.so.13";

// The size of its working memory on the device.
inline constexpr size_t kBlasWorkspaceBytes = 32 << 20;

// Products by cuBLAS, which is loaded when the first of these is made: no build needs it, and no
// program that asks for none. It works on one stream, with working memory of its own; so the same
// products give the same bits.
class Blas {
 public:
  // c = op(a) op(b) + beta c of column-major matrices, as the library has them: a and b of bf16, c
  // and all sums in f32. op(a) has m rows, op(b) n columns; `lda` and so on are the numbers from
  // one column to the next.
  struct Product {
    bool transposed_a = false, transposed_b = false;
    int m = 0, n = 0, k = 0;
    const uint16_t* a = nullptr;
    int lda = 0;
    const uint16_t* b = nullptr;
    int ldb = 0;
    float beta = 0;
    float* c = nullptr;
    int ldc = 0;
  };

  // `stream` must outlive it. Fails with kInvalidArgument where the library is not found, and with
  // kUnavailable where it is and cannot be used.
  static Result<std::unique_ptr<Blas>> Load(Stream& stream, const char* library = kBlasLibrary);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // Puts the product on the stream. With beta 0 nothing of c is read. REQUIRES m, n, k > 0.
  Status Multiply(const Product& product);

  Stream& stream() const { return stream_; }

 private:
  struct Functions;
  Blas(Stream& stream, std::unique_ptr<Functions> functions);
  Status Open();

  Stream& stream_;
  const std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  Buffer<uint8_t> workspace_;
};

}  // namespace tacit::cuda
