// Engines whose steps have a planned size: they take the memory of such steps when they are made,
// as much as is planned and no more than such steps ask for, and none later. A larger step takes
// more, and fails only where there is none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/device/emulated.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/noise/noise_check.h"
#include "cuda/kernels/rows/finish.h"
#include "cuda/learn/engine_need.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/logged_by.h"
#include "unit/cuda/sequence_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using Kind = train::GpuRowOptions::Kind;
using Rows = TrialOptions::Rows;

// Every call for memory fails while one of these is there.
class NoMemory {
 public:
  NoMemory() { emulated::RefuseMemory(true); }
  ~NoMemory() { emulated::RefuseMemory(false); }
};

uint64_t OnDeviceTaken() { return emulated::BytesTaken() - emulated::PinnedBytesTaken(); }

struct PlannedTrial {
  TrialOptions trial;
  train::GpuRowOptions rows;
  uint32_t units = 11, examples_max = 1, chunk_examples = 64;
};

// The largest steps of RandomStep: three rows a slot.
train::GpuStepSizes SizesOf(const PlannedTrial& one) {
  const RowSpace space = TrialModel(ops::Precision::kF32, one.trial.large).space;
  const uint64_t slots = space.tables().size(), examples = one.units * one.examples_max;
  const bool every = one.trial.rows == Rows::kEvery;
  const bool vocabulary =
      one.trial.rows == Rows::kVocabulary || one.trial.rows == Rows::kThresholdInside;
  return {.examples = examples,
          .entries = examples * slots * 3,
          .unit_entries = one.examples_max * slots * 3,
          // Tables are small, and thresholds low: all rows may pass by noise alone.
          .extra_rows = every ? 0 : space.rows(),
          .vocabulary_rows = vocabulary ? (space.rows() + 1) / 3 : 0,
          .lists_written = !every,
          .slots = slots,
          .dense_width = 2};
}

DeviceTrial MakeTrial(Device& device, const PlannedTrial& one, const train::GpuStepSizes& planned) {
  return DeviceTrial(device, one.trial, one.chunk_examples, one.rows, true, {}, planned);
}

class StepMemory : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    // So that all of the device's memory is an engine's.
    stream_.reset();
  }
};

// Takes steps of all kinds without a call for memory, the last of the full size.
void TakeSteps(DeviceTrial& trial, const PlannedTrial& one, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto some = [&](uint32_t units) {
    auto step = RandomStep(trial.space(), 2, units, one.examples_max, random);
    step.number = random() % 2 ? stream::NewStepNumber() : 0;
    return step;
  };
  stream::StepBatch step = some(one.units);
  const NoMemory none;
  train::StepReport report;
  for (int i = 0; i < 8; ++i) {
    SCOPED_TRACE(fmt::format("step {}", i));
    const stream::StepBatch next = some(i == 6 ? one.units : random() % (one.units + 1));
    if (random() % 2) trial.engine().Announce(next);
    if (random() % 3 == 0) {
      const Status predicted = trial.engine().Predict(some(one.units), &report);
      ASSERT_TRUE(predicted) << predicted.error().message;
    }
    if (random() % 3 == 0) {
      ASSERT_TRUE(trial.engine().Begin(some(one.units)));
    }
    const Status begun = trial.engine().Begin(step);
    ASSERT_TRUE(begun) << begun.error().message;
    const Status released = trial.engine().Release(&report);
    ASSERT_TRUE(released) << released.error().message;
    if (random() % 2) trial.Commit();
    step = next;
  }
}

