// The linear click model in the step loop's hands: each step is what the formulas make of the same
// events, no unit moves what is released by more than the clip, nothing happens in a step that is
// abandoned, and what was committed is gone on from to the last bit.
#include "train/linear/linear_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/auc.h"
#include "linear_oracle.h"
#include "model/linear/row.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"

namespace tacit::train {
namespace {

using model::linear::Columns;
using model::linear::UpdateOptions;

const std::atomic<bool> kGoOn = false;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The learner over rows of its own.
struct Subject {
  explicit Subject(
      double noise_multiplier,
      std::unique_ptr<noise::NoiseSource> noise = std::make_unique<noise::SilentNoise>(),
      uint64_t whole_column_most = 1 << 20, bool crossed = false, bool opens = false,
      size_t threads = 3)
      : workers({.workers = threads}),
        options{.id = "sums",
                .index = LearnerIndex(0),
                .columns = SomeColumns(crossed),
                .update = {},
                .noise_multiplier = noise_multiplier,
                .whole_column_most = whole_column_most,
                .opens = opens},
        rows(LinearRowLayout(*options.columns)),
        learner(std::make_unique<LinearLearner>(options, std::move(noise), rows, workers)) {}

  StepReport Step(const stream::StepBatch& step) {
    StepReport report;
    const auto taken = learner->TakeStep(step, kGoOn, &report);
    EXPECT_TRUE(taken && *taken);
    return report;
  }
  std::vector<float> Predict(const std::vector<Event>& events) {
    StepReport report;
    EXPECT_TRUE(learner->Preview(StepOf(events), &report));
    return {report.logits.begin(), report.logits.end()};
  }
  float* Row(uint64_t row) {
    float* floats = nullptr;
    EXPECT_TRUE(rows.Gather({&row, 1}, {&floats, 1}));
    return floats;
  }

