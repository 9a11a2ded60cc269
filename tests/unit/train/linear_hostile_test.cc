// The linear click model on what a stream may bring at its worst: hardly any events, one label, one
// value, a column that says nothing, values that come once or come back. Noise is real.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/auc.h"
#include "model/linear/row.h"
#include "support/fixed_noise.h"
#include "support/scoped_variable.h"
#include "support/silent_noise.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;

constexpr size_t kPeriodEvents = 20'000;
constexpr double kSigma = 1;

// One value a column, and a label.
struct Seen {
  std::vector<uint64_t> values;
  float label = 0;
};

// A learner of columns with these numbers of values.
class Learnt {
 public:
  explicit Learnt(const std::vector<uint64_t>& sizes, uint64_t whole_column_most = 1 << 20)
      : columns_(std::make_shared<const linear::Columns>(Named(sizes),
                                                         std::vector<linear::NumberColumn>())),
        rows_(LinearRowLayout(*columns_)),
        whole_column_most_(whole_column_most),
        learner_(Begin()) {}

  // Another process goes on with what the store has of this one, and draws its noise from this key.
  void GoOn(uint8_t key) {
    const auto released = learner_->TakeReleased();
    learner_ = Begin(key);
    if (released) {
      EXPECT_TRUE(learner_->LoadReleased(*released));
    }
  }

  // Learns a period; every number of the model stays one.
  StepReport Step(const std::vector<Seen>& events) {
    StepReport report;
    const std::atomic<bool> go_on = false;
    const auto taken = learner_->TakeStep(StepOf(events), go_on, &report);
    EXPECT_TRUE(taken && *taken);
    EXPECT_TRUE(*learner_->GivesNumbers());
    return report;
  }
  // Learns a period in a store where the weight of a value is infinite, and returns the new state.
  std::shared_ptr<const std::string> StepWithoutNumbers(const std::vector<Seen>& events,
                                                        size_t column, uint64_t value) {
    const uint64_t row = columns_->space().tables()[column].first + value;
    float* floats = nullptr;
    EXPECT_TRUE(rows_.Gather({&row, 1}, {&floats, 1}));
    floats[linear::kWeight] = std::numeric_limits<float>::infinity();
    StepReport report;
    const std::atomic<bool> go_on = false;
    const auto taken = learner_->TakeStep(StepOf(events), go_on, &report);
    EXPECT_TRUE(taken && *taken);
    EXPECT_FALSE(*learner_->GivesNumbers());
    return learner_->TakeReleased();
  }
  std::vector<float> Logits(const std::vector<Seen>& events) {
    StepReport report;
    EXPECT_TRUE(learner_->Preview(StepOf(events), &report));
    return {report.logits.begin(), report.logits.end()};
  }
  double MeanPrediction(const std::vector<Seen>& events) {
    double sum = 0;
    for (const float logit : Logits(events)) sum += 1 / (1 + std::exp(-double{logit}));
    return sum / static_cast<double>(events.size());
  }
  double Weight(size_t column, uint64_t value) {
    const uint64_t row = columns_->space().tables()[column].first + value;
    float* floats = nullptr;
    EXPECT_TRUE(rows_.Gather({&row, 1}, {&floats, 1}));
    return floats[linear::kWeight];
  }
  const linear::State& state() const { return learner_->state(); }
  const linear::Columns& columns() const { return *columns_; }

 private:
  static std::vector<linear::CategoryColumn> Named(const std::vector<uint64_t>& sizes) {
    std::vector<linear::CategoryColumn> columns;
    for (const uint64_t size : sizes)
      columns.push_back({.name = "c" + std::to_string(columns.size()), .rows = size});
    return columns;
  }
  stream::StepBatch StepOf(const std::vector<Seen>& events) const {
    stream::StepBatch step;
    event::Batch& batch = step.examples;
    batch.slots = static_cast<uint32_t>(columns_->size());
    for (const Seen& event : events) {
      batch.label.push_back(event.label);
      for (size_t c = 0; c < event.values.size(); ++c) {
        batch.row.push_back(columns_->space().tables()[c].first + event.values[c]);
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
      step.unit_of.push_back(step.units++);
    }
    return step;
  }

  // `key`: the noise is the same in every run.
  std::unique_ptr<LinearLearner> Begin(std::optional<uint8_t> key = std::nullopt) {
    std::unique_ptr<noise::NoiseSource> noise;
    if (key) {
      noise = std::make_unique<noise::LastingNoise>(*key);
    } else {
      noise = std::make_unique<noise::FixedNoise>(11);
    }
    return std::make_unique<LinearLearner>(
        LinearLearnerOptions{.id = "sums",
                             .index = LearnerIndex(0),
                             .columns = columns_,
                             .update = {},
                             .noise_multiplier = kSigma,
                             .whole_column_most = whole_column_most_},
        std::move(noise), rows_, workers_);
  }

  const std::shared_ptr<const linear::Columns> columns_;
  MemoryRows rows_;
  WorkerPool workers_{{.workers = 2}};
  const uint64_t whole_column_most_;
  std::unique_ptr<LinearLearner> learner_;
};

// Draws labels: clicks have this probability.
class Labels {
 public:
  float operator()(double probability) { return coin_(random_) < probability ? 1 : 0; }
  uint64_t Value(uint64_t values) { return random_() % values; }

