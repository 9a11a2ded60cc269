// Rows that come home beside later steps, against the truth under random steps.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "cuda/rows/row_index.h"
#include "unit/cuda/home_rig.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

// Each thread of a kernel is dear under the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kHomeOrders = 1;
constexpr int kHomeSteps = 8;
#else
constexpr uint64_t kHomeOrders = 6;
constexpr int kHomeSteps = 25;
#endif

class HomecomingTest : public OnDevice {};

TEST_F(HomecomingTest, EachDeltaHoldsTheRowsOfItsStepAndNoOthers) {
  if (device_ == nullptr) return;
  const uint64_t seed = std::random_device{}();
  for (uint64_t order = 0; order < kHomeOrders; ++order) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed + order);
    NextOrder(static_cast<int>(order));
    HomeRig rig(*device_, seed + order);
    rig.Run(kHomeSteps);
    EXPECT_GT(rig.findings().checked, 20u * kHomeSteps);
    EXPECT_GT(rig.on_their_way(), kHomeSteps / 5u);
    EXPECT_EQ(rig.findings().wrong(), 0u);
  }
}

TEST_F(HomecomingTest, WhatIsNoNumberIsSeenBeforeTheCommit) {
  if (device_ == nullptr) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float number : {1e18f, -1e18f})
    EXPECT_TRUE(HomeRig(*device_, 2).SettlesAsNumbers(number)) << number;
  HomeRig rig(*device_, 1);
  for (const float number :
       {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 1.1e18f, -1.1e18f})
    EXPECT_FALSE(rig.SettlesAsNumbers(number)) << number;
}

TEST_F(HomecomingTest, OneNumberThatIsNoneIsFoundWhereverItLies) {
  if (device_ == nullptr) return;
  const Buffer<uint32_t> sound = Make<uint32_t>(1);
  for (const size_t n : {1, 127, 128, 2047, 2048, 2049, 5000}) {
    for (const size_t bad : {size_t{0}, n / 2, n - 1, n}) {
      std::vector<float> floats(n, -1e18f);
      if (bad < n) floats[bad] = std::numeric_limits<float>::quiet_NaN();
      const Buffer<float> on_device = ToDevice(floats);
      ASSERT_TRUE(FindNoNumbers(*stream_, on_device.span(), 1e18f, sound.span()));
      EXPECT_EQ(FromDevice(sound)[0] == 0, bad < n) << bad << " of " << n;
    }
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
