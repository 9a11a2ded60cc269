// A period that is summed in slices, by several threads or by summers of their own, releases what
// one thread would, to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "linear_oracle.h"
#include "model/linear/row.h"
#include "support/fixed_noise.h"
#include "support/flat_sums.h"
#include "support/silent_noise.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"

namespace tacit::train {
namespace {

// A way to learn a test's events. Crosses of more than 100 values are not released whole.
struct Way {
  bool noisy = false, sets = true, weighed = false;
  size_t unit_size = 1;
};

LinearLearnerOptions OptionsOf(double sigma) {
  return {.id = "sums",
          .index = LearnerIndex(0),
          .columns = SomeColumns(/*crossed=*/true),
          .update = {},
          .noise_multiplier = sigma,
          .whole_column_most = 100,
          .threshold_deviations = 2};
}

std::vector<Event> EventsOf(const Way& way, size_t n, std::mt19937_64& random) {
  std::vector<Event> events = RandomEvents(n, random);
  for (Event& event : events) {
    if (!way.sets) event.s = {*event.s.begin()};
    if (way.weighed) event.weight = random() % 5 == 0 ? 4 : 0.5f;  // some are clipped
  }
  return events;
}

template <class Number>
void Append(Number number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// All that leaves four periods in parts: predictions, counts, the released state, the rows. One
// period is too short for a second thread.
std::string LearntBy(size_t threads, const Way& way) {
  const LinearLearnerOptions options = OptionsOf(0.5);
  MemoryRows rows(LinearRowLayout(*options.columns));
  WorkerPool workers({.workers = threads});
  std::unique_ptr<noise::NoiseSource> noise = std::make_unique<noise::SilentNoise>();
  if (way.noisy) noise = std::make_unique<noise::FixedNoise>(3);
  LinearLearner learner(options, std::move(noise), rows, workers);
  std::string learnt;
  StepReport report;
  const auto tell = [&] {
    for (const float logit : report.logits) Append(logit, &learnt);
    for (const uint64_t number : {report.examples, report.earlier_losses, report.rows_touched,
                                  report.rows_written, report.units_clipped})
      Append(number, &learnt);
    Append(report.loss_sum, &learnt);
    Append(report.earlier_loss_sum, &learnt);
  };
  std::mt19937_64 random(5);
  const std::atomic<bool> go_on = false;
  for (int period = 0; period < 4; ++period) {
    const bool is_short = period == 2;
    const std::vector<size_t> parts =
        is_short ? std::vector<size_t>{} : std::vector<size_t>{2100, 3, 513};
    for (const size_t part : parts) {
      stream::StepBatch preview = StepOf(EventsOf(way, part, random), way.unit_size);
      preview.kind = stream::StepBatch::Kind::kPreview;
      EXPECT_TRUE(learner.Preview(preview, &report));
      tell();
      preview.kind = stream::StepBatch::Kind::kHeldOut;
      EXPECT_TRUE(learner.Preview(preview, &report));
      tell();
    }
    const stream::StepBatch step =
        StepOf(EventsOf(way, is_short ? 60 : 1600, random), way.unit_size);
    const auto taken = learner.TakeStep(step, go_on, &report);
    EXPECT_TRUE(taken && *taken);
    EXPECT_EQ(report.units_clipped > 0, way.weighed || way.unit_size > 1);
    tell();
  }
  learnt += *learner.TakeReleased();
  for (uint64_t row = 0; row < options.columns->space().rows(); ++row) {
    float* floats = nullptr;
    EXPECT_TRUE(rows.Gather({&row, 1}, {&floats, 1}));
    learnt.append(reinterpret_cast<const char*>(floats), model::linear::kRowFloats * sizeof(float));
  }
  return learnt;
}

TEST(LinearSlices, AnyNumberOfThreadsReleasesTheSame) {
  for (const Way& way : {Way{}, Way{.noisy = true}, Way{.noisy = true, .sets = false},
                         Way{.noisy = true, .sets = false, .weighed = true},
                         Way{.noisy = true, .sets = false, .unit_size = 3}}) {
    const std::string one = LearntBy(1, way);
    for (const size_t threads : {2, 3, 4})
      EXPECT_TRUE(LearntBy(threads, way) == one)
          << threads << " threads, noise " << way.noisy << ", sets " << way.sets << ", weights "
          << way.weighed << ", units of " << way.unit_size;
  }
}

// A step that is abandoned leaves nothing behind: no sum, and no row that counts as touched.
TEST(LinearSlices, AnAbandonedStepTouchesNothing) {
  for (const size_t threads : {1, 3}) {
    std::mt19937_64 random(6);
    const LinearLearnerOptions options = OptionsOf(0.5);
    WorkerPool workers({.workers = threads});
    std::string learnt[2];
    const std::vector<Event> first = EventsOf({}, 3000, random), second = EventsOf({}, 40, random);
    for (const bool abandons : {false, true}) {
      MemoryRows rows(LinearRowLayout(*options.columns));
      LinearLearner learner(options, std::make_unique<noise::FixedNoise>(4), rows, workers);
      StepReport report;
      const std::atomic<bool> abandon = true, go_on = false;
      if (abandons) {
        EXPECT_FALSE(learner.TakeStep(StepOf(first), abandon, &report).value());
      }
      EXPECT_TRUE(learner.TakeStep(StepOf(second), go_on, &report).value());
      EXPECT_EQ(report.examples, 40u);
      learnt[abandons] = *learner.TakeReleased();
      for (uint64_t row = 0; row < options.columns->space().rows(); ++row) {
        float* floats = nullptr;
        EXPECT_TRUE(rows.Gather({&row, 1}, {&floats, 1}));
        Append(floats[0], &learnt[abandons]);
      }
    }
    EXPECT_TRUE(learnt[0] == learnt[1]) << threads;
  }
}

// Summers of processes of their own, whose parts travel as bytes: units are cut among them at
// random.
TEST(LinearSlices, SummersAddUpToOne) {
  constexpr uint32_t bins = 16;
  const LinearQuery query(OptionsOf(0.5));
  MemoryRows memory(LinearRowLayout(*query.columns));
  LinearRows rows(memory);
  model::linear::State model;
  model.bias = -0.7;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const size_t unit_size = 1 + random() % 4;
    const stream::StepBatch step =
        StepOf(EventsOf({.sets = seed % 2 == 0}, 600 + random() % 900, random), unit_size);
    const size_t examples = step.examples.size();
    std::vector<float> logits(examples), losses(examples), other(examples);
    LinearSummer one(query, rows, bins);
    one.Open({query.sums, query.tables});
    ASSERT_TRUE(one.See(step, 0, examples, model, true, {logits, losses}));
    LinearPart whole = one.Close();
    one.Open({query.sums, query.tables});
    EXPECT_EQ(one.Close().figures.clipped, 0u);

    std::vector<std::string> parts;
    for (size_t begin = 0, end; begin < examples; begin = end) {
      end = std::min(examples, begin + unit_size * (1 + random() % 200));
      LinearSummer summer(query, rows, bins);
      summer.Open({query.sums, query.tables});
      ASSERT_TRUE(summer.See(step, begin, end, model, true, {other, losses}));
      parts.push_back(summer.Close().Encode());
    }
    std::ranges::shuffle(parts, random);
    mechanism::RowSums open(query.sums, query.tables);
    LinearPart all{{query.sums, query.tables}, {}};
    for (const std::string& part : parts) ASSERT_TRUE(all.AddBytes(part, bins, &open));
    all.sums.Add(mechanism::PartialSums(std::move(open)));
    EXPECT_EQ(logits, other);
    EXPECT_EQ(all.figures, whole.figures);
    EXPECT_EQ(all.figures.examples, examples);
    auto noise = noise::FixedNoise(1), same = noise::FixedNoise(1);
    const testing::FlatSums expected = testing::Flat(std::move(whole.sums).Open().Release(noise));
    const testing::FlatSums released = testing::Flat(std::move(all.sums).Open().Release(same));
    EXPECT_EQ(released.rows, expected.rows);
    EXPECT_EQ(released.sums, expected.sums);
    EXPECT_EQ(released.counts, expected.counts);
    EXPECT_EQ(released.numbers, expected.numbers);
  }
}

}  // namespace
}  // namespace tacit::train
