// The emulated device alone can ask these of the engine: launches and failures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "unit/cuda/blas_trial.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/trial_device.h"

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
      if (rows == Rows::kEvery) continue;
      DeviceTrial cached(*device, {.rows = rows, .precision = precision, .threshold = 1}, 64,
                         {.kind = train::GpuRowOptions::Kind::kCache});
      cached.Step(RandomStep(trial.space(), 2, 5, 2, random));
    }
  }
  for (const char* name :
       {"AddContributions", "AddPieces",    "AddRowSums",     "BoundByRows", "ClaimRows",
        "FindRows",         "FinishDense",  "FinishEveryRow", "FinishRows",  "Gemm16",
        "Gemm32",           "Gemm16Pieces", "Gemm32Pieces",   "LinkRepeats", "ListChanged",
        "NameMissing",      "PackRows",     "PlaceRows",      "UnpackRows",  "RankFlags",
        "RowNorms",         "SelectAbove",  "UnitScales"})
    EXPECT_TRUE(emulated::Kernels().contains(name)) << name;
  for (const auto& [name, use] : emulated::Kernels()) {
    EXPECT_GE(use.threads_per_block_min, 64u) << name;
    EXPECT_EQ(use.threads_per_block_min % 32, 0u) << name;
  }
}

// Steps, all but the first fetched ahead; the failure, if any, of the call that failed.
Status TakeSteps(store::WorkingRows& rows, const train::ClickOptions& click,
                 const store::DenseState& dense, const std::vector<stream::StepBatch>& steps,
                 const train::GpuRowOptions& memory, const ProductOptions& products = {}) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  const auto mechanism = MakeTrialMechanism(click.model.space, {});
  EngineNoise noise(9);
  TACIT_ASSIGN(const auto engine, MakeDeviceClickEngine(*device,
                                                        {.click = {click.model, click.optimizer},
                                                         .chunk_examples = 16,
                                                         .round_examples = 8,
                                                         .rows = memory,
                                                         .products = products},
                                                        *mechanism, noise, rows, dense));
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i + 1 < steps.size()) engine->Announce(steps[i + 1]);
    TACIT_RETURN_IF_ERROR(engine->Begin(steps[i]));
    train::StepReport report;
    TACIT_RETURN_IF_ERROR(engine->Release(&report));
  }
  return engine->Settle();
}

// Makes every call fail in turn; each failure must be told of, unless the work is done all the
// same.
void FailEveryCall(const TrialOptions& options, uint32_t units, int steps_count,
                   const train::GpuRowOptions& memory, const ProductOptions& products = {}) {
  const auto click = TrialLearner(options);
  WorkerPool workers{WorkerPool::Options{}};
  const auto backend = ops::MakeReferenceBackend();
  TrialRows rows(click, *backend, workers);
  const store::DenseState dense{.parameters = model::Pctr(click.model, *backend).InitialDense(3),
                                .optimizer = {}};
  std::mt19937_64 random(5);
  std::vector<stream::StepBatch> steps;
  for (int i = 0; i < steps_count; ++i)
    steps.push_back(RandomStep(click.model.space, 2, units, 1, random));
  // The same step once more has the same launches, which become graphs.
  steps.push_back(steps.back());
  emulated::Reset();
  const Status whole = TakeSteps(rows.rows(), click, dense, steps, memory, products);
  ASSERT_TRUE(whole) << whole.error().message;
  const uint64_t calls = emulated::Calls();
  ASSERT_GT(calls, 100u);
  // The first call asks for the driver's version, for messages alone; the last one is a
  // destructor's wait, after the step was settled.
  int done_without = 0;
  for (uint64_t n = 2; n < calls; ++n) {
    emulated::Reset();
    emulated::FailCall(n, n % 2 ? code::kMemoryAllocation : code::kLaunchFailure);
    const Status failed = TakeSteps(rows.rows(), click, dense, steps, memory, products);
    EXPECT_EQ(emulated::BytesTaken(), 0u) << fmt::format("call {}", n);
    // A second copy of a commit's rows that gets no memory is done without, and nothing else is.
    if (failed) {
      ASSERT_EQ(n % 2, 1u) << fmt::format("call {} of {}", n, calls);
      ASSERT_EQ(++done_without, 1) << fmt::format("call {} of {}", n, calls);
      continue;
    }
    EXPECT_NE(failed.error().message, "");
  }
  emulated::Reset();
}

