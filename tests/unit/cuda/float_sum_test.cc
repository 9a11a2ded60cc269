// The adversary of sums in floats (tests/audit/float_sum.h) against a device: its engine, and the
// processor's engine with the device's products.
#include "audit/float_sum.h"

#include <gtest/gtest.h>

#include "cuda/learn/click_engine.h"
#include "unit/cuda/device_backend.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda {
namespace {

using audit::FloatSumCase;
using ops::Precision;

class FloatSumInADevice : public testing::OnDevice {
 protected:
  // Its steps are in chunks of several blocks.
  audit::AttackedEngine DeviceEngine() {
    return [this](const audit::EngineParts& parts) {
      auto engine = MakeDeviceClickEngine(*device_,
                                          {.click = parts.options,
                                           .chunk_examples = 512,
                                           .rows = {.kind = train::GpuRowOptions::Kind::kWhole}},
                                          parts.mechanism, parts.noise, parts.rows, parts.dense);
      EXPECT_TRUE(engine) << engine.error().message;
      return std::move(*engine);
    };
  }
};

TEST(FloatSumOnADevice, ARecordMovesItByAClipAtMost) {
  auto backend = MakeDeviceBackend(testing::OpenTrialDevice());
  ASSERT_TRUE(backend);
  for (const FloatSumCase& attacked :
       {FloatSumCase{.offsets = 512},
        {.offsets = 512, .hidden = {8, 4}, .carrier_rank = 2},
        {.offsets = 512, .precision = Precision::kBf16},
        {.offsets = 512, .hidden = {8, 4}, .precision = Precision::kBf16, .carrier_rank = 2}}) {
    const double moved = MostMoved(attacked, audit::HostEngineOn(**backend));
    EXPECT_LE(moved, 1) << attacked.offsets;
    EXPECT_GT(moved, 0.95) << attacked.offsets;
  }
}

TEST_F(FloatSumInADevice, ARecordMovesTheEnginesByAClipAtMost) {
  if (device_ == nullptr) return;
  for (const FloatSumCase& attacked : {FloatSumCase{.offsets = 1024, .hidden = {8, 4}},
                                       {.offsets = 1024, .precision = Precision::kBf16}}) {
    const double moved = MostMoved(attacked, DeviceEngine());
    EXPECT_LE(moved, 1) << attacked.hidden.size();
    EXPECT_GT(moved, 0.95) << attacked.hidden.size();
  }
}

TEST_F(FloatSumInADevice, FindsBlocksOfSoManyRecordsAndAnEngineThatTakesOne) {
  if (device_ == nullptr) return;
  FloatSumCase attacked{.offsets = 4096, .fault = audit::SumFault::kByRecords};
  EXPECT_GT(MostMoved(attacked, DeviceEngine()), 1);
  attacked = {.offsets = 1024, .fault = audit::SumFault::kOneBlock};
  const double in_one = MostMoved(attacked, DeviceEngine());
  attacked.fault = audit::SumFault::kNone;
  EXPECT_LE(in_one, 1);
  EXPECT_NE(in_one, MostMoved(attacked, DeviceEngine()));
}

}  // namespace
}  // namespace tacit::cuda