TEST_F(StepMemory, ClickStepsOfThePlannedSizeTakeNone) {
  for (const Rows rows : {Rows::kThreshold, Rows::kEvery, Rows::kVocabulary, Rows::kThresholdInside,
                          Rows::kTouched}) {
    for (const PlannedTrial& one :
         {PlannedTrial{{.rows = rows}, {.kind = Kind::kWhole}},
          PlannedTrial{{.rows = rows, .optimizer = "adam"}, {.kind = Kind::kWhole}, 9, 3, 5},
          PlannedTrial{{.rows = rows, .large = true}, {.kind = Kind::kCache, .cache_bytes = 1}, 60},
          PlannedTrial{{.rows = rows, .large = true}, {.kind = Kind::kCache}, 9, 3, 5},
          PlannedTrial{{.rows = rows, .precision = ops::Precision::kBf16, .large = true},
                       {.kind = Kind::kCache, .cache_bytes = 60'000},
                       40}}) {
      if (rows == Rows::kEvery && one.rows.kind == Kind::kCache) continue;
      SCOPED_TRACE(fmt::format("rows {}, {} {}, {} units, {} each, chunks of {}",
                               static_cast<int>(rows), static_cast<int>(one.rows.kind),
                               one.rows.cache_bytes, one.units, one.examples_max,
                               one.chunk_examples));
      device_ = OpenTrialDevice();
      const auto free = device_->FreeBytes();
      ASSERT_TRUE(free);
      DeviceTrial trial = MakeTrial(*device_, one, SizesOf(one));
      const auto need =
          NeedOfClickEngine(device_->facts(), trial.on_device(), rows == Rows::kEvery, *free);
      ASSERT_TRUE(need);
      EXPECT_EQ(OnDeviceTaken(), need->all());
      LoggedBy([&] { TakeSteps(trial, one, 3); });
      // After a failure an engine must not be used again.
      if (HasFatalFailure()) return;
    }
  }
}

// Steps of distinct rows by turns, each fetched while the one before it fills the buckets: most of
// a step's rows are guests then.
TEST_F(StepMemory, ACacheHasRoomForStepsOfGuests) {
  const PlannedTrial one{
      {.rows = Rows::kTouched, .large = true}, {.kind = Kind::kCache, .cache_bytes = 1}, 60};
  train::GpuStepSizes sizes = SizesOf(one);
  sizes.extra_rows = 0;
  DeviceTrial trial = MakeTrial(*device_, one, sizes);
  std::mt19937_64 random(2);
  const auto make = [&](uint64_t turn) {
    stream::StepBatch step = RandomStep(trial.space(), 2, one.units, 1, random);
    event::Batch& batch = step.examples;
    batch.row.clear();
    for (size_t cell = 0; cell < batch.slot_end.size(); ++cell) {
      const RowSpace::Table& table = trial.space().tables()[cell % batch.slots];
      const uint64_t example = cell / batch.slots;
      for (uint64_t i = 0; i < 3; ++i)
        batch.row.push_back(table.first + (3 * (one.units * turn + example) + i) % table.rows);
      batch.slot_end[cell] = static_cast<uint32_t>(batch.row.size());
    }
    return step;
  };
  stream::StepBatch step = make(0);
  const NoMemory none;
  for (uint64_t turn = 1; turn < 6; ++turn) {
    const stream::StepBatch next = make(turn);
    trial.engine().Announce(next);
    train::StepReport report;
    const Status begun = trial.engine().Begin(step);
    ASSERT_TRUE(begun) << begun.error().message;
    const Status released = trial.engine().Release(&report);
    ASSERT_TRUE(released) << released.error().message;
    step = next;
  }
}

// The plan holds what its largest step asks for: an engine without a plan has as much in the end.
TEST_F(StepMemory, APlanTakesNoMoreThanTheLargestClickStep) {
  for (const auto& [rows, chunk] : {std::pair{Rows::kThreshold, 64u},
                                    {Rows::kThreshold, 5u},
                                    {Rows::kTouched, 64u},
                                    {Rows::kEvery, 64u}}) {
    SCOPED_TRACE(fmt::format("rows {}, chunks of {}", static_cast<int>(rows), chunk));
    const PlannedTrial one{{.rows = rows, .threshold = 1e6}, {.kind = Kind::kWhole}, 16, 1, chunk};
    train::GpuStepSizes sizes = SizesOf(one);
    sizes.extra_rows = 0;
    std::mt19937_64 random(3);
    const RowSpace space = TrialModel(ops::Precision::kF32).space;
    stream::StepBatch step = RandomStep(space, 2, 16, 1, random);
    std::vector<uint64_t>& rows_of_step = step.examples.row;
    rows_of_step.clear();
    for (size_t cell = 0; cell < step.examples.slot_end.size(); ++cell) {
      rows_of_step.insert(rows_of_step.end(), 3, space.tables()[cell % step.examples.slots].first);
      step.examples.slot_end[cell] = static_cast<uint32_t>(rows_of_step.size());
    }
    uint64_t taken[2], pinned[2];
    for (const bool plans : {true, false}) {
      device_ = OpenTrialDevice();
      DeviceTrial trial = MakeTrial(*device_, one, plans ? sizes : train::GpuStepSizes{});
      for (int i = 0; i < 3 && !plans; ++i) {
        trial.engine().Announce(step);
        trial.StepOnly(step);
      }
      taken[plans] = OnDeviceTaken(), pinned[plans] = emulated::PinnedBytesTaken();
    }
    // The table of contributions is there for thresholds alone.
    const uint64_t contributions = rows == Rows::kThreshold ? 0 : 64 * sizeof(int64_t);
    if (chunk == 64) {
      EXPECT_EQ(taken[true], taken[false] + contributions);
      EXPECT_EQ(pinned[true], pinned[false]);
      continue;
    }
    // A smaller step in one chunk is filled up, and may have more entries.
    EXPECT_LE(taken[false], taken[true]);
    EXPECT_LE(taken[true], taken[false] + taken[false] / 100);
    EXPECT_LE(pinned[false], pinned[true]);
    EXPECT_LE(pinned[true], pinned[false] + pinned[false] / 50);
  }
}

TEST_F(StepMemory, ALargerClickStepTakesMoreAndSaysSoOnce) {
  const PlannedTrial one{{}, {.kind = Kind::kCache}};
  DeviceTrial planned = MakeTrial(*device_, one, SizesOf(one));
  DeviceTrial free = MakeTrial(*device_, one, {});
  std::mt19937_64 random(5);
  const auto run = [&](uint32_t units, int steps) {
    for (int i = 0; i < steps; ++i) {
      const auto step = RandomStep(planned.space(), 2, units, 1, random);
      const auto got = planned.Step(step).loss_sum;
      EXPECT_EQ(got, free.Step(step).loss_sum);
    }
    EXPECT_EQ(planned.rows().All(), free.rows().All());
  };
  EXPECT_EQ(LoggedBy([&] { run(11, 3); }), "");
  const std::string told = LoggedBy([&] { run(40, 1), run(60, 1), run(11, 1); });
  const size_t first = told.find("a step is larger than those for which memory was taken");
  EXPECT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find("a step is larger", first + 1), std::string::npos) << told;
  EXPECT_NE(told.find("of up to 11 examples with 99 rows"), std::string::npos) << told;

  const auto step = RandomStep(planned.space(), 2, 200, 1, random);
  const NoMemory none;
  const Status begun = planned.engine().Begin(step);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::kUnavailable) << begun.error().message;
}

