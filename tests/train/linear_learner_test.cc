// The linear click model in the step loop's hands: each step is what the formulas make of the same
// events, no unit moves what is released by more than the clip, nothing happens in a step that is
// abandoned, and what was committed is gone on from to the last bit.
#include "train/linear_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/auc.h"
#include "model/linear/row.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/memory_rows.h"

namespace tacit::train {
namespace {

using model::linear::Columns;
using model::linear::UpdateOptions;

const std::atomic<bool> kGoOn = false;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two categories, a set of up to twenty values, and two numbers.
std::shared_ptr<const Columns> SomeColumns() {
  return std::make_shared<const Columns>(Columns(
      {{.name = "c", .rows = 30}, {.name = "s", .rows = 60, .set = true}, {.name = "d", .rows = 8}},
      {{.name = "n"}, {.name = "m"}}));
}

struct Event {
  uint64_t c = 0, d = 0;
  std::set<uint64_t> s;
  float n = 0, m = 0, label = 0;
};

Event RandomEvent(std::mt19937_64& random) {
  Event event;
  event.c = random() % (random() % 30 + 1);
  for (uint64_t i = random() % 20 + 1; i > 0; --i) event.s.insert(random() % 60);
  event.d = random() % 8;
  event.n = random() % 4 == 0 ? -0.0f : static_cast<float>(random() % 1000) / 100;
  event.m = static_cast<float>(random() % 1000) / 100 - 5;
  const double logit = (event.c % 3) - 1.0 + 0.3 * static_cast<double>(event.d % 4) - 0.1 * event.m;
  event.label = (random() % 10'000) / 1e4 < 1 / (1 + std::exp(-logit)) ? 1 : 0;
  return event;
}
std::vector<Event> RandomEvents(size_t n, std::mt19937_64& random) {
  std::vector<Event> events;
  for (size_t i = 0; i < n; ++i) events.push_back(RandomEvent(random));
  return events;
}

// Units are runs of `unit_size` events.
stream::StepBatch StepOf(const std::vector<Event>& events, size_t unit_size = 1) {
  stream::StepBatch step;
  event::Batch& batch = step.examples;
  batch.dense_width = 2;
  batch.slots = 3;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    batch.label.push_back(event.label);
    batch.dense.insert(batch.dense.end(), {event.n, event.m});
    batch.row.push_back(event.c);
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    for (const uint64_t value : event.s) batch.row.push_back(30 + value);
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    batch.row.push_back(90 + event.d);
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    step.unit_of.push_back(static_cast<uint32_t>(i / unit_size));
    step.units = step.unit_of.back() + 1;
  }
  return step;
}

// The learner over rows of its own.
struct Subject {
  explicit Subject(
      double noise_multiplier,
      std::unique_ptr<noise::NoiseSource> noise = std::make_unique<noise::SilentNoise>(),
      uint64_t whole_column_most = 1 << 20)
      : options{.id = "sums",
                .index = LearnerIndex(0),
                .columns = SomeColumns(),
                .update = {},
                .noise_multiplier = noise_multiplier,
                .whole_column_most = whole_column_most},
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

  WorkerPool workers{{.workers = 2}};
  LinearLearnerOptions options;
  MemoryRows rows;
  std::unique_ptr<LinearLearner> learner;
};

// The model in double over whole tables, one event after the other, from the formulas.
struct Oracle {
  explicit Oracle(double sigma) : sigma_(sigma) {
    const auto columns = SomeColumns();
    double squares = 0;
    for (const RowSpace::Table& table : columns->space().tables()) {
      first.push_back(table.first);
      a.push_back(std::pow(static_cast<double>(table.rows), 0.05));
      squares += a.back() * a.back();
    }
    for (double& scale : a) scale *= std::sqrt(5 / squares);
    first.push_back(columns->space().rows());
    for (auto* numbers : {&w, &P, &dw, &E}) numbers->resize(first.back());
    last.resize(first.back());
    C = std::sqrt((alpha * alpha + rho * rho) * 5 + 5 * beta * beta * rho * rho + 2 * beta * beta);
  }