  WorkerPool workers;
  LinearLearnerOptions options;
  MemoryRows rows;
  std::unique_ptr<LinearLearner> learner;
};

// Without noise, and with the weights that noise of this size leaves (the draws themselves silent).
void StepsAreTheOracles(bool sets, bool crossed = false, std::vector<double> sigmas = {0, 0.5, 4},
                        uint64_t whole_column_most = 1 << 20, bool opens = false,
                        bool weights = false) {
  for (const double sigma : sigmas) {
    std::mt19937_64 random(1);
    Subject subject(sigma, std::make_unique<noise::SilentNoise>(), whole_column_most, crossed,
                    opens);
    Oracle oracle(sigma, crossed, opens);
    for (int period = 0; period < 5; ++period) {
      const bool opening = opens && period == 0;
      std::vector<Event> events = RandomEvents(opening ? 300 : 2000 + 500 * period, random);
      for (Event& event : events)
        if (!sets) event.s = {*event.s.begin()};
      for (Event& event : events)
        if (weights) event.weight = static_cast<float>(random() % 5) / 4;
      const StepReport report = subject.Step(StepOf(events));
      ASSERT_EQ(report.logits.size(), events.size());
      EXPECT_EQ(report.examples, events.size());
      EXPECT_EQ(report.units_clipped, 0u);
      for (size_t i = 0; i < events.size(); ++i)
        ASSERT_NEAR(report.logits[i], oracle.Logit(events[i]), 2e-4)
            << "predicted before it is learnt from; sigma " << sigma << ", period " << period;
      oracle.Step(events);
      EXPECT_NEAR(subject.learner->state().rate, oracle.eta, 1e-4);
      EXPECT_NEAR(subject.learner->state().bias, oracle.bias, 1e-4);
    }
    uint64_t moved = 0;
    for (uint64_t row = 0; row < oracle.w.size(); ++row) {
      EXPECT_NEAR(subject.Row(row)[0], oracle.w[row], 1e-4) << row;
      EXPECT_NEAR(subject.Row(row)[1], oracle.P[row], 1e-4) << row;
      EXPECT_NEAR(subject.Row(row)[model::linear::kError], oracle.E[row], 1e-4) << row;
      moved += oracle.last[row] > 0 ? 1 : 0;
    }
    EXPECT_GT(moved, sigma < 4 ? 100u : 20u);
    if (sigma > 3) {
      EXPECT_LT(moved, oracle.w.size()) << "noise hides some";
    }
    EXPECT_NE(oracle.eta, 0.4) << "the line search was asked";
  }
}
TEST(LinearLearner, StepsAreTheOracles) { StepsAreTheOracles(/*sets=*/true); }
// Events of one value for each column have a faster way into the sums.
TEST(LinearLearner, StepsOfSingleValuesAreTheOracles) { StepsAreTheOracles(/*sets=*/false); }

// A short first period sets the bias, and the second one begins with the weights.
TEST(LinearLearner, StepsAfterAnOpeningAreTheOracles) {
  StepsAreTheOracles(/*sets=*/true, /*crossed=*/false, {0, 0.5, 4}, 1 << 20, /*opens=*/true);
}

TEST(LinearLearner, StepsOfWeighedEventsAreTheOracles) {
  for (const bool sets : {false, true})
    StepsAreTheOracles(sets, /*crossed=*/false, {0, 0.5}, 1 << 20, /*opens=*/false,
                       /*weights=*/true);
}

TEST(LinearLearner, AnOpeningMovesTheBiasAlone) {
  std::mt19937_64 random(3);
  Subject subject(0, std::make_unique<noise::SilentNoise>(), 1 << 20, false, /*opens=*/true);
  const auto events = RandomEvents(300, random);
  const StepReport report = subject.Step(StepOf(events));
  EXPECT_EQ(report.rows_written, 0u);
  double clicks = 0;
  for (const Event& event : events) clicks += event.label;
  EXPECT_NEAR(subject.learner->state().bias, std::log(clicks / (300 - clicks)), 1e-4);
  for (const float logit : subject.Predict(RandomEvents(50, random)))
    EXPECT_NEAR(logit, subject.learner->state().bias, 1e-6);
  EXPECT_GT(subject.Step(StepOf(RandomEvents(3000, random))).rows_written, 100u);
}

// Crosses are columns like any other: whole ones, and ones of more values than are released whole,
// which without noise are released as they are.
TEST(LinearLearner, StepsOfCrossedColumnsAreTheOracles) {
  for (const bool sets : {false, true}) {
    SCOPED_TRACE(sets ? "sets" : "one value each");
    StepsAreTheOracles(sets, /*crossed=*/true);
    StepsAreTheOracles(sets, /*crossed=*/true, {0}, /*whole_column_most=*/100);
  }
}

// Writes down the sums that noise is asked for.
class Recorder final : public noise::SilentNoise {
 public:
  explicit Recorder(std::vector<double>* sums) : sums_(sums) {}
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    stddev_ = stddev;
    for (const int64_t value : values) sums_->push_back(static_cast<double>(value));
  }
  double stddev_ = 0;

