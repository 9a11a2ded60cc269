#include "cuda/device/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cuda/device/device.h"

namespace tacit::cuda {
namespace {

// The parts of cublas_api.h and library_types.h that are used. These numbers and signatures are
// part of the library's binary interface, which its name, with its 13, stands for.
constexpr int kBlasSuccess = 0;
constexpr int kAsItIs = 0, kTransposed = 1;  // cublasOperation_t
constexpr int kReal32 = 0, kBfloat16 = 14;   // cudaDataType
constexpr int kSumsInF32 = 68;               // CUBLAS_COMPUTE_32F
constexpr int kAnyAlgorithm = -1;            // CUBLAS_GEMM_DEFAULT
using Create = int (*)(void** handle);
using Destroy = int (*)(void* handle);
using SetStream = int (*)(void* handle, void* stream);
using SetWorkspace = int (*)(void* handle, void* memory, size_t bytes);
using GemmEx = int (*)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
                       const void* a, int type_a, int lda, const void* b, int type_b, int ldb,
                       const void* beta, void* c, int type_c, int ldc, int compute, int algorithm);

// As much as NVIDIA's manual recommends for compute capability 9.0. With less the library leaves
// out its faster ways.

constexpr std::string_view kRemedy = "; set gpu.gemm to own, which needs no library";

}  // namespace

struct Blas::Functions {
  Create create = nullptr;
  Destroy destroy = nullptr;
  SetStream set_stream = nullptr;
  SetWorkspace set_workspace = nullptr;
  GemmEx gemm = nullptr;
};

Blas::Blas(Stream& stream, std::unique_ptr<Functions> functions)
    : stream_(stream), functions_(std::move(functions)) {}

Blas::~Blas() {
  // It waits for the device, and so does the workspace, which goes next.
  if (handle_ != nullptr) (void)functions_->destroy(handle_);
}

Result<std::unique_ptr<Blas>> Blas::Load(Stream& stream, const char* library) {
  // It stays loaded: the driver may still call what it registered.
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* const why = dlerror();
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} cannot be loaded ({}); install cuBLAS of CUDA 13 where the loader "
                            "looks (ldconfig -p, LD_LIBRARY_PATH), or set gpu.gemm to own, which "
                            "needs no library",
                            library, why == nullptr ? "no reason is given" : why));
  }
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto* function) {
    void* const found = dlsym(loaded, name);
    if (found == nullptr) missing = name;
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(found);
  };
  find("cublasCreate_v2", &functions->create);
  find("cublasDestroy_v2", &functions->destroy);
  find("cublasSetStream_v2", &functions->set_stream);
  find("cublasSetWorkspace_v2", &functions->set_workspace);
  find("cublasGemmEx", &functions->gemm);
  if (missing != nullptr)
    return Fail(ErrorCode::kUnavailable, fmt::format("{} has no {}{}", library, missing, kRemedy));
  std::unique_ptr<Blas> blas(new Blas(stream, std::move(functions)));
  TACIT_RETURN_IF_ERROR(blas->Open());
  return blas;
}

Status Blas::Open() {
  Device& device = stream_.device();
  device.CheckOwner();
  TACIT_RETURN_IF_ERROR(device.Health());
  TACIT_ASSIGN(workspace_, Buffer<uint8_t>::Make(device, kBlasWorkspaceBytes));
  const auto must = [](int status, std::string_view doing) -> Status {
    if (status == kBlasSuccess) return {};
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cuBLAS fails, {}: its status is {}{}", doing, status, kRemedy));
  };
  TACIT_RETURN_IF_ERROR(must(functions_->create(&handle_), "making a handle"));
  TACIT_RETURN_IF_ERROR(
      must(functions_->set_stream(handle_, stream_.handle()), "taking its stream"));
  // A new stream takes the library back to memory of its own, so this comes behind it.
  return must(functions_->set_workspace(handle_, workspace_.span().data, kBlasWorkspaceBytes),
              "taking its working memory");
}

Status Blas::Multiply(const Product& product) {
  TACIT_CHECK(product.m > 0 && product.n > 0 && product.k > 0, "a product of nothing");
  Device& device = stream_.device();
  device.CheckOwner();
  TACIT_RETURN_IF_ERROR(device.Health());
  if (stream_.Lists(reinterpret_cast<const void*>(functions_->gemm), {}, handle_, product))
    return {};
  const auto op = [](bool transposed) { return transposed ? kTransposed : kAsItIs; };
  // The library copies both factors before it returns, into graphs as well.
  const float alpha = 1;
  const int status = functions_->gemm(handle_, op(product.transposed_a), op(product.transposed_b),
                                      product.m, product.n, product.k, &alpha, product.a, kBfloat16,
                                      product.lda, product.b, kBfloat16, product.ldb, &product.beta,
                                      product.c, kReal32, product.ldc, kSumsInF32, kAnyAlgorithm);
  if (status == kBlasSuccess) return {};
  return Fail(
      ErrorCode::kInternal,
      fmt::format("GPU {}: cuBLAS fails to multiply {} x {} x {}: its status is {}{}",
                  device.facts().ordinal, product.m, product.n, product.k, status, kRemedy));
}

}  // namespace tacit::cuda