  // The event's values with their inputs, per column.
  std::vector<std::map<uint64_t, double>> Values(const Event& e) const {
    const model::linear::Bins bins;
    std::vector<std::map<uint64_t, double>> values(5);
    values[0][e.c] = 1;
    for (const uint64_t v : e.s) values[1][30 + v] = 1 / std::sqrt(double(e.s.size()));
    values[2][90 + e.d] = 1;
    values[3][98 + bins.Of(e.n)] = 1;
    values[4][98 + bins.values() + bins.Of(e.m)] = 1;
    return values;
  }
  double Logit(const Event& e) const {
    double z = bias;
    for (const auto& column : Values(e))
      for (const auto& [row, x] : column) z += w[row] * x;
    return z;
  }
  // Returns the event's contribution: sums, counts, then T and Q.
  std::vector<double> Contribution(const Event& e) const {
    std::vector<double> added(2 * w.size() + 3);
    const double p = 1 / (1 + std::exp(-Logit(e)));
    const double r = std::min(std::max((e.label - p) * Factor(p), -rho), rho);
    double d = 0;
    const auto values = Values(e);
    for (size_t j = 0; j < 5; ++j)
      for (const auto& [row, x] : values[j]) {
        added[2 * row] += a[j] * r * x;
        added[2 * row + 1] += a[j] * alpha * x * x;
        if (period > 0 && last[row] == period) d += dw[row] * x;
      }
    d = std::min(std::max(d, -1.0), 1.0);
    added[2 * w.size()] = beta * std::sqrt(5.0) * r * d;
    added[2 * w.size() + 1] = beta * d * d;
    added[2 * w.size() + 2] = e.label > 0.5 ? beta : 0;
    return added;
  }
  void Step(const std::vector<Event>& events) {
    std::vector<double> sums(2 * w.size() + 3);
    for (const Event& e : events) {
      const auto added = Contribution(e);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += added[i];
    }
    const double T = sums[2 * w.size()] / beta / std::sqrt(5.0), Q = sums[2 * w.size() + 1] / beta;
    double counted = 0;
    for (uint64_t row = first[2]; row < first[3]; ++row)
      counted += sums[2 * row + 1] / (a[2] * alpha);  // the smallest column
    const double hidden = sigma_ * C / (a[2] * alpha) * std::sqrt(8);
    const double rate = (sums[2 * w.size() + 2] / beta + hidden / 2) / (counted + hidden);
    const double h = Slope(rate), shift = MeanOf(2, sums, h, /*known_only=*/false);
    if (period == 0)
      eta = 0.4;
    else if (Q >= 2 * sigma_ * C / beta)
      eta = std::min(0.6, eta * std::sqrt(std::clamp(1 + T / (h * Q), 0.3, 1.25)));
    ++period;
    double low = 0.001, high = 0.999;
    while (high - low > 1e-13) {
      const double p = (low + high) / 2;
      (p + shift / Factor(p) < rate ? low : high) = p;
    }
    bias += std::log(rate / (1 - rate)) - std::log(low / (1 - low));
    for (size_t j = 0; j < 5; ++j)
      StepColumn(j, j == 1 ? MeanOf(1, sums, h, /*known_only=*/true) : shift, rate, sums);
  }

  const double alpha = 0.4, rho = 0.7, beta = 0.3, q = 0.1;
  double C = 0, bias = 0, eta = 0;
  std::vector<uint64_t> first;
  std::vector<double> a, w, P, dw, E;
  std::vector<uint64_t> last;
  uint64_t period = 0;

