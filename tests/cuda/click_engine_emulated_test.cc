// The emulated device alone can ask these of the engine: launches and failures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "cuda/device_trial.h"
#include "cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

TEST(ClickEngineLaunches, HaveBlocksOfManyThreads) {
  const auto device = OpenTrialDevice();
  using Rows = TrialOptions::Rows;
  std::mt19937_64 random(5);
  for (const Rows rows : {Rows::kThresholdInside, Rows::kEvery}) {
    for (const ops::Precision precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
      DeviceTrial trial(*device, {.rows = rows, .precision = precision}, 64);
      trial.Step(RandomStep(trial.space(), 2, 5, 2, random));
    }
  }
  for (const char* name : {"AddContributions", "AddRowSums", "BoundByRows", "ClaimRows",
                           "FinishDense", "FinishEveryRow", "FinishRows", "Gemm16", "Gemm32",
                           "LinkRepeats", "RankFlags", "RowNorms", "SelectAbove", "UnitScales"})
    EXPECT_TRUE(emulated::Kernels().contains(name)) << name;
  for (const auto& [name, use] : emulated::Kernels()) {
    EXPECT_GE(use.threads_per_block_min, 64u) << name;
    EXPECT_EQ(use.threads_per_block_min % 32, 0u) << name;
  }
}

// One step; the failure, if any, of whichever call failed.
Status StepOnce(TrialRows& rows, const train::ClickOptions& click, const store::DenseState& dense,
                const stream::StepBatch& step) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  const auto mechanism = MakeTrialMechanism(click.model.space, {});
  EngineNoise noise(9);
  TACIT_ASSIGN(const auto engine,
               MakeDeviceClickEngine(
                   *device, {.click = {click.model, click.optimizer}, .chunk_examples = 16},
                   *mechanism, noise, rows.rows(), dense));
  TACIT_RETURN_IF_ERROR(engine->Begin(step));
  train::StepReport report;
  TACIT_RETURN_IF_ERROR(engine->Release(&report));
  return engine->Settle();
}

TEST(ClickEngineFailures, EveryCallMayFailAndNothingIsLeaked) {
  const auto click = TrialLearner({});
  WorkerPool workers{WorkerPool::Options{}};
  const auto backend = ops::MakeReferenceBackend();
  TrialRows rows(click, *backend, workers);
  const store::DenseState dense{.parameters = model::Pctr(click.model, *backend).InitialDense(3),
                                .optimizer = {}};
  std::mt19937_64 random(5);
  const auto step = RandomStep(click.model.space, 2, 4, 1, random);
  emulated::Reset();
  const Status whole = StepOnce(rows, click, dense, step);
  ASSERT_TRUE(whole) << whole.error().message;
  const uint64_t calls = emulated::Calls();
  ASSERT_GT(calls, 100u);
  // The first call asks for the driver's version, for messages alone; the last one is a
  // destructor's wait, after the step was settled.
  for (uint64_t n = 2; n < calls; ++n) {
    emulated::Reset();
    emulated::FailCall(n, n % 2 ? code::kMemoryAllocation : code::kLaunchFailure);
    const Status failed = StepOnce(rows, click, dense, step);
    ASSERT_FALSE(failed) << fmt::format("call {} of {}", n, calls);
    EXPECT_NE(failed.error().message, "");
    EXPECT_EQ(emulated::BytesTaken(), 0u) << fmt::format("call {}", n);
  }
  emulated::Reset();
}

}  // namespace
}  // namespace tacit::cuda::testing