 private:
  std::vector<double>* const sums_;
};

double Length(const std::vector<double>& vector) {
  double squares = 0;
  for (const double x : vector) squares += x * x;
  return std::sqrt(squares);
}

// Trains a model on some periods, then returns the sums of one more, in units of contributions.
std::vector<double> SumsOf(const std::vector<std::vector<Event>>& before,
                           const stream::StepBatch& step, bool crossed = false) {
  std::vector<double> sums;
  auto recorder = std::make_unique<Recorder>(&sums);
  const Recorder& asked = *recorder;
  Subject subject(1, std::move(recorder), 1 << 20, crossed);
  for (const auto& events : before) subject.Step(StepOf(events));
  sums.clear();
  subject.Step(step);
  EXPECT_EQ(sums.size(), 2 * subject.options.columns->space().rows() + 3);
  const double step_size = Oracle(1, crossed).C / asked.stddev_;
  for (double& sum : sums) sum *= step_size;
  return sums;
}

// A weight shortens a contribution. One beyond 1, which no codec lets through, is clipped.
TEST(LinearLearner, AWeightMovesTheReleaseByTheClipAtMost) {
  std::mt19937_64 random(12);
  const std::vector<std::vector<Event>> before = {RandomEvents(3000, random)};
  std::vector<Event> others = RandomEvents(50, random);
  others[0].weight = 0.5;
  const std::vector<double> without = SumsOf(before, StepOf(others));
  const Event event = RandomEvent(random);
  const auto moved = [&](float weight) {
    std::vector<Event> all = others;
    all.push_back(event);
    all.back().weight = weight;
    std::vector<double> difference = SumsOf(before, StepOf(all));
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= without[i];
    return Length(difference);
  };
  const double whole = moved(1), clip = Oracle(1).C;
  EXPECT_GT(whole, 0.5 * clip);
  EXPECT_LE(whole, clip * (1 + 1e-9));
  EXPECT_NEAR(moved(0.25), whole / 4, 1e-5) << "except for the grid";
  EXPECT_EQ(moved(0), 0);
  EXPECT_LE(moved(5), clip * (1 + 1e-9));
  EXPECT_GT(moved(5), 0.99 * clip);
}

// Any event, with any label, changes what is released by what the formulas say, and by no more than
// the clip. The planted fault divides a set's share by nothing, and is longer.
TEST(LinearLearner, AnEventMovesTheReleaseByTheClipAtMost) {
  std::mt19937_64 random(2);
  const std::vector<std::vector<Event>> before = {RandomEvents(3000, random),
                                                  RandomEvents(3000, random)};
  Oracle oracle(1);
  for (const auto& events : before) oracle.Step(events);
  const std::vector<Event> others = RandomEvents(50, random);
  const std::vector<double> without = SumsOf(before, StepOf(others));
  double longest = 0, longest_undivided = 0;
  for (int trial = 0; trial < 12; ++trial) {
    Event event = RandomEvent(random);
    const float labels[] = {0, 1, 1e30f, -1e30f, kNan, std::numeric_limits<float>::infinity()};
    event.label = labels[trial % 6];
    if (trial == 6) event.n = event.m = kNan;
    std::vector<Event> all = others;
    all.push_back(event);
    std::vector<double> difference = SumsOf(before, StepOf(all));
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= without[i];
    EXPECT_LE(Length(difference), oracle.C * (1 + 1e-9));
    longest = std::max(longest, Length(difference));
    if (!std::isfinite(event.label) || trial == 6) continue;
    std::vector<double> expected = oracle.Contribution(event);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(difference[i], expected[i], 1e-4) << i;
    for (uint64_t row = oracle.first[1]; row < oracle.first[2]; ++row)
      for (const size_t i : {2 * row, 2 * row + 1})
        expected[i] *= std::sqrt(static_cast<double>(event.s.size()));
    longest_undivided = std::max(longest_undivided, Length(expected));
  }
  EXPECT_GT(longest, 0.8 * oracle.C) << "the clip is no larger than it must be";
  EXPECT_GT(longest_undivided, oracle.C);
}

// A cross is paid for: an event adds more than the clip of the columns without crosses allows, and
// no more than theirs with crosses.
TEST(LinearLearner, AnEventOfCrossedColumnsMovesTheReleaseByTheClipAtMost) {
  std::mt19937_64 random(2);
  const std::vector<std::vector<Event>> before = {RandomEvents(3000, random)};
  Oracle oracle(1, /*crossed=*/true);
  for (const auto& events : before) oracle.Step(events);
  const std::vector<Event> others = RandomEvents(50, random);
  const std::vector<double> without = SumsOf(before, StepOf(others), true);
  double longest = 0;
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<Event> all = others;
    all.push_back(RandomEvent(random));
    if (trial % 2 == 0) all.back().s = {*all.back().s.begin()};
    if (trial > 8) all.back().label = 1 - all.back().label;
    std::vector<double> difference = SumsOf(before, StepOf(all), true);
    const std::vector<double> expected = oracle.Contribution(all.back());
    ASSERT_EQ(difference.size(), expected.size());
    for (size_t i = 0; i < difference.size(); ++i) {
      difference[i] -= without[i];
      ASSERT_NEAR(difference[i], expected[i], 1e-4) << i;
    }
    EXPECT_LE(Length(difference), oracle.C * (1 + 1e-9));
    longest = std::max(longest, Length(difference));
  }
  EXPECT_GT(longest, Oracle(1).C);
  EXPECT_DOUBLE_EQ(Subject(1, std::make_unique<noise::SilentNoise>(), 1 << 20, true)
                       .learner->charge()
                       .clip_selection,
                   oracle.C);
}

