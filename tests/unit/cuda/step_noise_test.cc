// A step's key: fresh, drawn from once, and gone when the step has ended.
#include "cuda/kernels/noise/step_noise.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/device/graph.h"
#include "noise/noise.h"
#include "support/silent_noise.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

// Gives out known keys, one after the other.
class KnownKeys final : public noise::SilentNoise {
 public:
  void FillKey(std::span<uint8_t, 32> key) override {
    std::fill(key.begin(), key.end(), static_cast<uint8_t>(++given));
  }
  int given = 0;
};

class StepNoiseTest : public OnDevice {
 protected:
  StepNoise MakeStep() { return std::move(*StepNoise::Make(*stream_)); }
  std::vector<uint32_t> WordsAt(DeviceSpan<const NoiseKey> key) {
    std::vector<NoiseKey> got(1);
    EXPECT_TRUE(stream_->Download(key, std::span<NoiseKey>(got)));
    EXPECT_TRUE(stream_->Synchronize());
    return {std::begin(got[0].words), std::end(got[0].words)};
  }
};

TEST_F(StepNoiseTest, EachStepHasItsOwnKeyAndLeavesZeros) {
  if (device_ == nullptr) return;
  KnownKeys keys;
  StepNoise step = MakeStep();
  for (uint32_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(step.Begin(keys));
    const auto key = step.key();
    EXPECT_EQ(WordsAt(key), std::vector<uint32_t>(8, 0x01010101u * n));
    ASSERT_TRUE(step.End());
    EXPECT_EQ(WordsAt(key), std::vector<uint32_t>(8, 0));
  }
  EXPECT_EQ(keys.given, 3);
}

TEST_F(StepNoiseTest, DrawsUnderTheStepsKey) {
  if (device_ == nullptr) return;
  KnownKeys keys;
  StepNoise step = MakeStep();
  const std::vector<uint64_t> ids = {3, 8};
  const auto rows = ToDevice(ids);
  NoiseKey same;
  std::fill(std::begin(same.words), std::end(same.words), 0x01010101u);
  const auto known = ToDevice<NoiseKey>({same});
  const std::vector<int64_t> zeros(100, 0), row_zeros(2 * 20, 0);
  const auto dense = ToDevice(zeros), want_dense = ToDevice(zeros), sums = ToDevice(row_zeros),
             want_sums = ToDevice(row_zeros);
  ASSERT_TRUE(step.Begin(keys));
  ASSERT_TRUE(step.AddToDense(1e6, dense.span()));
  ASSERT_TRUE(step.AddToRows(1e6, rows.span(), 20, sums.span()));
  ASSERT_TRUE(step.End());
  ASSERT_TRUE(AddGridNoise(*stream_, known.span(), NoiseQuery::kDense, 1e6, want_dense.span()));
  ASSERT_TRUE(AddGridNoiseToRows(*stream_, known.span(), NoiseQuery::kRows, 1e6, rows.span(), 20,
                                 want_sums.span()));
  EXPECT_NE(FromDevice(dense), zeros);
  EXPECT_EQ(FromDevice(dense), FromDevice(want_dense));
  EXPECT_EQ(FromDevice(sums), FromDevice(want_sums));
}

TEST_F(StepNoiseTest, NoNoiseServesTwoReleases) {
  if (device_ == nullptr) return;
  GTEST_FLAG_SET(death_test_style, "fast");
  KnownKeys keys;
  StepNoise step = MakeStep();
  const auto values = ToDevice(std::vector<int64_t>(10, 0));
  EXPECT_DEATH((void)step.AddToDense(1e6, values.span()), "noise without a key");
  ASSERT_TRUE(step.Begin(keys));
  EXPECT_DEATH((void)step.Begin(keys), "before the last one's key is gone");
  ASSERT_TRUE(step.AddToDense(1e6, values.span()));
  EXPECT_DEATH((void)step.AddToDense(1e6, values.span()), "the same noise for two releases");
  const auto row = ToDevice<uint64_t>({3});
  ASSERT_TRUE(step.AddToRows(1e6, row.span(), 10, values.span()));
  EXPECT_DEATH((void)step.AddToRows(1e6, row.span(), 5, values.span().Sub(0, 5)), "two widths");
  ASSERT_TRUE(step.End());
  EXPECT_DEATH((void)step.key(), "noise without a key");
}

// A captured step reads its key where it lies: each launch has the noise of the key of its time.
TEST_F(StepNoiseTest, GraphDrawsUnderTheKeyOfItsLaunch) {
  if (device_ == nullptr) return;
  KnownKeys keys;
  StepNoise step = MakeStep();
  const auto values = ToDevice(std::vector<int64_t>(50, 0));
  ASSERT_TRUE(step.Begin(keys));
  auto graph = Graph::Capture(*stream_, [&](Stream& stream) -> Status {
    TACIT_RETURN_IF_ERROR(stream.Fill(values.span(), 0));
    return AddGridNoise(stream, step.key(), NoiseQuery::kDense, 1e6, values.span());
  });
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph->Launch(*stream_));
  const auto first = FromDevice(values);
  ASSERT_TRUE(graph->Launch(*stream_));
  EXPECT_EQ(FromDevice(values), first);
  ASSERT_TRUE(step.End());
  ASSERT_TRUE(step.Begin(keys));
  ASSERT_TRUE(graph->Launch(*stream_));
  EXPECT_NE(FromDevice(values), first);
  ASSERT_TRUE(step.End());
}

}  // namespace
}  // namespace tacit::cuda::testing