class SequenceStepMemory : public SequenceTrial {
 protected:
  void SetUp() override {
    SequenceTrial::SetUp();
    stream_.reset();
  }
  std::unique_ptr<train::SequenceStepper> Make(const train::SequenceTrainingOptions& training,
                                               const train::SequenceStepSizes& planned,
                                               uint32_t wave_positions) {
    auto stepper = std::make_unique<train::SequenceStepper>(training, privacy::Draw{}, *backend_,
                                                            std::make_unique<EngineNoise>(9));
    options_ = {.sequence = stepper->EngineOptions(), .wave_positions = wave_positions};
    options_.sequence.planned = planned;
    auto engine = MakeDeviceSequenceEngine(*device_, options_, *stepper->noise());
    EXPECT_TRUE(engine) << engine.error().message;
    if (engine) stepper->UseEngine(std::move(*engine));
    return stepper;
  }
  static void Take(train::SequenceStepper& stepper, const Units& units) {
    train::SequenceStepReport report;
    const Status taken = stepper.Step(units, &report);
    ASSERT_TRUE(taken) << taken.error().message;
  }

  DeviceSequenceOptions options_;
};

// Users whose windows are all full.
Units FullUnits(const SequenceOptions& model, uint32_t users) {
  Units units(model, users, 1);
  for (auto& history : units.histories()) {
    history.resize(1 + size_t{model.crops} * model.length);
    for (size_t i = 0; i < history.size(); ++i)
      history[i] = static_cast<uint32_t>(i % model.catalogue);
  }
  return units;
}

constexpr uint32_t kUsers = 4;

struct SequenceCase {
  const char* name;
  std::function<void(train::SequenceTrainingOptions*)> change;
  uint32_t wave_positions = 1000;
};
std::vector<SequenceCase> SequenceCases() {
  using Norm = SequenceOptions::Norm;
  using Options = train::SequenceTrainingOptions;
  return {
      {"post", [](Options*) {}},
      {"post in waves", [](Options*) {}, 20},
      {"waves of a user", [](Options*) {}, 3},
      {"pre", [](Options* o) { o->model.norm = Norm::kPre; }},
      {"dropout", [](Options* o) { o->model.dropout = 0.3f; }},
      {"untied with bias, last position",
       [](Options* o) {
         o->model.tied = false;
         o->model.item_bias = o->model.last_position_only = true;
       }},
      {"mask", [](Options* o) { o->model.mask_seen = true; }, 20},
      {"corrected", [](Options* o) { *o = CorrectedTraining(o->model); }, 20},
      {"corrected, pre",
       [](Options* o) {
         o->model.norm = Norm::kPre;
         *o = CorrectedTraining(o->model);
       }},
      {"corrected, one block",
       [](Options* o) {
         o->model.blocks = 1;
         *o = CorrectedTraining(o->model);
       }},
  };
}

