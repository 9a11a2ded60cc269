// The emulated device alone can ask this of the sequence engine: failures at every call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "cuda/learn/sequence_engine.h"
#include "cuda/replayed_noise.h"
#include "cuda/trial_device.h"
#include "model/sequence/unit_rows.h"
#include "train/sequence/sequence_stepper.h"

namespace tacit::cuda::testing {
namespace {

class OneUnit final : public model::SequenceUnits {
 public:
  explicit OneUnit(const model::SequenceOptions& options) : options_(options) {}
  size_t units() const override { return 1; }
  uint64_t Id(size_t) const override { return 1; }
  size_t Cost(size_t) const override { return 4; }
  void Rows(size_t, uint64_t coins, model::UnitRows* rows) const override {
    const std::vector<uint32_t> history = {1, 2, 0, 3};
    CutCrops(options_, history, coins, rows);
  }

 private:
  const model::SequenceOptions options_;
};

train::SequenceTrainingOptions Training() {
  train::SequenceTrainingOptions training;
  training.model.catalogue = 5;
  training.model.length = 3;
  training.model.width = 4;
  training.model.blocks = 1;
  training.expected_batch = 1;
  training.optimizer.kind = train::OptimizerNamed("adam");
  training.privacy.sigma = 1;
  return training;
}

// A step; the failure, if any, of whichever call failed.
Status StepOnce(ops::Backend& backend) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  const auto training = Training();
  train::SequenceStepper stepper(training, privacy::Draw{}, backend,
                                 std::make_unique<EngineNoise>(9));
  TACIT_ASSIGN(auto engine, MakeDeviceSequenceEngine(*device, {.sequence = stepper.EngineOptions()},
                                                     *stepper.noise()));
  stepper.UseEngine(std::move(engine));
  const std::vector<float> before(stepper.parameters().begin(), stepper.parameters().end());
  train::SequenceStepReport report;
  const Status stepped = stepper.Step(OneUnit(training.model), &report);
  // A step that failed has released nothing.
  const bool same = std::ranges::equal(before, stepper.parameters());
  EXPECT_EQ(same, !stepped);
  return stepped;
}

TEST(SequenceEngineFailures, EveryCallMayFailAndNothingIsLeaked) {
  const auto backend = ops::MakeReferenceBackend();
  emulated::Reset();
  const Status whole = StepOnce(*backend);
  ASSERT_TRUE(whole) << whole.error().message;
  for (const auto& [name, use] : emulated::Kernels()) {
    EXPECT_GE(use.threads_per_block_min, 64u) << name;
    EXPECT_EQ(use.threads_per_block_min % 32, 0u) << name;
  }
  const uint64_t calls = emulated::Calls();
  ASSERT_GT(calls, 100u);
  // The first call asks for the driver's version, for messages alone; the last one is a
  // destructor's wait.
  for (uint64_t n = 2; n < calls; ++n) {
    emulated::Reset();
    emulated::FailCall(n, n % 2 ? code::kMemoryAllocation : code::kLaunchFailure);
    const Status failed = StepOnce(*backend);
    ASSERT_FALSE(failed) << fmt::format("call {} of {}", n, calls);
    EXPECT_NE(failed.error().message, "");
    EXPECT_EQ(emulated::BytesTaken(), 0u) << fmt::format("call {}", n);
  }
  emulated::Reset();
}

}  // namespace
}  // namespace tacit::cuda::testing
