// The dense kernels are launched with blocks of whole warps, at least two of them.
#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/dense/norms.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/gemm/gemm.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using DenseLaunches = OnDevice;

TEST_F(DenseLaunches, HaveBlocksOfManyThreads) {
  const auto numbers = ToDevice(std::vector<float>(64, 1.0f));
  const auto halves = ToDevice(std::vector<uint16_t>(64, 0x3f80));
  const auto out = Make<float>(256), more = Make<float>(64);
  const auto own = Make<double>(8);
  const auto ends = ToDevice<uint32_t>({3, 8});
  const DeviceMatrix<float> x(numbers.span().data, 8, 8, 8), y(out.span().data, 8, 8, 8);
  const DeviceMatrix<const float> in = x;
  const DeviceMatrix<const uint16_t> in16(halves.span().data, 8, 8, 8);
  const auto row = numbers.span().Sub(0, 8);
  for (const uint32_t tile : {64u, 128u}) {
    ASSERT_TRUE(Gemm16(*stream_, Form::kAsIs, in16, Form::kAsIs, in16, 0, y, {tile, 2},
                       Make<float>(128).span()));
    ASSERT_TRUE(Gemm32(*stream_, Form::kAsIs, in, Form::kAsIs, in, 0, y, {tile, 2},
                       Make<float>(128).span()));
  }
  ASSERT_TRUE(AddBias<float>(*stream_, in, {}, true, y));
  ASSERT_TRUE(ReluBackward<float>(*stream_, in, in, y));
  ASSERT_TRUE(ScaleRows<float>(*stream_, row, in, y));
  const auto rounded = Make<uint16_t>(64);
  ASSERT_TRUE(RoundAll(*stream_, in, DeviceMatrix<uint16_t>(rounded.span().data, 8, 8, 8)));
  ASSERT_TRUE(LogisticLoss(*stream_, row, row, out.span().Sub(0, 8), more.span().Sub(0, 8)));
  ASSERT_TRUE(ColumnSums(*stream_, in, more.span().Sub(8, 8)));
  ASSERT_TRUE(RowSquaredNorms(*stream_, in, more.span().Sub(0, 8)));
  const auto squared = Make<double>(8);
  const RowSquares squares(squared.span().data, 1, 8, 8);
  ASSERT_TRUE(SquareRows<float>(*stream_, in, squares));
  ASSERT_TRUE(RowGradientNorms(*stream_, squares, squares, own.span()));
  ASSERT_TRUE(OneRowNorms(*stream_, ends.span(), squares, squares, more.span().Sub(0, 2)));
  ASSERT_TRUE(
      UnitSquaredNorms<float>(*stream_, ends.span(), in, in, own.span(), more.span().Sub(0, 2)));
  const auto slots = ToDevice<DeviceSlot>({{numbers.span().data, 8, 0, 8, 0}});
  const auto slot_of = ToDevice(std::vector<uint32_t>(8, 0)), cells = ToDevice(Counted(8)),
             rows = ToDevice(std::vector<uint32_t>(8, 0));
  ASSERT_TRUE(GatherSum<float>(*stream_,
                               {.slots = slots.span(),
                                .slot_of = slot_of.span(),
                                .cell_end = cells.span(),
                                .name = rows.span()},
                               y));
  ASSERT_TRUE(stream_->Synchronize());
  ASSERT_EQ(emulated::Kernels().size(), 15u);
  for (const auto& [name, use] : emulated::Kernels()) {
    EXPECT_GE(use.threads_per_block_min, 64u) << name;
    EXPECT_EQ(use.threads_per_block_min % 32, 0u) << name;
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