TEST(LinearLearner, AUserMovesTheReleaseByTheClipAtMost) {
  std::mt19937_64 random(3);
  const std::vector<std::vector<Event>> before = {RandomEvents(3000, random)};
  const std::vector<Event> others = RandomEvents(90, random);
  const std::vector<double> without = SumsOf(before, StepOf(others, 30));
  std::vector<Event> all = others;
  const Event mine = RandomEvent(random);
  all.insert(all.end(), 30, mine);
  std::vector<double> difference = SumsOf(before, StepOf(all, 30));
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= without[i];
  Oracle oracle(1);
  EXPECT_LE(Length(difference), oracle.C * (1 + 1e-9));
  EXPECT_GT(Length(difference), 0.99 * oracle.C) << "thirty equal events are longer than one";

  Subject subject(1);
  EXPECT_EQ(subject.Step(StepOf(all, 30)).units_clipped, 4u);
}

TEST(LinearLearner, APeriodIsChargedAsOneGaussian) {
  const Subject subject(2.5);
  const privacy::Charge charge = subject.learner->charge();
  EXPECT_EQ(charge.mechanism, privacy::MechanismKind::kSums);
  EXPECT_DOUBLE_EQ(charge.MuSquared(), 1 / 6.25);
  EXPECT_DOUBLE_EQ(charge.clip_selection, Oracle(1).C);
  EXPECT_FALSE(Subject(0).learner->charge().Bounded()) << "no noise, no promise";
}

TEST(LinearLearner, AnAbandonedStepDidNotHappen) {
  std::mt19937_64 random(4);
  const auto first = RandomEvents(2000, random), second = RandomEvents(2000, random);
  Subject subject(1), other(1);
  for (Subject* s : {&subject, &other}) s->Step(StepOf(first));
  ASSERT_NE(subject.learner->TakeReleased(), nullptr);
  const std::atomic<bool> abandon = true;
  StepReport report;
  const auto taken = subject.learner->TakeStep(StepOf(second), abandon, &report);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(subject.learner->TakeReleased(), nullptr);
  EXPECT_EQ(subject.Predict(second), other.Predict(second));
  // It is read again, and released once.
  for (Subject* s : {&subject, &other}) s->Step(StepOf(second));
  EXPECT_EQ(subject.Predict(first), other.Predict(first));
}

// A period that a crash cut was never released: its noise is asked for once, by the process after.
TEST(LinearLearner, AStepThatIsLostIsReleasedByTheNextProcess) {
  std::mt19937_64 random(5);
  const auto first = RandomEvents(2000, random), second = RandomEvents(2000, random);
  Subject whole(1);
  whole.Step(StepOf(first));
  const auto state = whole.learner->TakeReleased();
  // A process after a crash has the committed rows and the committed state, and nothing else.
  Subject again(1);
  for (uint64_t row = 0; row < again.options.columns->space().rows(); ++row)
    std::copy_n(whole.Row(row), 4, again.Row(row));
  ASSERT_TRUE(again.learner->LoadReleased(*state));
  EXPECT_EQ(again.learner->TakeReleased(), nullptr) << "it is stored";
  for (Subject* s : {&whole, &again}) s->Step(StepOf(second));
  EXPECT_EQ(whole.Predict(first), again.Predict(first));
  EXPECT_EQ(*whole.learner->TakeReleased(), *again.learner->TakeReleased());
}

