#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Products of matrices. The same inputs and the same plan give the same bits: no two threads add to
// the same number.
namespace tacit::cuda {

enum class Form : bool { kAsIs, kTransposed };

// The instructions that compute a product of bf16. Each way gives the same bits every time, but
// they may differ in the last bits from one another: within an instruction products are added in an
// order of its own.
enum class GemmWay : uint8_t {
  kMma,    // mma.sync: every device
  kWgmma,  // wgmma and the copy engine: compute capability 9.0 alone
};
// The faster of the two, by what the device has.
GemmWay OwnWay(const DeviceFacts& facts);

// The way in which c = op(a) op(b), of m x n numbers and k products each, is cut.
struct GemmPlan {
  // A block computes tile x tile numbers of c, 64 or 128; by wgmma 128 x tile, 64, 128 or 256.
  uint32_t tile = 128;
  // Parts of k, which are multiplied side by side; their sums are added in order.
  uint32_t splits = 1;
  GemmWay way = GemmWay::kMma;  // of bf16; f32 has one way
};

// Takes small tiles where large ones would leave multiprocessors idle, and splits k where small
// ones would, too.
GemmPlan PlanGemm(int multiprocessors, uint32_t m, uint32_t n, uint32_t k,
                  GemmWay way = GemmWay::kMma);
// A plan of n alone, without splits: a row of c is summed in the same order beside any other rows.
GemmPlan PlanRows(uint32_t n, GemmWay way);
// The numbers of working memory that a product wants.
size_t GemmWorkFloats(const GemmPlan& plan, uint32_t m, uint32_t n);

// The parts in which a product of n columns leaves the squares of its rows. REQUIRES k > 0 of it.
uint32_t SquaresParts(const GemmPlan& plan, uint32_t n);

// c = op(a) op(b) + beta c in f32; beta is 0 or 1. With beta 0 nothing of c is read. REQUIRES
// shapes that agree and work of GemmWorkFloats; for bf16, strides that are multiples of 8 and data
// that begins at a multiple of 16 bytes; for kWgmma, a device that has it.
Status Gemm16(Stream& stream, Form form_a, DeviceMatrix<const uint16_t> a, Form form_b,
              DeviceMatrix<const uint16_t> b, float beta, DeviceMatrix<float> c,
              const GemmPlan& plan, DeviceSpan<float> work);
// The same with another end than its sums, for plans without splits: what pointwise.h makes of the
// product, bit for bit, without the product's way to memory and back.
//   Gemm16Activate      AddBias of a b with relu; a column more of `out` becomes 1
//   Gemm16AddBias       AddBias of a b without relu, in f32
//                       (or, where `out` is of bf16, rounded)
//   Gemm16Round         AddBias of a b^T without a bias, rounded
//   Gemm16ReluBackward  ReluBackward of a b^T
// REQUIRES what Gemm16 and pointwise.h do, and a plan without splits; `out` is no factor. The two
// with `squares` leave there |out_r|^2 of its rows in SquaresParts parts, where it has memory.
Status Gemm16Activate(Stream& stream, DeviceMatrix<const uint16_t> a,
                      DeviceMatrix<const uint16_t> b, DeviceSpan<const float> bias,
                      DeviceMatrix<uint16_t> out, const GemmPlan& plan, RowSquares squares = {});
Status Gemm16AddBias(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                     DeviceSpan<const float> bias, DeviceMatrix<float> out, const GemmPlan& plan);
Status Gemm16AddBias(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                     DeviceSpan<const float> bias, DeviceMatrix<uint16_t> out,
                     const GemmPlan& plan);
Status Gemm16Round(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                   DeviceMatrix<uint16_t> out, const GemmPlan& plan);
Status Gemm16ReluBackward(Stream& stream, DeviceMatrix<const uint16_t> a,
                          DeviceMatrix<const uint16_t> b, DeviceMatrix<const uint16_t> activation,
                          DeviceMatrix<uint16_t> out, const GemmPlan& plan,
                          RowSquares squares = {});
Status Gemm32(Stream& stream, Form form_a, DeviceMatrix<const float> a, Form form_b,
              DeviceMatrix<const float> b, float beta, DeviceMatrix<float> c, const GemmPlan& plan,
              DeviceSpan<float> work);

// Pieces of the rows of a sum: piece i is rows [end[i - 1], end[i]). The ends are in device memory,
// so a step with other pieces has the same launches.
struct GemmPieces {
  DeviceSpan<const uint32_t> end = {};
  uint32_t first = 0, count = 0;
};
// The tile of such products.
uint32_t TileOfPieces(const DeviceFacts& facts, uint32_t m, uint32_t n, uint32_t count);
// work = a^T b in f32 of each of these pieces' rows, one behind the other. REQUIRES of a, b and
// work what Gemm16 does.
Status Gemm16Pieces(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                    const GemmPieces& pieces, DeviceSpan<float> work);
Status Gemm32Pieces(Stream& stream, DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                    const GemmPieces& pieces, DeviceSpan<float> work);
// Adds the pieces' products to `open` in double; where a block ends with a piece, adds open times
// per_step to `sums`, rounded to the nearest integer, and goes on from 0.
Status AddPieces(Stream& stream, const GemmPieces& pieces, DeviceSpan<const uint32_t> closes,
                 DeviceSpan<const float> work, double per_step, DeviceSpan<double> open,
                 DeviceSpan<int64_t> sums);

// c = beta c + the sum of the splits' products, which lie one after the other in `work`, in order.
Status AddSplits(Stream& stream, uint32_t splits, DeviceSpan<const float> work, float beta,
                 DeviceMatrix<float> c);

}  // namespace tacit::cuda
