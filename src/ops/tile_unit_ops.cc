// UnitOps for processors with AVX-512 and bf16 dot products: this room's own products, and the
// loops compiled again for wide vectors.
// All headers that unit_loops.h includes are repeated here, used or not, so that they are compiled
// before the target changes. Else the linker could choose these copies of functions that other
// files inline too, and older processors would stop at them.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/bf16.h"
#include "ops/dnnl_gemm.h"
#include "ops/loops.h"
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

// The library is faster in f32 if a right factor would be transposed for fewer than kFewRows rows,
// or if its rows lie a multiple of kFarApart numbers apart and so fall into few sets of the cache.
constexpr size_t kFewRows = 16, kFarApart = 256;

class TileUnitOps final : public UnitLoops {
 public:
  explicit TileUnitOps(Precision precision) : UnitLoops(precision), tiles_(precision) {}

  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    if (IsSumOfNothing(ShapeOf(ta, a, tb, b, c), beta, c)) return {};
    if (IsForLibrary(tb, b) ||
        (precision_ == Precision::kF32 && tb == Transpose::kYes && c.rows < kFewRows))
      return library_.F32(ta, a, tb, b, beta, c);
    tiles_.Run(ta, a, tb, b, beta, c);
    return {};
  }
  Status Gemm(Transpose ta, ConstMatrix a, const RightFactor& b, float beta, Matrix c) override {
    if (IsSumOfNothing(ShapeOf(ta, a, b.transpose, b.matrix, c), beta, c)) return {};
    if (IsForLibrary(b.transpose, b.matrix))
      return library_.F32(ta, a, b.transpose, b.matrix, beta, c);
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
    tiles_.ExpFactor(bias, x, rows, factor);
    factor->matrix = {nullptr, x.rows, x.cols, x.stride};
  }
  Status AddWeightedRows(std::span<const float> weight, const LeftFactor& a,
                         std::span<float> out) override {
    if (precision_ == Precision::kF32) return UnitOps::AddWeightedRows(weight, a, out);
    TACIT_CHECK(weight.size() == a.matrix.rows && out.size() == a.matrix.cols,
                "a weight per row, a sum per column");
    tiles_.AddWeightedRows(weight, a, out);
    return {};
  }

 private:
  bool IsForLibrary(Transpose tb, ConstMatrix b) const {
    return precision_ == Precision::kF32 && tb == Transpose::kNo && b.rows > 1 &&
           b.stride % kFarApart == 0;
  }

  TileGemm tiles_;
  DnnlGemm library_;
};

}  // namespace

std::unique_ptr<UnitOps> MakeTileUnitOps(Precision precision) {
  return std::make_unique<TileUnitOps>(precision);
}

}  // namespace tacit::ops
