// The engine with a cache of rows against the engine with whole tables: the same bits, for any
// size of the cache, and with anything announced, previewed, abandoned or lost on the way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/cuda/device_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using Kind = train::GpuRowOptions::Kind;
using Rows = TrialOptions::Rows;
using Clip = TrialOptions::Clip;

std::vector<uint64_t> RowsThatDiffer(const std::vector<std::vector<float>>& a,
                                     const std::vector<std::vector<float>>& b) {
  std::vector<uint64_t> rows;
  for (uint64_t row = 0; row < a.size(); ++row)
    if (a[row] != b[row]) rows.push_back(row);
  return rows;
}

void ExpectEqualReports(const train::StepReport& got, const train::StepReport& want) {
  EXPECT_EQ(std::vector(got.logits.begin(), got.logits.end()),
            std::vector(want.logits.begin(), want.logits.end()));
  EXPECT_EQ(got.loss_sum, want.loss_sum);
  EXPECT_EQ(got.examples, want.examples);
  EXPECT_EQ(got.rows_touched, want.rows_touched);
  EXPECT_EQ(got.rows_written, want.rows_written);
  EXPECT_EQ(got.row_floats_written, want.row_floats_written);
  EXPECT_EQ(got.units_clipped, want.units_clipped);
}

struct Life {
  int steps = 6;
  uint32_t examples_max = 2, chunk_examples = 64;
  int crashes_one_in = 0;  // steps; 0: never
};

class CachedEngineTest : public OnDevice {
 protected:
  static constexpr uint32_t kUnits = 40;

