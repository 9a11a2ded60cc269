// Faults in the products by wgmma are found on a card, too, by what their tests compare. A device
// without wgmma has nothing to find.
#include "unit/cuda/planted_wgmma.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/cuda/gemm_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class PlantedWgmma : public OnDevice {
 protected:
  void TearDown() override {
    if (stream_ != nullptr && HasWgmmaThere()) {
      EXPECT_TRUE(PlantInWgmma(*stream_, WgmmaFault::kNone));
      EXPECT_TRUE(stream_->Synchronize());
    }
    OnDevice::TearDown();
  }

  bool HasWgmmaThere() const { return OwnWay(device_->facts()) == GemmWay::kWgmma; }

  std::vector<float> Multiply(const ProductTrial& trial, uint32_t tile, WgmmaFault fault) {
    const auto a = ToDevice(trial.a().numbers), b = ToDevice(trial.b().numbers);
    const auto c = ToDevice(trial.before());
    EXPECT_TRUE(PlantInWgmma(*stream_, fault));
    const DeviceMatrix<float> to(c.span().data, trial.m(), trial.n(),
                                 ProductTrial::Stride(trial.n()));
    const Status done =
        Gemm16(*stream_, trial.form_a(), trial.a().On(a), trial.form_b(), trial.b().On(b), 0, to,
               {.tile = tile, .splits = 1, .way = GemmWay::kWgmma}, {});
    EXPECT_TRUE(done) << done.error().message;
    return FromDevice(c);
  }

  // Expects the fault to be found in a product of every tile and form of which `applies` is true.
  template <class Applies>
  void ExpectFound(WgmmaFault fault, uint32_t m, uint32_t n, uint32_t k, const Applies& applies) {
    if (device_ == nullptr || !HasWgmmaThere()) return;
    std::mt19937_64 random(3);
    for (const Form fa : {Form::kAsIs, Form::kTransposed})
      for (const Form fb : {Form::kAsIs, Form::kTransposed})
        for (const uint32_t tile : {64u, 128u, 256u}) {
          if (!applies(fa, fb, tile)) continue;
          SCOPED_TRACE(::testing::Message() << "forms " << static_cast<int>(fa)
                                            << static_cast<int>(fb) << " tile " << tile);
          const ProductTrial trial(m, n, k, fa, fb, random), other(m, n, k, fa, fb, random);
          const auto right = Multiply(trial, tile, WgmmaFault::kNone);
          ASSERT_NO_FATAL_FAILURE(trial.Check(0, right));
          // Numbers of another product are what shared memory holds then.
          Multiply(other, tile, WgmmaFault::kNone);
          EXPECT_NE(Multiply(trial, tile, fault), right);
        }
  }
  static bool Always(Form, Form, uint32_t) { return true; }
};

TEST_F(PlantedWgmma, RowsThatAreDescribedTooCloseAreFound) {
  ExpectFound(WgmmaFault::kStride, 130, 200, 200, Always);
}

// The distance counts where a factor lies across k and is wider than a tile: b, for a warpgroup has
// 64 rows of a.
TEST_F(PlantedWgmma, TilesThatAreDescribedTooCloseAreFound) {
  ExpectFound(WgmmaFault::kLeading, 130, 200, 200,
              [](Form, Form fb, uint32_t tile) { return fb == Form::kAsIs && tile > 64; });
}

// Across k a tile that is not swizzled is read in another way, and might be read to behind its end.
TEST_F(PlantedWgmma, AMissingSwizzleIsFound) {
  ExpectFound(WgmmaFault::kNoSwizzle, 130, 200, 200, [](Form fa, Form fb, uint32_t) {
    return fa == Form::kAsIs && fb == Form::kTransposed;
  });
}

TEST_F(PlantedWgmma, TilesFromAnotherRowAreFound) {
  ExpectFound(WgmmaFault::kRowOff, 130, 200, 200, Always);
}

// One stage and few blocks: what comes too late comes before its block has ended.
TEST_F(PlantedWgmma, ProductsThatBeginTooEarlyAreFound) {
  ExpectFound(WgmmaFault::kTooEarly, 128, 256, 64, Always);
}

}  // namespace
}  // namespace tacit::cuda::testing
