#include "cuda/kernels/gemm/gemm_library.h"

#include <fmt/format.h>

#include <climits>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/check.h"
#include "cuda/device/device.h"
#include "ops/bf16.h"

namespace tacit::cuda {
namespace {

int AsInt(uint64_t number) {
  TACIT_CHECK(number <= INT_MAX, "a matrix beyond what the library counts");
  return static_cast<int>(number);
}

// Whole numbers from -8 to 8, which bf16 has, and between the rows numbers that are none.
class WholeNumbers {
 public:
  WholeNumbers(uint32_t rows, uint32_t cols, uint32_t seed)
      : rows_(rows), cols_(cols), numbers_(rows * Stride(), 0x7fff) {
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t c = 0; c < cols; ++c) {
        const uint32_t mixed = (seed + r * cols + c) * 2654435761u;
        numbers_[r * Stride() + c] =
            ops::ToBf16(static_cast<float>(static_cast<int>((mixed >> 16) % 17) - 8));
      }
  }
  Status Upload(Stream& stream) {
    TACIT_ASSIGN(on_device_, Buffer<uint16_t>::Make(stream.device(), numbers_.size()));
    return stream.Upload<uint16_t>(numbers_, on_device_.span());
  }
  DeviceMatrix<const uint16_t> matrix() const {
    return {on_device_.span().data, rows_, cols_, Stride()};
  }
  float At(uint32_t r, uint32_t c) const { return ops::FromBf16(numbers_[r * Stride() + c]); }

 private:
  uint64_t Stride() const { return (cols_ + 7) / 8 * 8 + 8; }

  uint32_t rows_, cols_;
  std::vector<uint16_t> numbers_;
  Buffer<uint16_t> on_device_;
};

Status CheckProduct(Blas& blas, Form form_a, Form form_b, float beta) {
  constexpr uint32_t kRows = 37, kColumns = 70, kInner = 131, kStride = 75;
  const bool ta = form_a == Form::kTransposed, tb = form_b == Form::kTransposed;
  Stream& stream = blas.stream();
  WholeNumbers a(ta ? kInner : kRows, ta ? kRows : kInner, 1);
  WholeNumbers b(tb ? kColumns : kInner, tb ? kInner : kColumns, 1000003);
  TACIT_RETURN_IF_ERROR(a.Upload(stream));
  TACIT_RETURN_IF_ERROR(b.Upload(stream));
  // With beta 0 what was there must not be read.
  std::vector<float> c(kRows * kStride, beta == 0 ? std::numeric_limits<float>::quiet_NaN() : 3.0f);
  TACIT_ASSIGN(const auto on_device, Buffer<float>::Make(stream.device(), c.size()));
  TACIT_RETURN_IF_ERROR(stream.Upload<float>(c, on_device.span()));
  TACIT_RETURN_IF_ERROR(GemmByLibrary(blas, form_a, a.matrix(), form_b, b.matrix(), beta,
                                      {on_device.span().data, kRows, kColumns, kStride}));
  TACIT_RETURN_IF_ERROR(stream.Download(on_device.span(), std::span<float>(c)));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  for (uint32_t i = 0; i < kRows; ++i)
    for (uint32_t j = 0; j < kColumns; ++j) {
      float sum = beta == 0 ? 0.0f : 3.0f;
      for (uint32_t x = 0; x < kInner; ++x)
        sum += (ta ? a.At(x, i) : a.At(i, x)) * (tb ? b.At(j, x) : b.At(x, j));
      if (c[i * kStride + j] == sum) continue;
      return Fail(
          ErrorCode::kCorruption,
          fmt::format("GPU {}: cuBLAS multiplies wrongly: a sum of whole numbers is {}, and "
                      "it says {}; set gpu.gemm to own",
                      stream.device().facts().ordinal, sum, c[i * kStride + j]));
    }
  return {};
}

}  // namespace

// The library's matrices are column-major, and a row-major one in its place is its own transpose.
// So it is asked for c's transpose, op(b)^T op(a)^T: factors change places, and none is turned that
// was not to be turned.
Status GemmByLibrary(Blas& blas, Form form_a, DeviceMatrix<const uint16_t> a, Form form_b,
                     DeviceMatrix<const uint16_t> b, float beta, DeviceMatrix<float> c) {
  const bool ta = form_a == Form::kTransposed, tb = form_b == Form::kTransposed;
  const uint32_t m = ta ? a.cols : a.rows, n = tb ? b.rows : b.cols, k = ta ? a.rows : a.cols;
  TACIT_CHECK((tb ? b.cols : b.rows) == k && c.rows == m && c.cols == n, "GEMM shapes differ");
  TACIT_CHECK(a.stride >= a.cols && b.stride >= b.cols && c.stride >= c.cols, "rows overlap");
  TACIT_CHECK(beta == 0 || beta == 1, "beta is 0 or 1");
  if (m == 0 || n == 0) return {};
  return blas.Multiply({.transposed_a = tb,
                        .transposed_b = ta,
                        .m = AsInt(n),
                        .n = AsInt(m),
                        .k = AsInt(k),
                        .a = b.data,
                        .lda = AsInt(b.stride),
                        .b = a.data,
                        .ldb = AsInt(a.stride),
                        .beta = beta,
                        .c = c.data,
                        .ldc = AsInt(c.stride)});
}

Status CheckLibrary(Blas& blas) {
  for (const Form form_a : {Form::kAsIs, Form::kTransposed})
    for (const Form form_b : {Form::kAsIs, Form::kTransposed})
      for (const float beta : {0.0f, 1.0f})
        TACIT_RETURN_IF_ERROR(CheckProduct(blas, form_a, form_b, beta));
  return {};
}

}  // namespace tacit::cuda
