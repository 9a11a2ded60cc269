// The memory of a device that learners take at their start, as the emulated device counts it,
// beside what is planned before a store is opened: a device of exactly that size has room, and one
// that is smaller has none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/learn/gpu.h"
#include "unit/config/sample.h"
#include "unit/cuda/home_rig.h"
#include "unit/cuda/sequence_trial.h"
#include "wiring/assembly.h"

namespace tacit::cuda::testing {
namespace {

struct Started {
  train::GpuNeed need;
  bool planned = false, made = false;
  uint64_t taken = 0;  // on the device
  std::string why;
};

// Plans the first learner's start on a device with so much memory, which it hands out in such
// pieces, and makes it there.
Started StartOn(const wiring::Assembly& assembly, const train::GpuOptions& options,
                uint64_t memory_bytes, uint64_t piece_bytes = 1) {
  emulated::Reset({.memory_bytes = memory_bytes, .memory_piece_bytes = piece_bytes});
  const auto gpu = OpenGpu(options);
  EXPECT_TRUE(gpu);
  const wiring::ModelPlan& model = *assembly.learners.at(0).model;
  EXPECT_EQ(model.WhyNotOnGpu(), "");
  Started started;
  const auto free = (*gpu)->FreeBytes();
  EXPECT_TRUE(free);
  if (const auto start = model.StartOnGpu(**gpu, *free)) {
    started.planned = true;
    started.need = start->need;
  }
  const LearnerRig rig(model, **gpu);
  started.made = rig.learner.has_value();
  if (!rig.learner) started.why = rig.learner.error().message;
  started.taken = emulated::BytesTaken() - emulated::PinnedBytesTaken();
  return started;
}

wiring::Assembly Small(const std::vector<std::string>& more) {
  std::vector<std::string> settings = {"memory.total_bytes=8GiB", "learners.0.model.hidden=[4,3]",
                                       "schema.features.1.buckets=3000"};
  settings.insert(settings.end(), more.begin(), more.end());
  const auto config = config::Parse(config::kSample, "c.yaml", settings);
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return *std::move(assembly);
}

constexpr uint64_t kPlenty = uint64_t{1} << 30;

using Kind = train::GpuRowOptions::Kind;
struct Case {
  const char *mechanism, *optimizer, *compute;
  train::GpuRowOptions rows;
};

constexpr char kSome[] = "{kind: adafest, threshold: 1000}", kEvery[] = "{kind: dp-sgd}";

TEST(EngineNeed, ADeviceThatHasWhatIsPlannedMakesTheEngineAndASmallerOneDoesNot) {
  for (const Case& one :
       {Case{kSome, "adam", "f32", {Kind::kWhole}}, Case{kSome, "sgd", "bf16", {Kind::kWhole}},
        Case{kEvery, "adam", "f32", {Kind::kWhole}}, Case{kEvery, "adagrad", "bf16", {Kind::kAuto}},
        Case{kSome, "adam", "f32", {Kind::kCache, 40'000}},
        Case{kSome, "sgd", "f32", {Kind::kCache, 1}}, Case{kSome, "adam", "f32", {Kind::kAuto}},
        Case{kSome, "adam", "bf16", {Kind::kCache}}}) {
    SCOPED_TRACE(fmt::format("{} {} {} {} {}", one.mechanism, one.optimizer, one.compute,
                             static_cast<int>(one.rows.kind), one.rows.cache_bytes));
    const wiring::Assembly assembly =
        Small({fmt::format("learners.0.mechanism={}", one.mechanism),
               fmt::format("learners.0.optimizer.kind={}", one.optimizer),
               fmt::format("learners.0.model.compute={}", one.compute)});
    const Started plenty = StartOn(assembly, {.rows = one.rows}, kPlenty);
    ASSERT_TRUE(plenty.made) << plenty.why;
    EXPECT_EQ(plenty.taken, plenty.need.all());
    // Rows of automatic sizes take a share of what is there, so each device has a plan of its own.
    const uint64_t most = plenty.need.all();
    size_t enough = 0, less = 0;
    for (const uint64_t bytes :
         {most, most - 1, most - plenty.need.rows / 3, most - plenty.need.rows / 3 * 2,
          plenty.need.rest, plenty.need.rest - 1, most + most / 4, 2 * most}) {
      const Started started = StartOn(assembly, {.rows = one.rows}, bytes);
      const bool has_room = started.planned && started.need.all() <= bytes;
      EXPECT_EQ(started.made, has_room) << bytes << ": " << started.why;
      if (has_room) {
        EXPECT_EQ(started.taken, started.need.all()) << bytes;
      }
      ++(has_room ? enough : less);
    }
    EXPECT_GT(enough, 0u);
    EXPECT_GT(less, 0u);
    if (one.rows.kind == Kind::kWhole || one.rows.cache_bytes > 0) {
      EXPECT_TRUE(StartOn(assembly, {.rows = one.rows}, most).made);
      EXPECT_FALSE(StartOn(assembly, {.rows = one.rows}, most - 1).made);
    }
  }
  emulated::Reset();
}

// A device that hands out its memory in pieces has them all counted.
TEST(EngineNeed, EachBufferIsPlannedInWholePieces) {
  constexpr uint64_t kPieces[] = {1, 512, 4096, 2 << 20};
  for (const Case& one :
       {Case{kSome, "adam", "f32", {Kind::kWhole}}, Case{kEvery, "adagrad", "bf16", {Kind::kWhole}},
        Case{kSome, "adam", "f32", {Kind::kCache, 40'000}}}) {
    SCOPED_TRACE(fmt::format("{} {}", one.mechanism, static_cast<int>(one.rows.kind)));
    const wiring::Assembly assembly =
        Small({fmt::format("learners.0.mechanism={}", one.mechanism),
               fmt::format("learners.0.optimizer.kind={}", one.optimizer),
               fmt::format("learners.0.model.compute={}", one.compute)});
    uint64_t before = 0;
    for (const uint64_t piece : kPieces) {
      SCOPED_TRACE(piece);
      const Started plenty = StartOn(assembly, {.rows = one.rows}, kPlenty, piece);
      ASSERT_TRUE(plenty.made) << plenty.why;
      const uint64_t most = plenty.need.all();
      EXPECT_EQ(plenty.taken, most);
      EXPECT_EQ(most % piece, 0u);
      EXPECT_GT(most, before);
      before = most;
      EXPECT_TRUE(StartOn(assembly, {.rows = one.rows}, most, piece).made);
      EXPECT_FALSE(StartOn(assembly, {.rows = one.rows}, most - 1, piece).made);
    }
  }
  emulated::Reset();
}

// Makes a sequence model's engine on a device with so much memory, and loads it. Says whether that
// goes, and what it takes.
bool LoadsOn(const train::SequenceStepper& stepper, uint64_t memory_bytes, uint64_t* taken) {
  emulated::Reset({.memory_bytes = memory_bytes});
  const auto gpu = OpenGpu({});
  EXPECT_TRUE(gpu);
  EngineNoise noise(9);
  const train::SequenceEngineOptions options = stepper.EngineOptions();
  const auto engine = (*gpu)->MakeSequenceEngine(options, noise);
  if (!engine) return false;
  const size_t parameters = stepper.parameters().size();
  const std::vector<float> state(train::Optimizer(options.optimizer).DenseStateFloats(parameters));
  const bool loaded = (*engine)->Load(stepper.parameters(), state).has_value();
  *taken = emulated::BytesTaken() - emulated::PinnedBytesTaken();
  return loaded;
}

TEST(EngineNeed, ASequenceModelIsLoadedWhereItsPlanHasRoomAndNotInLess) {
  const auto backend = ops::MakeReferenceBackend();
  for (const char* optimizer : {"sgd", "adam", "adam-bc"}) {
    SCOPED_TRACE(optimizer);
    SequenceOptions model = SmallModel();
    model.catalogue = 1000;
    auto training = Training(model);
    training.optimizer.kind = train::OptimizerNamed(optimizer);
    const train::SequenceStepper stepper(training, privacy::Draw{}, *backend,
                                         std::make_unique<EngineNoise>(9));
    emulated::Reset();
    uint64_t need = 0, taken = 0;
    {
      const auto gpu = OpenGpu({});
      ASSERT_TRUE(gpu);
      need = (*gpu)->SequenceEngineNeed(stepper.EngineOptions()).all();
    }
    EXPECT_TRUE(LoadsOn(stepper, need, &taken));
    EXPECT_EQ(taken, need);
    EXPECT_FALSE(LoadsOn(stepper, need - 1, &taken));
  }
  emulated::Reset();
}

// A device numbers fewer rows and items than a processor: more are refused before a store is
// opened.
TEST(EngineNeed, MoreRowsOrItemsThanADeviceCountsAreRefused) {
  const wiring::Assembly assembly = Small({"schema.features.1.buckets=4294967296"});
  emulated::Reset({.memory_bytes = kPlenty, .memory_piece_bytes = 1});
  const auto gpu = OpenGpu({.rows = {Kind::kCache}});
  ASSERT_TRUE(gpu);
  const auto start = assembly.learners.at(0).model->StartOnGpu(**gpu, kPlenty);
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().code, ErrorCode::kRefused);
  EXPECT_NE(start.error().message.find("have no form for a GPU"), std::string::npos)
      << start.error().message;

  train::SequenceEngineOptions options;
  options.model.catalogue = train::kEngineItemsMost;
  EXPECT_EQ(train::WhyNotOnEngine(options), "");
  ++options.model.catalogue;
  EXPECT_EQ(train::WhyNotOnEngine(options),
            "a catalogue of more than 8,388,480 items has no form for a GPU");
}

}  // namespace
}  // namespace tacit::cuda::testing