stream::StepBatch PreviewOf(const std::vector<Event>& events, stream::StepBatch::Kind kind) {
  stream::StepBatch batch = StepOf(events);
  batch.kind = kind;
  return batch;
}

// A period whose events come in parts is the period, to the last bit; what is held out between them
// is predicted by the same model and leaves nothing. The planted fault takes it for a part.
TEST(LinearLearner, APeriodInPartsIsThePeriod) {
  using Kind = stream::StepBatch::Kind;
  for (const uint64_t whole_column_most : {uint64_t{1} << 20, uint64_t{20}})
    for (const bool fault : {false, true}) {
      std::mt19937_64 random(10);
      Subject whole(0.5, std::make_unique<noise::SilentNoise>(), whole_column_most);
      Subject parts(0.5, std::make_unique<noise::SilentNoise>(), whole_column_most);
      for (int period = 0; period < 3; ++period) {
        const auto events = RandomEvents(4000, random), held_out = RandomEvents(700, random);
        const StepReport of_whole = whole.Step(StepOf(events));
        std::vector<float> logits;
        double loss_sum = 0;
        for (size_t i = 0; i < 3; ++i) {
          const auto begin = events.begin() + static_cast<ptrdiff_t>(1000 * i);
          StepReport report;
          ASSERT_TRUE(
              parts.learner->Preview(PreviewOf({begin, begin + 1000}, Kind::kPreview), &report));
          logits.insert(logits.end(), report.logits.begin(), report.logits.end());
          loss_sum += report.loss_sum;
          ASSERT_TRUE(parts.learner->Preview(
              PreviewOf(held_out, fault ? Kind::kPreview : Kind::kHeldOut), &report));
        }
        const StepReport last = parts.Step(StepOf({events.begin() + 3000, events.end()}));
        logits.insert(logits.end(), last.logits.begin(), last.logits.end());
        if (fault) continue;
        EXPECT_TRUE(std::ranges::equal(logits, of_whole.logits));
        EXPECT_EQ(last.examples, events.size());
        EXPECT_EQ(last.losses + last.earlier_losses, events.size());
        EXPECT_NEAR(last.earlier_loss_sum, loss_sum, 1e-9 * loss_sum);
        EXPECT_NEAR(last.earlier_loss_sum + last.loss_sum, of_whole.loss_sum, 1e-6);
        EXPECT_EQ(last.rows_touched, of_whole.rows_touched);
        EXPECT_EQ(last.rows_written, of_whole.rows_written);
      }
      const auto asked = RandomEvents(500, random);
      EXPECT_EQ(whole.Predict(asked) == parts.Predict(asked), !fault);
      EXPECT_EQ(*whole.learner->TakeReleased() == *parts.learner->TakeReleased(), !fault);
    }
}

// A process that resumes reads the store's rows, moves included, as the one before left them.
TEST(LinearLearner, AResumedModelPredictsAsTheOneBefore) {
  std::mt19937_64 random(11);
  for (const uint64_t whole_column_most : {uint64_t{1} << 20, uint64_t{20}}) {
    Subject before(0.5, std::make_unique<noise::SilentNoise>(), whole_column_most);
    for (int period = 0; period < 3; ++period) before.Step(StepOf(RandomEvents(3000, random)));
    Subject after(0.5, std::make_unique<noise::SilentNoise>(), whole_column_most);
    for (uint64_t row = 0; row < after.options.columns->space().rows(); ++row)
      std::copy_n(before.Row(row), model::linear::kRowFloats, after.Row(row));
    ASSERT_TRUE(after.learner->LoadReleased(*before.learner->TakeReleased()));
    const auto events = RandomEvents(3000, random);
    EXPECT_EQ(before.Predict(events), after.Predict(events));
    for (Subject* s : {&before, &after}) s->Step(StepOf(events));
    EXPECT_EQ(before.Predict(events), after.Predict(events));
    EXPECT_EQ(*before.learner->TakeReleased(), *after.learner->TakeReleased());
  }
}

