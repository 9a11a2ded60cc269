// The adversary of sums in floats (tests/audit/float_sum.h) against the device's kernels.
#include "audit/float_sum.h"

#include <gtest/gtest.h>

#include "cuda/learn/device_backend.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda {
namespace {

TEST(FloatSumOnADevice, ARecordMovesItByAClipAtMost) {
  auto backend = MakeDeviceBackend(testing::OpenTrialDevice());
  ASSERT_TRUE(backend);
  using ops::Precision;
  for (const audit::FloatSumCase& attacked :
       {audit::FloatSumCase{.offsets = 512},
        {.offsets = 512, .precision = Precision::kBf16},
        {.offsets = 512, .hidden = {8, 4}, .precision = Precision::kBf16, .carrier_rank = 2}}) {
    const double moved = audit::MostMoved(attacked, **backend);
    EXPECT_LE(moved, 1) << attacked.offsets;
    EXPECT_GT(moved, 0.95) << attacked.offsets;
  }
}

}  // namespace
}  // namespace tacit::cuda
