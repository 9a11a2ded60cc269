// A product's own kernel ends as the product and the loop one after the other do: with the same
// bits at ugly shapes, in every way that the device has.
#include "unit/cuda/gemm_ends.h"

namespace tacit::cuda::testing {
namespace {

class GemmEnds : public OnDevice {
 protected:
  void CheckShape(const EndsTrial::Shape& shape) {
    SCOPED_TRACE(::testing::Message() << shape.m << " x " << shape.n << " x " << shape.k << ", "
                                      << shape.more << " more columns, gap " << shape.gap);
    EndsTrial trial(*stream_, shape, random_);
    for (const GemmWay way : {GemmWay::kMma, GemmWay::kWgmma}) {
      if (way == GemmWay::kWgmma && OwnWay(device_->facts()) != way) continue;
      for (const uint32_t tile : {64u, 128u, 256u}) {
        if (tile == 256 && way == GemmWay::kMma) continue;
        NextOrder(number_++);
        const GemmPlan plan{.tile = tile, .splits = 1, .way = way};
        const auto fused = trial.Fused(plan), separate = trial.Separate(plan);
        const char* const by = way == GemmWay::kWgmma ? "wgmma" : "mma.sync";
        ASSERT_EQ(fused.activated, separate.activated) << by << ", tile " << tile;
        ASSERT_EQ(fused.masked, separate.masked) << by << ", tile " << tile;
        ASSERT_EQ(fused.logits, separate.logits) << by << ", tile " << tile;
        ASSERT_EQ(fused.biased, separate.biased) << by << ", tile " << tile;
        ASSERT_EQ(fused.rounded, separate.rounded) << by << ", tile " << tile;
        ASSERT_TRUE(EndsTrial::Close(fused.activated_squares, separate.activated_squares))
            << by << ", tile " << tile;
        ASSERT_TRUE(EndsTrial::Close(fused.masked_squares, separate.masked_squares))
            << by << ", tile " << tile;
      }
    }
  }

  std::mt19937_64 random_{13};
  int number_ = 0;
};

TEST_F(GemmEnds, LeaveTheBitsOfTheLoops) {
  if (device_ == nullptr) return;
  CheckShape({.m = 1, .n = 1, .k = 1});
  CheckShape({.m = 7, .n = 65, .k = 129});
  CheckShape({.m = 129, .n = 7, .k = 65, .gap = 1});
  CheckShape({.m = 65, .n = 129, .k = 7, .gap = 2});
  // A column more lies behind the last tile.
  CheckShape({.m = 64, .n = 128, .k = 64});
  CheckShape({.m = 66, .n = 64, .k = 20, .gap = 7});
  CheckShape({.m = 70, .n = 133, .k = 200, .more = 0, .gap = 1});
  CheckShape({.m = 5, .n = 62, .k = 31, .more = 0});
  CheckShape({.m = 9, .n = 5, .k = 0});
  CheckShape({.m = 0, .n = 5, .k = 3});
}

TEST_F(GemmEnds, LeaveTheBitsOfTheLoopsAtLongShapes) {
  if (device_ == nullptr || Orders() > 1) return;
  CheckShape({.m = 2048, .n = 598, .k = 598, .gap = 1});
  CheckShape({.m = 16384, .n = 598, .k = 65});
  CheckShape({.m = 16384, .n = 1, .k = 598});
  CheckShape({.m = 4097, .n = 512, .k = 1023, .gap = 7});
}

// A part's sums are not the product's.
TEST_F(GemmEnds, RefusesShapesOfParts) {
  if (device_ == nullptr) return;
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EndsTrial trial(*stream_, {.m = 8, .n = 8, .k = 8}, random_);
  EXPECT_DEATH(trial.Fused({.tile = 64, .splits = 2}), "a part of a product has no end");
}

}  // namespace
}  // namespace tacit::cuda::testing
