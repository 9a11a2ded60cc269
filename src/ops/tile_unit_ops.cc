// UnitOps for processors with AVX-512 and bf16 dot products: products of our own, and the loops
// once more in wide vectors.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/cpu_backend.h"
#include "ops/loops.h"
#include "ops/rounded_gemm.h"
#include "ops/shapes.h"
#include "ops/tile_gemm.h"
#include "ops/unit_ops.h"
#include "ops/vector_math.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "ops/unit_loops.h"
#pragma GCC pop_options

namespace tacit::ops {
namespace {

// A right factor is not rearranged for fewer rows than that.
constexpr size_t kFewRows = 8;

class TileUnitOps final : public UnitLoops {
 public:
  explicit TileUnitOps(Precision precision)
      : precision_(precision), tiles_(precision), few_(precision) {}

  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    if (IsSumOfNothing(ShapeOf(ta, a, tb, b, c), beta, c)) return {};
    if (c.rows < kFewRows) return few_.Run(ta, a, tb, b, beta, c);
    tiles_.Run(ta, a, tb, b, beta, c);
    return {};
  }
  Status Gemm(Transpose ta, ConstMatrix a, const RightFactor& b, float beta, Matrix c) override {
    if (!IsSumOfNothing(ShapeOf(ta, a, b.transpose, b.matrix, c), beta, c))
      tiles_.Run(ta, a, b, beta, c);
    return {};
  }
  Status Gemm(Transpose ta, const LeftFactor& a, const RightFactor& b, float beta,
              Matrix c) override {
    if (precision_ == Precision::kF32) return UnitOps::Gemm(ta, a, b, beta, c);
    if (!IsSumOfNothing(ShapeOf(ta, a.matrix, b.transpose, b.matrix, c), beta, c))
      tiles_.Run(ta, a, b, beta, c);
    return {};
  }
  void Prepare(Transpose tb, ConstMatrix b, RightFactor* factor) override {
    UnitOps::Prepare(tb, b, factor);
    tiles_.Prepare(tb, b, factor);
  }
  void ExpFactor(std::span<const float> bias, Matrix x, std::span<ExpRow> rows,
                 LeftFactor* factor) override {
    if (precision_ == Precision::kF32) return UnitOps::ExpFactor(bias, x, rows, factor);
    factor->matrix = x;
    tiles_.ExpFactor(bias, x, rows, factor);
  }

 private:
  const Precision precision_;
  TileGemm tiles_;
  RoundedGemm few_;
};

}  // namespace

std::unique_ptr<UnitOps> MakeTileUnitOps(Precision precision) {
  return std::make_unique<TileUnitOps>(precision);
}

}  // namespace tacit::ops
