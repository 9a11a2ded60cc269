// The memory that rows on a device take, as the emulated device counts it, beside what plans say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "cuda/device/emulated.h"
#include "cuda/learn/gpu.h"
#include "store/rows/row_arrival.h"
#include "unit/config/sample.h"
#include "unit/cuda/home_rig.h"
#include "unit/cuda/trial_device.h"
#include "unit/cuda/uploads.h"
#include "wiring/assembly.h"

namespace tacit::cuda::testing {
namespace {

using Writes = WholeRows::Writes;

using Settings = std::vector<std::string>;

// A small model.
wiring::Assembly Planned(const Settings& more) {
  Settings settings = {"memory.total_bytes=8GiB", "learners.0.model.hidden=[4]",
                       "learners.0.participation={mode: once, batch: 40}"};
  settings.insert(settings.end(), more.begin(), more.end());
  const auto config = config::Parse(config::kSample, "c.yaml", settings);
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return *std::move(assembly);
}

store::RowLayout SmallLayout() {
  return Planned({"schema.features.1.buckets=200"}).learners.at(0).model->Rows();
}

// The bytes that a GPU adds to the plan of the host's memory.
uint64_t PinnedByPlan(const Settings& settings) {
  Settings with = settings, without = settings;
  with.push_back("gpu.use=prefer");
  without.push_back("gpu.use=never");
  return Planned(with).memory.model_bytes - Planned(without).memory.model_bytes;
}

// A step of this many examples that have as many rows as an example can have.
stream::StepBatch FullStep(const wiring::Assembly& assembly, uint32_t examples) {
  const RowSpace space = assembly.learners.at(0).model->Rows().space;
  const auto& categorical = assembly.transform->schema().categorical;
  stream::StepBatch step;
  step.units = examples;
  step.examples.dense_width = assembly.transform->schema().dense.size();
  step.examples.slots = categorical.size();
  for (uint32_t i = 0; i < examples; ++i) {
    step.unit_of.push_back(i);
    step.examples.offset.push_back(i);
    step.examples.label.push_back(static_cast<float>(i % 2));
    step.examples.dense.resize((i + 1) * step.examples.dense_width, 0.5f);
    for (size_t slot = 0; slot < categorical.size(); ++slot) {
      const RowSpace::Table& table = space.tables()[slot];
      for (uint32_t v = 0; v < categorical[slot].max_values; ++v)
        step.examples.row.push_back(table.first +
                                    (categorical[slot].max_values * i + v) % table.rows);
      step.examples.slot_end.push_back(static_cast<uint32_t>(step.examples.row.size()));
    }
  }
  return step;
}

// The pinned memory that the learner's engine takes for steps and a commit.
uint64_t PinnedByLearner(const wiring::Assembly& assembly, const train::GpuRowOptions& rows,
                         uint32_t examples) {
  emulated::Reset();
  const auto gpu = OpenGpu({.rows = rows});
  EXPECT_TRUE(gpu);
  const wiring::ModelPlan& model = *assembly.learners.at(0).model;
  LearnerRig rig(model, **gpu);
  EXPECT_TRUE(rig.learner) << rig.learner.error().message;
  const uint64_t taken = emulated::BytesTaken();
  const stream::StepBatch step = FullStep(assembly, examples);
  // Neither steps nor commits take any more; except for the second copy of a commit's rows, which
  // may be had or not.
  emulated::RefuseMemory(true);
  const std::atomic<bool> abandon = false;
  for (int i = 0; i < 3; ++i) {
    train::StepReport report;
    (*rig.learner)->Announce(step);
    EXPECT_TRUE((*rig.learner)->TakeStep(step, abandon, &report));
    EXPECT_TRUE((*rig.learner)->Settle());
    EXPECT_TRUE(store::Arrive(*rig.cache.TakeDelta()));
  }
  EXPECT_EQ(emulated::BytesTaken(), taken);
  return emulated::PinnedBytesTaken();
}

uint64_t StrideOf(const store::RowLayout& layout) {
  uint64_t stride = 1;
  for (uint32_t t = 0; t < layout.space.tables().size(); ++t)
    stride = std::max<uint64_t>(stride, layout.RowFloats(t));
  return stride;
}

struct Taken {
  bool settled = false;
  uint64_t on_device = 0, pinned = 0;
};

// Whole tables, all rows of which are written and go home, on a machine with so much memory.
Taken Take(const store::RowLayout& layout, uint64_t memory_bytes, Writes writes) {
  emulated::Reset({.memory_bytes = memory_bytes});
  const auto device = OpenDevice(0);
  EXPECT_TRUE(device);
  HomeStore store(layout);
  store::RowCache cache(layout, 1 << 24, store);
  Stream stream = MakeStream(**device);
  const auto whole = WholeRows::Make(stream, layout.space, layout.state_floats, writes, cache);
  if (!whole) return {};
  if (writes == Writes::kSomeRows) {
    EXPECT_TRUE(stream.Fill((*whole)->view().changed, 1));
  }
  Taken taken{.settled = (*whole)->Settle().has_value()};
  taken.pinned = emulated::PinnedBytesTaken();
  taken.on_device = emulated::BytesTaken() - taken.pinned;
  if (taken.settled) {
    const auto delta = cache.TakeDelta();
    EXPECT_TRUE(store::Arrive(*delta));
    EXPECT_EQ(delta->size(), layout.space.rows());
  }
  return taken;
}

// The least memory by the plan is enough, and all of it is taken; a byte less is not.
TEST(RowsMemory, WholeTablesTakeWhatTheirPlanSays) {
  const store::RowLayout layout = SmallLayout();
  for (const Writes writes : {Writes::kSomeRows, Writes::kEveryRow}) {
    const uint64_t plan = WholeRows::Bytes(layout.space, layout.state_floats, writes, 1);
    const Taken taken = Take(layout, plan, writes);
    EXPECT_TRUE(taken.settled);
    EXPECT_EQ(taken.on_device, plan);
    EXPECT_FALSE(Take(layout, plan - 1, writes).settled);
  }
  emulated::Reset();
}

TEST(RowsMemory, PinnedMemoryOfTheWayHomeIsWhatItsPlanSays) {
  const store::RowLayout layout = SmallLayout();
  const uint64_t least = WholeRows::Bytes(layout.space, layout.state_floats, Writes::kSomeRows, 1);
  const uint64_t plan = store::ArrivalPinnedBytes(layout.space.rows(), StrideOf(layout));
  EXPECT_EQ(Take(layout, least, Writes::kSomeRows).pinned, plan);
  EXPECT_EQ(Take(layout, 64 * least, Writes::kSomeRows).pinned, plan);
  EXPECT_EQ(Take(layout, least, Writes::kEveryRow).pinned, 0u);
  emulated::Reset();
}

// All that a learner takes is planned, and little else.
TEST(RowsMemory, PinnedMemoryOfALearnerIsInThePlanOfTheHosts) {
  using Kind = train::GpuRowOptions::Kind;
  constexpr uint64_t kSmall = 1024;
  struct Case {
    const char* mechanism;
    const char* optimizer;
    const char* rows;
    Kind kind;
    const char* steps;
    uint32_t examples;  // of the largest step
  };
  constexpr char kSome[] = "{kind: adafest, threshold: 1000}", kEvery[] = "{kind: dp-sgd}";
  constexpr char kFew[] = "{mode: once, batch: 40}", kMore[] = "{mode: once, batch: 100}";
  // All of a period may come into a step.
  constexpr char kByChance[] =
      "{mode: poisson, batch: 40, sampling_rate: 0.5, steps_per_period: 2, period: 80}";
  for (const Case& one : {Case{kSome, "adam", "whole", Kind::kWhole, kFew, 40},
                          {kSome, "sgd", "cache", Kind::kCache, kFew, 40},
                          {kSome, "adam", "cache", Kind::kCache, kMore, 100},
                          {kSome, "adam", "cache", Kind::kCache, kByChance, 80},
                          {kEvery, "adam", "whole", Kind::kWhole, kFew, 40}}) {
    SCOPED_TRACE(fmt::format("{}, {}, {}, {}", one.mechanism, one.optimizer, one.rows, one.steps));
    const Settings settings = {fmt::format("learners.0.mechanism={}", one.mechanism),
                               fmt::format("learners.0.optimizer.kind={}", one.optimizer),
                               fmt::format("learners.0.participation={}", one.steps),
                               fmt::format("gpu.rows={}", one.rows)};
    const uint64_t plan = PinnedByPlan(settings);
    const uint64_t taken = PinnedByLearner(Planned(settings), {.kind = one.kind}, one.examples);
    EXPECT_LE(taken, plan);
    EXPECT_LE(plan, taken + taken / 8 + kSmall);
  }
  emulated::Reset();
}

// A piece of 2^20 floats at most, and the numbers of its rows.
TEST(RowsMemory, PinnedMemoryOfLargeTablesIsThatOfAPiece) {
  constexpr uint64_t kPieces = 3 * (uint64_t{4} << 20);
  for (const char* buckets : {"300000", "3000000", "30000000"}) {
    const uint64_t plan = PinnedByPlan({fmt::format("schema.features.1.buckets={}", buckets),
                                        "learners.0.mechanism.threshold=1000"});
    EXPECT_GT(plan, kPieces - 2000) << buckets;
    EXPECT_LT(plan, kPieces + 100'000) << buckets;
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
