// The emulated device alone can ask this of the sequence engine: failures at every call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "cuda/learn/sequence_engine.h"
#include "model/sequence/unit_rows.h"
#include "train/sequence/sequence_stepper.h"
#include "unit/cuda/replayed_noise.h"
#include "unit/cuda/trial_device.h"

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
    CutCrops(options_, history, 0, coins, rows);
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

// A step; the failure, if any, of the call that failed.
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
  // Work that fails behind the step fails here.
  if (stepped) TACIT_RETURN_IF_ERROR(stepper.Settle());
  // A step that failed has released nothing.
  const bool same = std::ranges::equal(before, stepper.parameters());
  EXPECT_EQ(same, !stepped);
  return stepped;
}

// A step in bf16 of two blocks puts this on the device, for any size: no loop behind a product
// but what norms, the softmax and tables are.
TEST(SequenceEngineLaunches, AreFew) {
  emulated::Reset();
  const auto backend = ops::MakeReferenceBackend();
  auto training = Training();
  training.model.blocks = 2;
  training.model.precision = ops::Precision::kBf16;
  const auto device = OpenDevice(0);
  ASSERT_TRUE(device);
  train::SequenceStepper stepper(training, privacy::Draw{}, *backend,
                                 std::make_unique<EngineNoise>(9));
  auto engine =
      MakeDeviceSequenceEngine(**device, {.sequence = stepper.EngineOptions()}, *stepper.noise());
  ASSERT_TRUE(engine);
  stepper.UseEngine(std::move(*engine));
  const auto before = emulated::Kernels();
  train::SequenceStepReport report;
  ASSERT_TRUE(stepper.Step(OneUnit(training.model), &report));
  std::map<std::string, uint64_t> launches;
  uint64_t all = 0;
  for (const auto& [name, use] : emulated::Kernels()) {
    const auto was = before.find(name);
    launches[name] = use.launches - (was == before.end() ? 0 : was->second.launches);
    all += launches[name];
    RecordProperty(name, static_cast<int>(launches[name]));
  }
  RecordProperty("all", static_cast<int>(all));
  EXPECT_EQ(launches["ReluBackward"], 0u);
  EXPECT_EQ(launches["AddMatrix"], 0u);
  EXPECT_EQ(launches["Gemm16AddBiasRound"], 2u);
  EXPECT_EQ(launches["Gemm16Activate"], 2u);
  EXPECT_EQ(launches["Gemm16AddBias"], 4u);  // projections and outer layers
  EXPECT_EQ(launches["Gemm16ReluBackward"], 2u);
  EXPECT_EQ(launches["Gemm16Round"], 2u);
  // Through inner layers and qkv, and the catalogue's logits and states.
  EXPECT_EQ(launches["Gemm16"], 6u);
  // Weights and tables of a step, its first rows, and its states.
  EXPECT_EQ(launches["AddBias"], 9u + 1 + 1);
  EXPECT_LE(all, 75u);
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
