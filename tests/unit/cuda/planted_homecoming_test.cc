// Faults of rows that come home beside later steps are found by what their test compares.
#include <gtest/gtest.h>

#include <string>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "unit/cuda/home_rig.h"
#include "unit/cuda/planted_rows.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class PlantedHomecoming : public OnDevice {
 protected:
  ~PlantedHomecoming() override { PlantInHomecoming(CacheFault::kNone); }

  HomeFindings Find(CacheFault fault, bool loses_a_flag = false) {
    PlantInHomecoming(fault);
    HomeRig rig(*device_, 4, [] { PackNow(); });
    if (loses_a_flag) rig.LoseAFlag();
    rig.Run(20);
    PlantInHomecoming(CacheFault::kNone);
    EXPECT_GT(rig.on_their_way(), 5u);
    return rig.findings();
  }
};

TEST_F(PlantedHomecoming, NothingIsFoundWhereNothingIsPlanted) {
  const HomeFindings found = Find(CacheFault::kNone);
  EXPECT_GT(found.checked, 500u);
  EXPECT_EQ(found.wrong(), 0u);
}
TEST_F(PlantedHomecoming, ARowThatIsLeftOutIsFound) {
  EXPECT_GT(Find(CacheFault::kNone, true).left_out, 5u);
}
TEST_F(PlantedHomecoming, ARowOfTheNextStepIsFound) {
  EXPECT_GT(Find(CacheFault::kPacksLate).wrong_rows, 5u);
}
#if !defined(__SANITIZE_THREAD__)  // which ends the process at the race
TEST(PlantedHomecomingDeath, ARowThatIsReadBeforeItIsThereIsFound) {
  // Pinned memory that nothing has come to has 0xCD in every byte: no row ascends there.
  const auto run = [] {
    const auto device = OpenTrialDevice();
    PlantInMover(CacheFault::kTakesUnarrived);
    HomeRig(*device, 4).Run(20);
  };
  EXPECT_DEATH(run(), "rows ascend");
}
#endif

// The device is lost at the n-th call that brings the rows, for every n.
TEST(HomecomingLost, RowsDoNotArriveWhereverTheDeviceIsLost) {
  uint64_t call = 1;
  for (; call < 100; ++call) {
    emulated::Reset();
    NextOrder(0);
    const auto device = OpenDevice(0);
    ASSERT_TRUE(device);
    HomeRig rig(**device, call);
    const Status arrived =
        rig.ArriveBehind([&] { emulated::FailCall(call, code::kEccUncorrectable); });
    if (arrived) break;
    EXPECT_NE(arrived.error().message.find("cudaErrorECCUncorrectable"), std::string::npos)
        << arrived.error().message;
  }
  EXPECT_GT(call, 4u) << "two copies and a wait, at least";
  EXPECT_LT(call, 100u);
  emulated::Reset();
}

// A device without memory for a second copy of the rows sends them home within the commit.
TEST(HomecomingWithoutRoom, SendsRowsHomeAtOnce) {
  uint64_t on_their_way = 0, commits_without = 0;
  for (const uint64_t kib : {29, 32, 40, 64, 4096}) {
    emulated::Reset({.memory_bytes = kib << 10});
    NextOrder(0);
    const auto device = OpenDevice(0);
    ASSERT_TRUE(device);
    HomeRig rig(**device, kib);
    rig.Run(10);
    EXPECT_EQ(rig.findings().wrong(), 0u) << kib << " KiB";
    on_their_way += rig.on_their_way();
    commits_without += 10 - rig.on_their_way();
  }
  EXPECT_GT(on_their_way, 10u);
  EXPECT_GT(commits_without, 10u);
  emulated::Reset();
}

}  // namespace
}  // namespace tacit::cuda::testing
