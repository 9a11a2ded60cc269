#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "ops/bf16.h"

namespace tacit::ops {

enum class Precision { kF32, kBf16 };

// A dense row-major matrix, not owned. `stride` is in elements.
template <class T>
struct MatrixView {
  T* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  size_t stride = 0;

  MatrixView() = default;
  MatrixView(T* d, size_t r, size_t c) : data(d), rows(r), cols(c), stride(c) {}
  MatrixView(T* d, size_t r, size_t c, size_t s) : data(d), rows(r), cols(c), stride(s) {}
  // Converts to a view that only reads.
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }
  T* Row(size_t r) const { return data + r * stride; }
  MatrixView Rows(size_t begin, size_t end) const {
    return {data + begin * stride, end - begin, cols, stride};
  }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;
using Matrix16 = MatrixView<Bf16>;
using ConstMatrix16 = MatrixView<const Bf16>;

// Libraries multiply a few rows by other code than many, which adds up in another order.
inline constexpr size_t kRowGrain = 64;

enum class Transpose : bool { kNo, kYes };

// The rows of a sum, cut into pieces that are added up in floats. Pieces make up blocks, whose sums
// are rounded to whole steps of a grid and added as integers: so a row moves the sum of its own
// block and no other one.
struct SumPieces {
  std::vector<uint32_t> end;    // of each piece's rows
  std::vector<uint8_t> closes;  // per piece: 1 = its block ends with it
};

class UnitOps;

// The arithmetic a model is made of. Virtual calls per batch, never per example. Two
// implementations: a reference of plain loops that is the oracle, and a fast one; one contract
// suite (tests/contract) holds for both. Calls split their work over the backend's workers in a
// fixed way: the same inputs give the same bits. Not thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  // True if Gemm on bf16 runs at the processor's own bf16 speed.
  virtual bool has_fast_bf16() const = 0;

  // c = op(a) op(b) + beta c; beta is 0 or 1. Shapes must agree. Where a is as it is and has a
  // multiple of kRowGrain rows, a row of c depends on its own row of a alone: not on where that
  // lies, nor on how many others there are.
  virtual Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
                      Matrix c) = 0;
  // The same with bf16 factors, products and sums in f32.
  virtual Status Gemm16(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, float beta,
                        Matrix c) = 0;
  // sums += a^T g in steps of a power of two, the product of each block's rows rounded to the
  // nearest integer. A piece is multiplied in f32; pieces of one block are added in double. A
  // block's sum beyond 2^50 steps counts as 2^50. REQUIRES pieces that cover all rows.
  virtual Status AddBlockSums(const SumPieces& pieces, ConstMatrix a, ConstMatrix g, double step,
                              MatrixView<int64_t> sums) = 0;
  virtual Status AddBlockSums16(const SumPieces& pieces, ConstMatrix16 a, ConstMatrix16 g,
                                double step, MatrixView<int64_t> sums) = 0;
  // out = bf16(in).
  virtual void Round16(ConstMatrix in, Matrix16 out) = 0;

  // x[r,:] += bias (none when empty), then max(x, 0) when relu; a NaN stays one.
  virtual void AddBias(Matrix x, std::span<const float> bias, bool relu) = 0;
  // grad[r,c] = 0 where activation[r,c] <= 0.
  virtual void ReluBackward(ConstMatrix activation, Matrix grad) = 0;
  // out[r,:] = scale[r] * x[r,:]; `out` may be x.
  virtual void ScaleRows(std::span<const float> scale, ConstMatrix x, Matrix out) = 0;

  // The same for layers kept in bf16, in one pass over memory each, because memory bounds these
  // loops. Gemm16 and the norms below see the rounded number and nothing else.
  // out = bf16(max(x + bias, 0)), as AddBias.
  virtual void AddBias16(ConstMatrix x, std::span<const float> bias, bool relu, Matrix16 out) = 0;
  // out[r,c] = activation[r,c] <= 0 ? 0 : bf16(grad[r,c]).
  virtual void ReluBackward16(ConstMatrix16 activation, ConstMatrix grad, Matrix16 out) = 0;
  // out[r,:] = bf16(scale[r] * x[r,:]); `out` may be x.
  virtual void ScaleRows16(std::span<const float> scale, ConstMatrix16 x, Matrix16 out) = 0;

  // out[r] = sum_c x[r,c]^2, in double inside.
  virtual void RowSquaredNorms(ConstMatrix x, std::span<float> out) = 0;
  // The squared Frobenius norm of A_u^T G_u for every unit u, whose rows of a and g end at
  // unit_end[u]: sum over pairs (s, t) of <a_s, a_t> <g_s, g_t>, in double throughout. If a
  // unit's rows nearly cancel, or if it is cheaper for their number, A_u^T G_u is formed. If a
  // unit's only row of `a` is longer than 2^64, the norm is infinite (row_gradient_norm.h).
  virtual void UnitSquaredNorms(std::span<const uint32_t> unit_end, ConstMatrix a, ConstMatrix g,
                                std::span<float> out) = 0;
  virtual void UnitSquaredNorms16(std::span<const uint32_t> unit_end, ConstMatrix16 a,
                                  ConstMatrix16 g, std::span<float> out) = 0;
  // out[c] += sum_r x[r,c], rows in order.
  virtual void ColumnSums(ConstMatrix x, std::span<float> out) = 0;
  // loss[r] and dlogit[r] = sigmoid(logit) - label of the logistic loss, stable for large |logit|.
  virtual void LogisticLoss(std::span<const float> logit, std::span<const float> label,
                            std::span<float> loss, std::span<float> dlogit) = 0;

  // Sum-pools embedding rows into columns of x: for every example r and slot s,
  // x[r, column[s] .. + dim[s]] = sum over the slot's rows of *row[slot_row[k]].
  struct Slots {
    std::span<const uint32_t> slot_end;  // examples x slots
    std::span<const uint32_t> slot_row;  // places in `row`
    std::span<const uint32_t> column;    // per slot: first column in x
    std::span<const uint32_t> dim;       // per slot
  };
  virtual void GatherSum(const Slots& slots, std::span<float* const> row, Matrix x) = 0;

  virtual WorkerPool& workers() = 0;
  // Makes the arithmetic of a single worker, for models that process their units one at a time; see
  // unit_ops.h. It may outlive the backend.
  virtual std::unique_ptr<UnitOps> MakeUnitOps(Precision precision) const = 0;
};

// Plain loops with double sums: slow, obviously right.
std::unique_ptr<Backend> MakeReferenceBackend();
// oneDNN GEMMs called single-threaded per worker, vector loops dispatched at run time.
// `workers` must outlive the backend.
std::unique_ptr<Backend> MakeCpuBackend(WorkerPool& workers);

// This machine's own limit, measured now: the best GEMM of 2048 x 598 x 598 that the library gives
// on one core, in FLOP/s, over `seconds`. For the "share of the limit" in benchmarks. 0 when the
// library cannot run it.
double MeasureGemmLimit(Precision precision, double seconds);

}  // namespace tacit::ops