TEST(LinearLearner, DamagedStatesAreRefusedByName) {
  Subject subject(1);
  const auto loaded = subject.learner->LoadReleased("nonsense");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("learner 'sums'"));
}

TEST(LinearLearner, StepsOfSampledPeriodsAreRefused) {
  std::mt19937_64 random(6);
  Subject subject(1);
  stream::StepBatch step = StepOf(RandomEvents(10, random));
  step.kind = stream::StepBatch::Kind::kPeriodFirst;
  StepReport report;
  const auto taken = subject.learner->TakeStep(step, kGoOn, &report);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kInvalidArgument);
}

TEST(LinearLearner, AnEmptyPeriodIsReleasedAndChargedLikeAnyOther) {
  std::vector<double> sums;
  Subject subject(1, std::make_unique<Recorder>(&sums));
  subject.Step(StepOf({}));
  EXPECT_EQ(sums.size(), 2 * subject.options.columns->space().rows() + 3);
  EXPECT_EQ(Length(sums), 0);
  EXPECT_EQ(subject.learner->state().periods, 1u);
  EXPECT_NEAR(subject.learner->state().bias, 0, 1e-9);
}

// Columns beyond the limit are released by their counts: values of many events learn as before.
TEST(LinearLearner, LargeColumnsLearnTheirFrequentValues) {
  std::mt19937_64 random(7);
  Subject whole(0.5), by_count(0.5, std::make_unique<noise::SilentNoise>(), 20);
  uint64_t written[2] = {};
  for (int period = 0; period < 3; ++period) {
    const auto events = RandomEvents(4000, random);
    written[0] = whole.Step(StepOf(events)).rows_written;
    written[1] = by_count.Step(StepOf(events)).rows_written;
  }
  EXPECT_LT(written[1], written[0]) << "5.5 deviations are more than 2";
  // The most frequent value. Rarer values of its column move it a little, through the prior.
  EXPECT_NEAR(whole.Row(0)[0], by_count.Row(0)[0], 1e-3);
  EXPECT_GT(std::abs(whole.Row(0)[0]), 0.1);
}

TEST(LinearLearner, ANumberThatIsNoneIsNoticed) {
  std::mt19937_64 random(8);
  const auto events = RandomEvents(1000, random);
  Subject subject(1);
  subject.Step(StepOf(events));
  EXPECT_TRUE(*subject.learner->GivesNumbers());
  subject.Row(0)[0] = std::numeric_limits<float>::infinity();
  subject.Step(StepOf(events));
  EXPECT_FALSE(*subject.learner->GivesNumbers());
}