TEST_F(SequenceStepMemory, StepsOfThePlannedSizeTakeNoneAndThePlanNoMore) {
  for (const SequenceCase& one : SequenceCases()) {
    for (const auto precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
      SCOPED_TRACE(fmt::format("{} {}", one.name, static_cast<int>(precision)));
      auto training = Training(SmallModel());
      training.model.precision = precision;
      one.change(&training);
      device_ = OpenTrialDevice();
      uint64_t planned = 0;
      {
        const auto stepper = Make(training, {.units = kUsers}, one.wave_positions);
        planned = OnDeviceTaken();
        EXPECT_EQ(std::max(planned, NoiseCheckBytesMost(1)),
                  NeedOfSequenceEngine(device_->facts(), options_).all());
        const NoMemory none;
        for (const uint32_t users : {kUsers, 0u})
          if (!HasFatalFailure()) Take(*stepper, Units(training.model, users, users));
        if (!HasFatalFailure()) Take(*stepper, FullUnits(training.model, kUsers));
        if (HasFatalFailure()) return;
        // Pinned memory has the waves, and parameters with the optimiser's state on their way home.
        ASSERT_TRUE(stepper->Settle());
        const uint64_t pinned =
            train::GpuWavesPinnedBytes(
                train::LargestGpuWave(training.model, kUsers, one.wave_positions)) +
            sizeof(float) * (stepper->parameters().size() + stepper->optimizer_state().size());
        constexpr uint64_t kSmall = sizeof(NoiseKey) + sizeof(OptimizerRule);
        EXPECT_LE(emulated::PinnedBytesTaken(), pinned + kSmall);
        EXPECT_LE(pinned, emulated::PinnedBytesTaken());
      }
      const auto stepper = Make(training, {}, one.wave_positions);
      Take(*stepper, FullUnits(training.model, kUsers));
      // Users whose histories have one item are there without a row: only they fill a wave of few
      // positions up to as many users.
      if (one.wave_positions == 1000) {
        EXPECT_EQ(OnDeviceTaken(), planned);
      } else {
        EXPECT_LE(OnDeviceTaken(), planned);
      }
    }
  }
}

TEST_F(SequenceStepMemory, AStartsLogitsArePlanned) {
  const SequenceOptions model = SmallModel();
  auto training = Training(model);
  model::ItemLogits each(model.catalogue);
  model::DecayedLogits table(model.catalogue, 0.6);
  for (const bool has_table : {false, true}) {
    training.prior = has_table ? static_cast<const model::LogitPrior*>(&table) : &each;
    device_ = OpenTrialDevice();
    const auto stepper =
        Make(training,
             {.units = kUsers, .prior_has_each = !has_table, .prior_has_table = has_table}, 1000);
    EXPECT_EQ(std::max(OnDeviceTaken(), NoiseCheckBytesMost(1)),
              NeedOfSequenceEngine(device_->facts(), options_).all());
    const NoMemory none;
    Take(*stepper, FullUnits(model, kUsers));
    each.Set(Logits(model.catalogue, 3));
    table.Set(Logits(size_t{model.catalogue} * model.catalogue, 3));
    Take(*stepper, FullUnits(model, kUsers));
  }
}

TEST_F(SequenceStepMemory, ALargerStepTakesMoreAndSaysSoOnce) {
  const auto training = Training(SmallModel());
  const auto planned = Make(training, {.units = 2}, 1000), free = Make(training, {}, 1000);
  EXPECT_EQ(LoggedBy([&] {
              Take(*planned, FullUnits(training.model, 2));
              Take(*free, FullUnits(training.model, 2));
            }),
            "");
  const std::string told = LoggedBy([&] {
    for (const uint32_t users : {3u, 4u}) {
      Take(*planned, FullUnits(training.model, users));
      Take(*free, FullUnits(training.model, users));
    }
  });
  const size_t first = told.find("of up to 2 users");
  EXPECT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find("of up to", first + 1), std::string::npos) << told;
  EXPECT_EQ(StateOf(*planned), StateOf(*free));
  const NoMemory none;
  EXPECT_FALSE(planned->GradientOf(FullUnits(training.model, 9)));
}

}  // namespace
}  // namespace tacit::cuda::testing