 private:
  bool Known(uint64_t row, const std::vector<double>& sums) const {
    return sums[2 * row + 1] > 2 * sigma_ * C;
  }
  double Factor(double p) const { return std::min(1.0, rho / std::max(p, 1 - p)); }
  double Slope(double rate) const { return 0.857 * rate * (1 - rate) * Factor(rate); }
  double MeanOf(size_t j, const std::vector<double>& sums, double h, bool known_only) const {
    double residual = 0, count = 0, noise = 0;
    for (uint64_t row = first[j]; row < first[j + 1]; ++row) {
      if (known_only && !Known(row, sums)) continue;
      noise += sigma_ * C / a[j] * sigma_ * C / a[j];
      residual += sums[2 * row] / a[j];
      count += sums[2 * row + 1] / (a[j] * alpha);
    }
    return count > 4 * std::sqrt(noise) / alpha
               ? residual / count / (1 + noise / (count * h * count * h))
               : 0;
  }
  void StepColumn(size_t j, double mean, double rate, const std::vector<double>& sums) {
    const double h = Slope(rate), v = 0.9 * rate * (1 - rate) * Factor(rate) * Factor(rate);
    const double tau2 = sigma_ * C / a[j] * sigma_ * C / a[j];
    std::map<uint64_t, std::pair<double, double>> observed;
    for (uint64_t row = first[j]; row < first[j + 1]; ++row) {
      if (!Known(row, sums)) continue;
      const double S = sums[2 * row] / a[j], N = sums[2 * row + 1] / (a[j] * alpha);
      const double o = S / (N * h) - mean / h,
                   R = (tau2 * (1 + mean * mean / (alpha * alpha)) + N * v) / (N * h * N * h);
      observed[row] = {o, R};
      const double trust = R > 1 ? 0 : 1 / ((R + 0.1) * (R + 0.1));
      numerator_[j] += trust * ((w[row] + o) * (w[row] + o) - R);
      denominator_[j] += trust;
    }
    if (observed.empty()) return;
    const double V =
        denominator_[j] > 0 ? std::clamp(numerator_[j] / denominator_[j], 1e-4, 0.3) : 0.1;
    double beyond = 0, trust = 0;
    for (const auto& [row, seen] : observed) {
      if (last[row] == 0) continue;
      const double expected = E[row] + seen.second;
      beyond += (std::min(seen.first * seen.first, 9 * expected) - expected) / expected / expected;
      trust += 1 / (expected * expected);
    }
    const double surprise =
        trust > 0 ? std::max(0.0, (beyond - 3 * std::sqrt(2 * trust)) / trust) : 0;
    for (const auto& [row, seen] : observed) {
      const auto& [o, R] = seen;
      const double age = static_cast<double>(period - last[row]);
      const double before = last[row] == 0 ? V : std::min(P[row] + age * q * V, V);
      const double K = before / (before + R);
      dw[row] = eta * K * o;
      w[row] += dw[row];
      P[row] = (1 - K) * before;
      const double error = last[row] == 0 ? V : E[row] + surprise;
      E[row] = (1 - eta * K) * (1 - eta * K) * error + eta * K * eta * K * R;
      last[row] = period;
    }
  }

  const double sigma_;
  std::map<size_t, double> numerator_, denominator_;
};

// Without noise, and with the weights that noise of this size leaves (the draws themselves silent).
void StepsAreTheOracles(bool sets) {
  for (const double sigma : {0.0, 0.5, 4.0}) {
    std::mt19937_64 random(1);
    Subject subject(sigma);
    Oracle oracle(sigma);
    for (int period = 0; period < 5; ++period) {
      std::vector<Event> events = RandomEvents(2000 + 500 * period, random);
      for (Event& event : events)
        if (!sets) event.s = {*event.s.begin()};
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
                           const stream::StepBatch& step) {
  std::vector<double> sums;
  auto recorder = std::make_unique<Recorder>(&sums);
  const Recorder& asked = *recorder;
  Subject subject(1, std::move(recorder));
  for (const auto& events : before) subject.Step(StepOf(events));
  sums.clear();
  subject.Step(step);
  EXPECT_EQ(sums.size(), 2 * subject.options.columns->space().rows() + 3);
  const double step_size = Oracle(1).C / asked.stddev_;
  for (double& sum : sums) sum *= step_size;
  return sums;
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
  Subject subject(1, std::make_unique<noise::StreamNoise>(noise::FixedNoise(9)));
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

}  // namespace
}  // namespace tacit::train