  // Two engines take the same steps.
  void Compare(TrialOptions options, uint64_t cache_bytes, const Life& life) {
    SCOPED_TRACE(fmt::format("{} bytes of cache", cache_bytes));
    options.large = true;
    DeviceTrial whole(*device_, options, life.chunk_examples, {.kind = Kind::kWhole});
    DeviceTrial cached(*device_, options, life.chunk_examples,
                       {.kind = Kind::kCache, .cache_bytes = cache_bytes});
    std::mt19937_64 random(cache_bytes + 5);
    const auto make = [&] {
      auto made =
          RandomStep(whole.space(), 2, random() % 5 == 0 ? 0 : kUnits, life.examples_max, random);
      if (random() % 2) made.number = stream::NewStepNumber();
      return made;
    };
    auto before = whole.rows().All();
    cached.TakeMarked();
    whole.TakeMarked();
    stream::StepBatch next = make(), abandoned, never_taken;
    for (int step = 0; step < life.steps; ++step) {
      SCOPED_TRACE(fmt::format("step {}", step));
      const auto batch = std::move(next);
      next = make();
      // Whole tables let a step begin that was announced, and may be another one than comes.
      never_taken = make();
      for (DeviceTrial* trial : {&cached, &whole})
        if (random() % 4 != 0) trial->engine().Announce(random() % 4 != 0 ? next : never_taken);
      ExpectEqualReports(cached.StepOnly(batch), whole.StepOnly(batch));
      if (random() % 3 == 0) {
        const auto other = random() % 2 ? make() : next;
        train::StepReport got, want;
        ASSERT_TRUE(cached.engine().Predict(other, &got));
        ASSERT_TRUE(whole.engine().Predict(other, &want));
        ExpectEqualReports(got, want);
      }
      if (random() % 4 == 0) {  // begun, and abandoned
        abandoned = make();
        ASSERT_TRUE(cached.engine().Begin(abandoned));
        ASSERT_TRUE(whole.engine().Begin(abandoned));
      }
      if (life.crashes_one_in > 0 && random() % static_cast<uint64_t>(life.crashes_one_in) == 0) {
        cached.Crash();
        whole.Crash();
        before = whole.rows().All();
        cached.TakeMarked();
        whole.TakeMarked();
        continue;
      }
      if (step + 1 < life.steps && random() % 2) continue;
      cached.Commit();
      whole.Commit();
      const auto after = whole.rows().All();
      ASSERT_EQ(RowsThatDiffer(cached.rows().All(), after), std::vector<uint64_t>());
      ASSERT_EQ(cached.engine().dense().parameters, whole.engine().dense().parameters);
      ASSERT_EQ(cached.engine().dense().optimizer, whole.engine().dense().optimizer);
      // Noised rows alone went home, and all of them.
      const auto written = RowsThatDiffer(before, after);
      const auto marked = cached.TakeMarked();
      EXPECT_EQ(std::vector(marked.begin(), marked.end()), written);
      EXPECT_EQ(whole.TakeMarked(), marked);
      before = after;
    }
  }
  void CompareSmallest(const TrialOptions& options, const Life& life = {}) {
    if (device_ != nullptr) Compare(options, 1, life);
  }
  void CompareAtAnySize(const TrialOptions& options, const Life& life = {}) {
    if (device_ == nullptr) return;
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{40'000}, uint64_t{1} << 30})
      Compare(options, bytes, life);
  }
};

TEST_F(CachedEngineTest, ThresholdRows) { CompareAtAnySize({.threshold = 1}, {.steps = 10}); }
TEST_F(CachedEngineTest, VocabularyRows) { CompareAtAnySize({.rows = Rows::kVocabulary}); }
TEST_F(CachedEngineTest, ThresholdRowsInsideAVocabulary) {
  CompareAtAnySize({.rows = Rows::kThresholdInside, .threshold = 1});
}
TEST_F(CachedEngineTest, ClipPerLayerInChunks) {
  CompareSmallest({.clip = Clip::kPerLayer, .threshold = 1},
                  {.examples_max = 3, .chunk_examples = 9});
}
TEST_F(CachedEngineTest, AutomaticClipInBf16) {
  CompareSmallest({.clip = Clip::kAutomatic, .precision = ops::Precision::kBf16, .threshold = 1});
}
TEST_F(CachedEngineTest, Adagrad) { CompareSmallest({.optimizer = "adagrad", .threshold = 1}); }
TEST_F(CachedEngineTest, Adam) { CompareSmallest({.optimizer = "adam", .threshold = 1}); }
TEST_F(CachedEngineTest, LazyAdamWithAverage) {
  CompareSmallest({.optimizer = "adam", .lazy = true, .average_decay = 0.9, .threshold = 1});
}
TEST_F(CachedEngineTest, CorrectedAdam) {
  CompareSmallest({.rows = Rows::kVocabulary, .optimizer = "adam-bc"});
}
TEST_F(CachedEngineTest, StepsOfMoreRowsThanPlaces) {
  if (device_ == nullptr) return;
  // Nearly all rows of the large tables in a step, and one bucket for each width.
  Compare({.threshold = 1}, 1, {.steps = 4, .examples_max = 12, .chunk_examples = 50});
}
TEST_F(CachedEngineTest, ProcessesThatEndWithoutAWarning) {
  CompareAtAnySize({.optimizer = "adam", .threshold = 1}, {.steps = 12, .crashes_one_in = 3});
}

TEST_F(CachedEngineTest, BitsDoNotDependOnTheOrderOfTurns) {
  if (device_ == nullptr) return;
  const TrialOptions options{.threshold = 1, .large = true};
  std::vector<std::vector<float>> first;
  for (int order = 0; order < std::min(Orders(), 8); ++order) {
    NextOrder(order);
    DeviceTrial trial(*device_, options, 64, {.kind = Kind::kCache, .cache_bytes = 1});
    std::mt19937_64 random(21);
    auto next = RandomStep(trial.space(), 2, 40, 2, random);
    for (int step = 0; step < 3; ++step) {
      const auto batch = std::move(next);
      next = RandomStep(trial.space(), 2, 40, 2, random);
      trial.engine().Announce(next);
      trial.StepOnly(batch);
    }
    trial.Settle();
    auto got = trial.rows().All();
    got.push_back(trial.engine().dense().parameters);
    if (order == 0) first = got;
    ASSERT_EQ(got, first) << "order " << order;
  }
}

TEST_F(CachedEngineTest, TablesThatFitAreWholeAndOthersAreCached) {
  if (device_ == nullptr) return;
  // Whole tables take every row there; a cache what steps ask for. Either sends home what was
  // written, and nothing else.
  std::mt19937_64 random(3);
  DeviceTrial fits(*device_, {.large = true}, 64);
  EXPECT_EQ(fits.TakeGathered().size(), fits.space().rows());
  fits.Step(RandomStep(fits.space(), 2, 5, 1, random));
  const auto written = fits.TakeMarked().size();
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, fits.space().rows());
  DeviceTrial cached(*device_, {.large = true}, 64, {.kind = Kind::kCache});
  cached.Step(RandomStep(cached.space(), 2, 5, 1, random));
  EXPECT_LT(cached.TakeGathered().size(), cached.space().rows());
}

TEST_F(CachedEngineTest, RefusesACacheForAMechanismThatWritesEveryRow) {
  if (device_ == nullptr) return;
  const TrialOptions options{.rows = Rows::kEvery};
  const auto click = TrialLearner(options);
  WorkerPool workers{WorkerPool::Options{}};
  const auto backend = ops::MakeReferenceBackend();
  TrialRows rows(click, *backend, workers);
  EngineNoise noise(1);
  const auto mechanism = MakeTrialMechanism(click.model.space, options);
  const auto engine = MakeDeviceClickEngine(
      *device_, {.click = {click.model, click.optimizer}, .rows = {.kind = Kind::kCache}},
      *mechanism, noise, rows.rows(),
      train::InitialDense(click, model::Pctr(click.model, *backend)));
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kRefused);
  EXPECT_NE(engine.error().message.find("a cache cannot hold them"), std::string::npos)
      << engine.error().message;
}

}  // namespace
}  // namespace tacit::cuda::testing
