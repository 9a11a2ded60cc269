// The product's kernels are launched with whole warps at work, at least two of them.
#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/kernels/noise/noise_check.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using Launches = OnDevice;

TEST_F(Launches, HaveBlocksOfManyThreads) {
  ASSERT_TRUE(CheckNoise(*stream_));
  ASSERT_EQ(emulated::Kernels().size(), 3u);
  for (const auto& [name, use] : emulated::Kernels()) {
    EXPECT_GE(use.threads_per_block_min, 64u) << name;
    EXPECT_EQ(use.threads_per_block_min % 32, 0u) << name;
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