// The rows that a step has taken to a device with so much memory; none if it does not suffice.
size_t RowsTakenThere(uint64_t memory_bytes) {
  emulated::Reset({.memory_bytes = memory_bytes});
  const TrialOptions options{.optimizer = "adam", .threshold = 1, .large = true};
  const auto click = TrialLearner(options);
  WorkerPool workers{WorkerPool::Options{}};
  const auto backend = ops::MakeReferenceBackend();
  TrialRows rows(click, *backend, workers);
  WatchedRows watched(rows.rows(), rows.layout());
  std::mt19937_64 random(5);
  const std::vector<stream::StepBatch> steps = {RandomStep(click.model.space, 2, 5, 1, random)};
  const bool done =
      TakeSteps(watched, click, train::InitialDense(click, model::Pctr(click.model, *backend)),
                steps, {})
          .has_value();
  return done ? watched.TakeGathered().size() : 0;
}

// Steps of the same sizes are two graphs each, from the third one on nothing else is launched.
TEST(ClickEngineLaunches, BecomeTwoGraphsAStep) {
  for (const auto kind : {train::GpuRowOptions::Kind::kWhole, train::GpuRowOptions::Kind::kCache}) {
    const auto device = OpenTrialDevice();
    std::mt19937_64 random(6);
    DeviceTrial trial(*device, {.threshold = 1}, 64, {.kind = kind});
    const auto one = RandomStep(trial.space(), 2, 5, 2, random);
    const auto launches = [](const char* name) { return emulated::Kernels().at(name).launches; };
    for (int step = 0; step < 5; ++step) {
      trial.StepOnly(one);
      // Plain, then captured, then but launched; dense parameters in two parts.
      EXPECT_EQ(launches("FinishDense"), step == 0 ? 2u : 4u) << "step " << step;
      EXPECT_EQ(launches("GatherSum"), step == 0 ? 1u : 2u) << "step " << step;
    }
  }
}

// Release puts the announced step's passes behind its own work: Begin has nothing left to put
// there.
TEST(ClickEngineLaunches, OfAnAnnouncedStepsPassesComeBeforeItsBegin) {
  using Kind = train::GpuRowOptions::Kind;
  for (const Kind kind : {Kind::kWhole, Kind::kCache}) {
    const auto device = OpenTrialDevice();
    std::mt19937_64 random(6);
    DeviceTrial trial(*device, {.threshold = 1}, 64, {.kind = kind});
    const auto first = RandomStep(trial.space(), 2, 5, 2, random);
    auto next = RandomStep(trial.space(), 2, 5, 2, random);
    next.number = stream::NewStepNumber();
    trial.engine().Announce(next);
    trial.StepOnly(first);
    const uint64_t calls = emulated::Calls();
    ASSERT_TRUE(trial.engine().Begin(next));
    // The thread is bound, and nothing else done. A cache must know first what the step before it
    // has written.
    if (kind == Kind::kWhole) {
      EXPECT_EQ(emulated::Calls(), calls + 1);
    } else {
      EXPECT_GT(emulated::Calls(), calls + 1);
    }
    train::StepReport report;
    ASSERT_TRUE(trial.engine().Release(&report));
    // Once is enough: another Begin of the same step begins anew.
    const uint64_t released = emulated::Calls();
    ASSERT_TRUE(trial.engine().Begin(next));
    EXPECT_GT(emulated::Calls(), released);
  }
}

// The first commit, too.
TEST(ClickEngineMemory, ACommitTakesNone) {
  for (const auto kind : {train::GpuRowOptions::Kind::kWhole, train::GpuRowOptions::Kind::kCache}) {
    const auto device = OpenTrialDevice();
    std::mt19937_64 random(6);
    DeviceTrial trial(*device, {.optimizer = "adam", .average_decay = 0.9, .threshold = 1}, 64,
                      {.kind = kind});
    trial.StepOnly(RandomStep(trial.space(), 2, 5, 2, random));
    emulated::RefuseMemory(true);
    trial.Settle();
    EXPECT_FALSE(trial.TakeMarked().empty());
    emulated::RefuseMemory(false);
  }
}