 private:
  std::mt19937_64 random_{5};
  std::uniform_real_distribution<double> coin_;
};

TEST(LinearHostile, PeriodsOfOneEventMoveNothingFar) {
  Learnt learnt({50, 8});
  for (int period = 0; period < 100; ++period) learnt.Step({{{7, 3}, 1}});
  // A hundred clicks on one value are less than the noise of a hundred releases.
  const std::vector<Seen> asked = {{{7, 3}, 0}, {{8, 4}, 0}};
  for (const float logit : learnt.Logits(asked)) EXPECT_LT(std::abs(logit), 2);
}

TEST(LinearHostile, OneLabelAloneIsPredictedAndForgotten) {
  Learnt learnt({50, 8});
  Labels draw;
  const auto all = [&](float label) {
    std::vector<Seen> events;
    for (size_t i = 0; i < kPeriodEvents; ++i)
      events.push_back({{draw.Value(50), draw.Value(8)}, label});
    return events;
  };
  for (int period = 0; period < 10; ++period) learnt.Step(all(1));
  EXPECT_GT(learnt.MeanPrediction(all(1)), 0.95);
  for (const float logit : learnt.Logits(all(1))) ASSERT_LT(std::abs(logit), 30);
  for (int period = 0; period < 10; ++period) learnt.Step(all(0));
  EXPECT_LT(learnt.MeanPrediction(all(0)), 0.05);
}

TEST(LinearHostile, AColumnOfOneValueIsTheClickRate) {
  Learnt learnt({1});
  Labels draw;
  std::vector<Seen> events;
  for (size_t i = 0; i < kPeriodEvents; ++i) events.push_back({{0}, draw(0.2)});
  for (int period = 0; period < 5; ++period) learnt.Step(events);
  EXPECT_NEAR(learnt.MeanPrediction(events), 0.2, 0.01);
}

TEST(LinearHostile, AColumnThatIsConstantTakesNothingFromTheOthers) {
  Learnt with({1, 20}), without({20});
  Labels draw;
  std::vector<float> labels;
  std::vector<Seen> both, one;
  for (int period = 0; period < 5; ++period) {
    both.clear();
    one.clear();
    labels.clear();
    for (size_t i = 0; i < kPeriodEvents; ++i) {
      const uint64_t value = draw.Value(20);
      labels.push_back(draw(value < 5 ? 0.4 : 0.1));
      both.push_back({{0, value}, labels.back()});
      one.push_back({{value}, labels.back()});
    }
    with.Step(both);
    without.Step(one);
  }
  EXPECT_NEAR(ExactAuc(with.Logits(both), labels), ExactAuc(without.Logits(one), labels), 0.01);
  const double rate =
      std::accumulate(labels.begin(), labels.end(), 0.0) / static_cast<double>(labels.size());
  EXPECT_NEAR(with.MeanPrediction(both), rate, 0.03 * rate);
}

// A value is away for a hundred periods, and means the opposite when it is back.
TEST(LinearHostile, AValueThatReturnsIsLearntAnew) {
  Learnt learnt({10});
  Labels draw;
  const auto period = [&](bool there, double its_rate) {
    std::vector<Seen> events;
    for (size_t i = 0; i < kPeriodEvents; ++i) {
      const uint64_t value = there ? draw.Value(10) : 1 + draw.Value(9);
      events.push_back({{value}, draw(value == 0 ? its_rate : 0.5)});
    }
    return events;
  };
  const std::vector<Seen> asked = {{{0}, 0}};
  for (int i = 0; i < 8; ++i) learnt.Step(period(true, 0.9));
  EXPECT_GT(learnt.MeanPrediction(asked), 0.75);
  for (int i = 0; i < 100; ++i) learnt.Step(period(false, 0));
  const double away = learnt.MeanPrediction(asked);
  EXPECT_GT(away, 0.2) << "noise alone does not carry it off";
  // Residuals are cut, and the rate of learning, which fell while there was nothing but noise to
  // learn, rises by an eighth a period.
  int periods = 0;
  for (; learnt.MeanPrediction(asked) > 0.3 && periods < 150; ++periods)
    learnt.Step(period(true, 0.1));
  EXPECT_LT(periods, 150);
}

// A million values, each of one event, in a table of a hundred million: the release does not grow
// with them, and the columns beside them learn as without.
TEST(LinearHostile, AMillionValuesOfOneEventEachAreNothing) {
  constexpr uint64_t kSingle = 1'000'000;
  Learnt with({100'000'000, 20}, 1 << 10), without({20}, 1 << 10);
  Labels draw;
  std::vector<float> labels;
  std::vector<Seen> both, one;
  for (uint64_t i = 0; i < kSingle; ++i) {
    const uint64_t value = draw.Value(20);
    const float label = draw(value < 5 ? 0.4 : 0.1);
    both.push_back({{97 * i, value}, label});
    one.push_back({{value}, label});
    labels.push_back(label);
  }
  const StepReport report = with.Step(both);
  without.Step(one);
  EXPECT_LE(report.rows_written, 20 + 30u) << "5.5 deviations are seldom";
  EXPECT_NEAR(ExactAuc(with.Logits(both), labels), ExactAuc(without.Logits(one), labels), 0.005);
}

// The rows of such a period are not committed. A state that was would belong to other rows, and the
// columns' variances in it are no numbers, which no start accepts.
TEST(LinearHostile, AModelThatIsNoNumbersIsNoState) {
  Learnt learnt({20});
  Labels draw;
  std::vector<Seen> events;
  for (size_t i = 0; i < kPeriodEvents; ++i) events.push_back({{draw.Value(20)}, draw(0.2)});
  learnt.Step(events);
  EXPECT_EQ(learnt.StepWithoutNumbers(events, 0, 3), nullptr);
}

// A store that moves between processors with and without AVX-512 after every period is, bit for
// bit, the one that stays. The noise is real: kernels of both kinds draw it.
TEST(LinearHostile, AStoreThatMovesBetweenProcessorsIsTheSameStore) {
  Learnt stays({50, 3000}, 1 << 10), moves({50, 3000}, 1 << 10);
  Labels draw;
  std::vector<Seen> events(kPeriodEvents);
  for (uint8_t period = 0; period < 6; ++period) {
    for (Seen& event : events) {
      const uint64_t value = draw.Value(50);
      event = {{value, draw.Value(10) * draw.Value(300)}, draw(value < 10 ? 0.4 : 0.1)};
    }
    stays.GoOn(period);
    stays.Step(events);
    const test::ScopedVariable other(
        "TACIT_TEST_NO_AVX512", period % 2 == 0 ? std::optional<std::string>("1") : std::nullopt);
    moves.GoOn(period);
    moves.Step(events);
  }
  EXPECT_EQ(moves.state().Encode(moves.columns()), stays.state().Encode(stays.columns()));
  EXPECT_EQ(moves.Logits(events), stays.Logits(events));
  size_t learnt = 0;
  for (uint64_t value = 0; value < 3000; ++value) {
    ASSERT_EQ(moves.Weight(1, value), stays.Weight(1, value)) << value;
    learnt += stays.Weight(1, value) != 0;
  }
  EXPECT_GT(learnt, 10u);
}

// Loss over a constant's of a third period, whose twelve columns all have the same value.
double EntropyWhereColumnsRepeat(double explained_most) {
  constexpr size_t kRepeats = 12;
  constexpr uint64_t kValues = 16;
  std::mt19937_64 random(5);
  LinearLearnerOptions options;
  options.columns = std::make_shared<const linear::Columns>(
      std::vector<linear::CategoryColumn>(kRepeats, {.name = "c", .rows = kValues}),
      std::vector<linear::NumberColumn>());
  options.update.explained_most = explained_most;
  options.opens = true;
  MemoryRows rows(LinearRowLayout(*options.columns));
  WorkerPool workers({.workers = 2});
  LinearLearner learner(options, std::make_unique<noise::SilentNoise>(), rows, workers);
  StepReport report;
  double clicks = 0;
  const uint64_t periods[] = {500, 10'000, 10'000};
  for (const uint64_t events : periods) {
    stream::StepBatch step;
    step.examples.slots = kRepeats;
    clicks = 0;
    for (uint32_t i = 0; i < events; ++i) {
      const uint64_t value = random() % kValues;
      for (size_t j = 0; j < kRepeats; ++j) {
        step.examples.row.push_back(kValues * j + value);
        step.examples.slot_end.push_back(static_cast<uint32_t>(step.examples.row.size()));
      }
      const double p = 1 / (1 + std::exp(1.2 - (static_cast<double>(value) - 7.5) / 4));
      step.examples.label.push_back(static_cast<double>(random() % 10'000) < 1e4 * p ? 1 : 0);
      clicks += step.examples.label.back();
      step.unit_of.push_back(i);
    }
    step.units = static_cast<uint32_t>(events);
    const std::atomic<bool> go_on = false;
    EXPECT_TRUE(learner.TakeStep(step, go_on, &report));
  }
  const double rate = clicks / static_cast<double>(report.losses);
  const double constant = -rate * std::log(rate) - (1 - rate) * std::log1p(-rate);
  return report.loss_sum / static_cast<double>(report.losses) / constant;
}

// They explain a label several times over. The first move is the shorter for it; without that rule
// it goes so far that the model is worse than a constant.
TEST(LinearLearner, TheFirstMoveIsShorterWhereColumnsRepeatEachOther) {
  EXPECT_LT(EntropyWhereColumnsRepeat(linear::UpdateOptions().explained_most), 0.9);
  EXPECT_GT(EntropyWhereColumnsRepeat(1e9), 1.1);
}

}  // namespace
}  // namespace tacit::train