// With real noise the model finds the effects; it would predict nothing if sums lost their events.
TEST(LinearLearner, LearnsUnderNoise) {
  std::mt19937_64 random(9);
  Subject subject(1, std::make_unique<noise::FixedNoise>(9));
  for (int period = 0; period < 4; ++period) subject.Step(StepOf(RandomEvents(20'000, random)));
  const auto asked = RandomEvents(5000, random);
  std::vector<float> labels;
  for (const Event& event : asked) labels.push_back(event.label);
  EXPECT_GT(ExactAuc(subject.Predict(asked), labels), 0.70);
  EXPECT_NEAR(ExactAuc(Subject(1).Predict(asked), labels), 0.5, 1e-9);
}

TEST(LinearLearner, AModelOfSetsAloneIsRefused) {
  LinearLearnerOptions options;
  options.id = "sums";
  options.columns =
      std::make_shared<const Columns>(Columns({{.name = "s", .rows = 60, .set = true}}, {}));
  const auto checked = CheckLinear(options);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, ::testing::HasSubstr("learner 'sums'"));
  options.columns = SomeColumns();
  EXPECT_TRUE(CheckLinear(options));
  options.whole_column_most = 7;
  EXPECT_FALSE(CheckLinear(options)) << "the smallest column has 8 values";
}

TEST(LinearLearner, ColumnsAreTheSchemas) {
  event::FeatureSchema schema;
  schema.dense = {{"n", event::DenseTransform::kSignedLog1p},
                  {"x", event::DenseTransform::kIdentity}};
  schema.categorical = {{.name = "c", .buckets = 9, .dim = 4},
                        {.name = "s", .buckets = 5, .dim = 2, .multi_hot = true, .max_values = 3}};
  const Columns columns = LinearColumns(schema);
  const RowSpace network = schema.MakeRowSpace();
  for (size_t slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(columns.space().tables()[slot].first, network.tables()[slot].first);
    EXPECT_EQ(columns.space().tables()[slot].rows, network.tables()[slot].rows);
  }
  EXPECT_TRUE(columns.IsSet(1));
  // The logarithm is taken once, by the transform or by the column.
  const std::vector<float> numbers = {std::log1p(99.0f), 99.0f};
  const std::vector<uint32_t> slot_end = {1, 2};
  const std::vector<uint64_t> row = {0, 9};
  model::linear::ValueRuns runs;
  columns.Read({.examples = 1, .numbers = numbers, .slot_end = slot_end, .row = row}, &runs);
  EXPECT_EQ(runs.row[2] - columns.space().tables()[2].first,
            runs.row[3] - columns.space().tables()[3].first);
}

event::FeatureSchema CrossableSchema() {
  event::FeatureSchema schema;
  schema.dense = {{"n", event::DenseTransform::kSignedLog1p}};
  schema.categorical = {{.name = "c", .buckets = 9, .dim = 4},
                        {.name = "s", .buckets = 5, .dim = 2, .multi_hot = true, .max_values = 3},
                        {.name = "a*b", .buckets = 7, .dim = 2},
                        {.name = "b", .buckets = 1 << 20, .dim = 2},
                        {.name = "huge", .buckets = uint64_t{1} << 40, .dim = 2},
                        {.name = "b*c", .buckets = 7, .dim = 2}};
  return schema;
}

TEST(LinearLearner, CrossesAreFeaturesByName) {
  const event::FeatureSchema schema = CrossableSchema();
  const auto crosses = LinearCrosses(schema, std::vector<std::string>{"c*n", "a*b*c", "n*b"});
  ASSERT_TRUE(crosses) << crosses.error().message;
  const Columns columns = LinearColumns(schema, *crosses);
  ASSERT_EQ(columns.size(), 6u + 1 + 3);
  const uint64_t bins = model::linear::Bins().values();
  EXPECT_EQ(columns.CrossOf(6), nullptr);
  EXPECT_TRUE(columns.IsNumber(6));
  EXPECT_FALSE(columns.IsNumber(7));
  const std::pair<size_t, size_t> of[] = {{0, 6}, {2, 0}, {6, 3}};
  const uint64_t rows[] = {9 * bins, 7 * 9, bins << 20};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_NE(columns.CrossOf(7 + i), nullptr);
    EXPECT_EQ(std::pair(columns.CrossOf(7 + i)->first, columns.CrossOf(7 + i)->second), of[i]);
    EXPECT_EQ(columns.space().tables()[7 + i].rows, rows[i]);
  }
  EXPECT_EQ(columns.space().tables()[8].name, "a*b*c");
}

TEST(LinearLearner, CrossesThatCannotBeAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"c"}, "'c' is a feature of that name already"},
      {{"b*c"}, "'b*c' is a feature of that name already"},
      {{"c+n"}, "'c+n' is not two features of the schema with a star between them"},
      {{"c*d"}, "'c*d' is not two features"},
      {{"c*c"}, "'c*c' crosses a feature with itself"},
      {{"c*s"}, "'c*s' crosses a multi-hot feature"},
      {{"c*n", "n*c"}, "'n*c' is there twice"},
      {{"c*huge"}, "'c*huge' has 9.9e+12 values"}};
  for (const auto& [names, message] : refused) {
    const auto crosses = LinearCrosses(CrossableSchema(), names);
    ASSERT_FALSE(crosses) << message;
    EXPECT_EQ(crosses.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(crosses.error().message, ::testing::HasSubstr("model.crosses: " + message));
  }
}

}  // namespace
}  // namespace tacit::train