// A step of one record a unit puts this on the device, beside what brings it there.
TEST(ClickEngineLaunches, AreFew) {
  const auto device = OpenTrialDevice();
  std::mt19937_64 random(7);
  DeviceTrial trial(*device, {.threshold = 1}, 64, {.kind = train::GpuRowOptions::Kind::kWhole});
  const auto one = RandomStep(trial.space(), 2, 5, 1, random);
  const auto launched = [] {
    uint64_t sum = 0;
    for (const auto& [name, use] : emulated::Kernels()) sum += use.launches;
    return sum;
  };
  const uint64_t before = launched();
  trial.StepOnly(one);
  EXPECT_LE(launched() - before, 51u);
}

// In bf16 the products write activations, masked gradients and logits themselves.
TEST(ClickEngineLaunches, AreFewerWhereProductsEndThemselves) {
  const auto device = OpenTrialDevice();
  std::mt19937_64 random(7);
  DeviceTrial trial(*device, {.precision = ops::Precision::kBf16, .threshold = 1}, 64,
                    {.kind = train::GpuRowOptions::Kind::kWhole});
  const auto one = RandomStep(trial.space(), 2, 5, 1, random);
  const auto before = emulated::Kernels();
  trial.StepOnly(one);
  std::map<std::string, uint64_t> launches;
  uint64_t all = 0;
  for (const auto& [name, use] : emulated::Kernels()) {
    launches[name] = use.launches - (before.contains(name) ? before.at(name).launches : 0);
    all += launches[name];
  }
  EXPECT_EQ(launches["Gemm16"], 1u);  // the gradient of the first layer's inputs
  EXPECT_EQ(launches["Gemm16Pieces"], 3u);
  EXPECT_EQ(launches["AddPieces"], 3u);
  EXPECT_EQ(launches["Gemm16Activate"], 2u);
  EXPECT_EQ(launches["Gemm16AddBias"], 1u);
  EXPECT_EQ(launches["Gemm16ReluBackward"], 2u);
  EXPECT_EQ(launches["AddBias"], 1u);  // rounds the logits' gradients
  EXPECT_EQ(launches["ReluBackward"], 0u);
  EXPECT_LE(all, 47u);  // 52 with a loop behind each product
}

TEST(ClickEngineMemory, TablesThatDoNotFitAreCached) {
  const size_t all = TrialModel(ops::Precision::kF32, true).space.rows();
  bool cached = false, whole = false;
  for (uint64_t kib = 64; kib <= 1024 && !whole; kib += 32) {
    const size_t taken = RowsTakenThere(kib << 10);
    whole = taken == all;
    cached |= taken > 0 && taken < all;
  }
  EXPECT_TRUE(cached) << "on a device that is too small for the tables";
  EXPECT_TRUE(whole) << "on a larger one";
  emulated::Reset();
}

TEST(ClickEngineFailures, EveryCallMayFailAndNothingIsLeaked) {
  FailEveryCall({}, 4, 1, {.kind = train::GpuRowOptions::Kind::kWhole});
}
TEST(ClickEngineFailures, EveryCallMayFailWithCachedRows) {
  FailEveryCall({.threshold = 1, .large = true}, 12, 2,
                {.kind = train::GpuRowOptions::Kind::kCache, .cache_bytes = 1});
}

TEST(ClickEngineFailures, EveryCallMayFailWithTheLibrary) {
  const BlasStandIn& library = FreshStandIn();
  FailEveryCall({.precision = ops::Precision::kBf16}, 4, 1,
                {.kind = train::GpuRowOptions::Kind::kWhole}, {.by = train::GpuProducts::kLibrary});
  EXPECT_GT(library.done, 0u);
  EXPECT_EQ(library.handles, 0);
}

}  // namespace
}  // namespace tacit::cuda::testing
