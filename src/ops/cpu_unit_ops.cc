// UnitOps for processors of any age: the library's products.
#include "ops/cpu_backend.h"
#include "ops/rounded_gemm.h"
#include "ops/tile_gemm.h"
#include "ops/unit_loops.h"

namespace tacit::ops {
namespace {

class LibraryUnitOps final : public UnitLoops {
 public:
  explicit LibraryUnitOps(Precision precision) : UnitLoops(precision), gemm_(precision) {}
  using UnitOps::Gemm;

  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    if (IsSumOfNothing(ShapeOf(ta, a, tb, b, c), beta, c)) return {};
    return gemm_.Run(ta, a, tb, b, beta, c);
  }
  Status Gemm(Transpose ta, ConstMatrix a, const RightFactor& b, float beta, Matrix c) override {
    if (IsSumOfNothing(ShapeOf(ta, a, b.transpose, b.matrix, c), beta, c)) return {};
    return gemm_.RunRounded(ta, a, b.transpose, b.lanes, beta, c);
  }
  void Prepare(Transpose tb, ConstMatrix b, RightFactor* factor) override {
    UnitOps::Prepare(tb, b, factor);
    factor->lanes = gemm_.Rounded(b, &factor->room);
  }

 private:
  RoundedGemm gemm_;
};

}  // namespace

std::unique_ptr<UnitOps> MakeCpuUnitOps(Precision precision) {
  return MakeCpuUnitOpsWith(precision, HasTileGemm() ? UnitGemm::kTiles : UnitGemm::kLibrary);
}

std::unique_ptr<UnitOps> MakeCpuUnitOpsWith(Precision precision, UnitGemm gemm) {
  if (gemm == UnitGemm::kTiles) return MakeTileUnitOps(precision);
  return std::make_unique<LibraryUnitOps>(precision);
}

}  // namespace tacit::ops
