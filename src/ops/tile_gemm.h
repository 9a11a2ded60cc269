#pragma once

#include "ops/backend.h"
#include "ops/matrix_buffer.h"
#include "ops/unit_ops.h"

namespace tacit::ops {

// Returns true if the processor has AVX-512 with bf16 dot products.
bool HasTileGemm();

// REQUIRES HasTileGemm().
std::unique_ptr<UnitOps> MakeTileUnitOps(Precision precision);

// Products for one unit: one factor has a few hundred rows, and everything lies in one core's
// caches. A library packs both factors at each call, which costs much for products this short
// (docs/internals/ops.md); here a factor is read in place, or rounded and rearranged on its way, or
// prepared once for many products (RightFactor). One object per worker; not thread-safe; memory
// grows to the largest factor that has to be rearranged.
//
// Both precisions are one program over 32-bit lanes: a float, or two bf16 that are neighbours in
// the inner dimension. Products and sums are f32.
class TileGemm {
 public:
  // REQUIRES HasTileGemm().
  explicit TileGemm(Precision precision) : precision_(precision) {}

  void Prepare(Transpose tb, ConstMatrix b, RightFactor* factor);
  // c = op(a) op(b) + beta c. REQUIRES agreeing shapes and no empty dimension.
  void Run(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta, Matrix c);
  void Run(Transpose ta, ConstMatrix a, const RightFactor& b, float beta, Matrix c);

  // As in UnitOps; REQUIRES bf16. Exponentials are rounded, for both of their products, while they
  // are in registers.
  void ExpFactor(std::span<const float> bias, Matrix x, std::span<ExpRow> rows, LeftFactor* factor);
  void Run(Transpose ta, const LeftFactor& a, const RightFactor& b, float beta, Matrix c);
  void AddWeightedRows(std::span<const float> weight, const LeftFactor& a, std::span<float> out);

 private:
  void RunLanes(Transpose ta, ConstMatrix a, ConstMatrix lanes, float beta, Matrix c);
  template <class Lane>
  void Multiply(Transpose ta, ConstMatrix a, ConstMatrix lanes, float beta, Matrix c);

  const Precision precision_;
  MatrixBuffer<float> left_, right_;
};

}  // namespace tacit::ops
