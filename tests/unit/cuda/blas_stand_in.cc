// The stand-in for cuBLAS. It knows nothing of Tacit's code, and nothing here is taken from there:
// matrices are column-major, and its numbers and signatures are those of NVIDIA's manual.
#include "unit/cuda/blas_stand_in.h"

#include <bit>
#include <memory>

using tacit::cuda::testing::BlasFault;
using tacit::cuda::testing::BlasStandIn;

namespace {

constexpr int kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13;

BlasStandIn the_stand_in;

struct Handle {
  void* stream = nullptr;
  bool has_stream = false, has_workspace = false;
};

struct Product {
  bool turn_a, turn_b;
  int m, n, k;
  const uint16_t* a;
  int lda;
  const uint16_t* b;
  int ldb;
  float alpha, beta;
  float* c;
  int ldc;
};

float FromBf16(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }

void Multiply(const Product& p) {
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = 0; i < p.m; ++i) {
      double sum = 0;
      const int64_t column = the_stand_in.fault == BlasFault::kOtherColumn ? (j + 1) % p.n : j;
      for (int64_t x = 0; x < p.k; ++x)
        sum += static_cast<double>(FromBf16(p.a[p.turn_a ? x + i * p.lda : i + x * p.lda])) *
               FromBf16(p.b[p.turn_b ? column + x * p.ldb : x + column * p.ldb]);
      float& c = p.c[i + j * p.ldc];
      c = static_cast<float>(p.alpha * sum + (p.beta == 0 ? 0.0 : double{p.beta} * c));
    }
  ++the_stand_in.done;
}

void Run(void* argument) { Multiply(*static_cast<const Product*>(argument)); }
void Drop(void* argument) { delete static_cast<Product*>(argument); }

int Misused() {
  ++the_stand_in.misused;
  return kInvalidValue;
}

}  // namespace

extern "C" {

BlasStandIn* TacitBlasStandIn() { return &the_stand_in; }

int cublasCreate_v2(void** handle) {
  if (the_stand_in.fault == BlasFault::kNoHandle) return kNotInitialized;
  *handle = new Handle;
  ++the_stand_in.handles;
  return kSuccess;
}

int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  --the_stand_in.handles;
  return kSuccess;
}

int cublasSetStream_v2(void* handle, void* stream) {
  auto& of = *static_cast<Handle*>(handle);
  of = {.stream = stream, .has_stream = true, .has_workspace = false};
  return kSuccess;
}

int cublasSetWorkspace_v2(void* handle, void* memory, size_t bytes) {
  if (memory == nullptr || reinterpret_cast<uintptr_t>(memory) % 256 != 0) return Misused();
  static_cast<Handle*>(handle)->has_workspace = bytes > 0;
  the_stand_in.workspace_bytes = bytes;
  return kSuccess;
}

int cublasGemmEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
                 const void* a, int type_a, int lda, const void* b, int type_b, int ldb,
                 const void* beta, void* c, int type_c, int ldc, int compute, int algorithm) {
  constexpr int kTurn = 1, kBfloat16 = 14, kReal32 = 0, kCompute32 = 68, kDefault = -1;
  const auto& of = *static_cast<const Handle*>(handle);
  // Without memory of its own its sums may differ from one time to the next.
  if (!of.has_stream || !of.has_workspace) return Misused();
  if ((op_a != 0 && op_a != kTurn) || (op_b != 0 && op_b != kTurn)) return Misused();
  if (type_a != kBfloat16 || type_b != kBfloat16 || type_c != kReal32) return Misused();
  if (compute != kCompute32 || algorithm != kDefault) return Misused();
  if (m <= 0 || n <= 0 || k <= 0) return Misused();
  if (lda < (op_a == kTurn ? k : m) || ldb < (op_b == kTurn ? n : k) || ldc < m) return Misused();
  if (the_stand_in.fault == BlasFault::kFails) return kExecutionFailed;
  auto product = std::make_unique<Product>(Product{.turn_a = op_a == kTurn,
                                                   .turn_b = op_b == kTurn,
                                                   .m = m,
                                                   .n = n,
                                                   .k = k,
                                                   .a = static_cast<const uint16_t*>(a),
                                                   .lda = lda,
                                                   .b = static_cast<const uint16_t*>(b),
                                                   .ldb = ldb,
                                                   .alpha = *static_cast<const float*>(alpha),
                                                   .beta = *static_cast<const float*>(beta),
                                                   .c = static_cast<float*>(c),
                                                   .ldc = ldc});
  if (the_stand_in.fault == BlasFault::kIgnoresBeta) product->beta = 0;
  if (the_stand_in.fault == BlasFault::kReadsAlways) product->beta = 1;
  if (the_stand_in.put(of.stream, Run, Drop, product.get()) != kSuccess) return kExecutionFailed;
  (void)product.release();
  ++the_stand_in.asked;
  return kSuccess;
}

}  // extern "C"
