// A new source, a new mechanism and a new optimiser. Each is what CONTRIBUTING.md asks for, and no
// more: a row in the table of each room that knows the kind, here of a table that is one row longer
// than the product's. They are read from YAML, made by wiring, and train a model together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "config/reader.h"
#include "config/sections.h"
#include "event/codec.h"
#include "privacy/query_table.h"
#include "privacy/spending.h"
#include "support/fixed_noise.h"
#include "train/click/click_learner.h"
#include "train/click/memory_rows.h"
#include "train/intake.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/mechanism_factory.h"
#include "wiring/plans/source.h"
#include "wiring/privacy_forecast.h"

namespace tacit {
namespace {

using testing::HasSubstr;

template <class Row>
std::vector<Row> With(std::span<const Row> table, Row row) {
  std::vector<Row> longer(table.begin(), table.end());
  longer.push_back(row);
  return longer;
}

// The source "comb": 20000 lines "label TAB number TAB category", of which the number's sign is the
// label and the category counts to 40.
constexpr auto kComb = static_cast<config::SourceKind>(std::size(config::kSources));
constexpr uint64_t kCombRecords = 20000, kCombAtOnce = 64;

const auto kSourceTraits = With<config::SourceTraits>(
    config::kSources,
    {.kind = kComb, .name = "comb", .keys = {{"format", "passes"}}, .runs_queued = 2});

class Comb final : public stream::Source {
 public:
  std::string topic() const override { return "comb"; }
  std::vector<int32_t> partitions() const override { return {0}; }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds, event::RawRecords* out) override {
    out->Clear();
    if (paused_) return stream::PollOutcome::kNothing;
    if (next_ == kCombRecords) return stream::PollOutcome::kEnd;
    out->first_offset = next_;
    for (uint64_t i = 0; i < kCombAtOnce && next_ < kCombRecords; ++i, ++next_) {
      const bool positive = next_ % 3 == 0;
      out->bytes += fmt::format("{}\t{}\tc{}", positive ? 1 : 0, positive ? 1 : -1, next_ % 40);
      out->end.push_back(static_cast<uint32_t>(out->bytes.size()));
    }
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset> positions) override {
    next_ = positions.empty() ? 0 : positions[0].first();
    return {};
  }
  void Pause(std::span<const int32_t>) override { paused_ = true; }
  void Resume(std::span<const int32_t>) override { paused_ = false; }
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return "comb"; }
  Status VerifyIdentity(const std::string&) override { return {}; }

 private:
  uint64_t next_ = 0;
  bool paused_ = false;
};

const auto kOpeners = With<wiring::SourceOpener>(
    wiring::AllSources(),
    {.kind = kComb,
     .open = [](const config::Source&, const wiring::LiveParts*)
         -> Result<std::unique_ptr<stream::Source>> { return std::make_unique<Comb>(); }});

// The mechanism "first-rows": a step writes the first `rows` rows of the space, touched or not.
constexpr auto kFirstRows = static_cast<config::MechanismKind>(std::size(config::kMechanisms));
constexpr auto kFirstRowsCharged =
    static_cast<privacy::MechanismKind>(std::size(privacy::kMechanisms));

const auto kMechanismTraits = With<config::MechanismTraits>(
    config::kMechanisms, {.kind = kFirstRows, .name = "first-rows", .keys = {{"rows"}}});
const auto kCharged =
    With<privacy::MechanismRow>(privacy::kMechanisms, {kFirstRowsCharged, "first-rows"});

class FirstRows final : public mechanism::RowSelector {
 public:
  explicit FirstRows(uint64_t rows) : rows_(rows) {}
  void Select(const mechanism::StepRows& rows, noise::NoiseSource&,
              model::RowSelection* selection) override {
    const std::vector<uint64_t>& activated = rows.activations.rows;
    selection->kept.clear();
    for (const uint64_t row : activated) selection->kept.push_back(row < rows_);
    for (uint64_t row = 0; row < rows_; ++row)
      if (!std::ranges::binary_search(activated, row)) selection->extra.push_back(row);
  }
  void AddTo(privacy::Charge* charge) const override { charge->mechanism = kFirstRowsCharged; }
  double ExpectedExtraRows() const override { return static_cast<double>(rows_); }

 private:
  const uint64_t rows_;
};

const auto kMakers = With<wiring::MechanismMaker>(
    wiring::AllMechanisms(),
    {.kind = kFirstRows,
     .charged_as = kFirstRowsCharged,
     .select = [](wiring::SelectorParts parts) -> std::unique_ptr<mechanism::RowSelector> {
       return std::make_unique<FirstRows>(parts.settings.rows);
     },
     .rows =
         [](const wiring::WrittenRows& rows) {
           return fmt::format("the first {:.0f} of {}", rows.untouched, rows.space);
         }});

// The optimiser "sign": w -= rate sign(m), m = beta1 m + (1 - beta1) G.
constexpr auto kSign = static_cast<config::OptimizerKind>(std::size(config::kOptimizers));

const auto kOptimizerTraits = With<config::OptimizerTraits>(
    config::kOptimizers, {.kind = kSign, .name = "sign", .keys = {{"beta1"}}});

void Sign(float beta, float rate, const float* gradient, size_t n, float* weights, float* m) {
  for (size_t i = 0; i < n; ++i) {
    m[i] = beta * m[i] + (1 - beta) * gradient[i];
    weights[i] -= std::copysign(rate, m[i]);
  }
}
void SignDense(const train::OptimizerStep& step, const float* gradient, size_t count,
               float* weights, float* state, size_t) {
  Sign(step.options.beta1, step.options.learning_rate, gradient, count, weights, state);
}
void SignRow(const train::OptimizerStep& step, const float* gradient, size_t n, uint32_t,
             float* row) {
  Sign(step.options.beta1, step.options.row_learning_rate, gradient, n, row, row + n);
}
train::StateFloats OneEach(const train::OptimizerOptions&) { return {.per_number = 1}; }

const auto kRules =
    With<train::OptimizerKind>(train::AllOptimizers(), {.name = "sign",
                                                        .stored_as = 3,
                                                        .dense_floats = OneEach,
                                                        .row_floats = OneEach,
                                                        .step_dense = SignDense,
                                                        .step_rows = train::EachRow<SignRow>});

// Reads a section into `section`; returns what is wrong with it.
template <class Section>
std::string Read(std::string_view yaml, void (*describe)(config::Fields&, Section&),
                 Section* section) {
  const auto tree = config::ParseYaml(yaml, "new.yaml");
  config::Outcome outcome;
  config::Reader reader(config::Place(*tree), &outcome);
  describe(reader, *section);
  reader.Finish();
  if (!outcome.wrong) return outcome.wrong.error().message;
  return outcome.missing ? "" : outcome.missing.error().message;
}

constexpr char kYaml[] = R"(source: {kind: generator}
schema:
  features:
    - {name: n, kind: dense, transform: identity}
    - {name: C, kind: categorical, buckets: 50, dim: 4}
learners:
  - id: ctr
    model: {kind: pctr, hidden: [8]}
    mechanism: {kind: dp-sgd}
    participation: {mode: once, batch: 100}
    privacy: {unit: event, epsilon: 50, delta: 1.0e-6}
store: {path: store}
)";

class NewKinds : public testing::Test {
 protected:
  void SetUp() override {
    auto config = config::Parse(kYaml, "new.yaml", {});
    ASSERT_TRUE(config) << config.error().message;
    config_ = std::move(*config);
    config::Learner& learner = config_.learners[0];
    config_.source.kinds = kSourceTraits;
    learner.mechanism.kinds = kMechanismTraits;
    learner.optimizer.kinds = kOptimizerTraits;
    EXPECT_EQ(Read("{kind: comb}", config::DescribeSource, &config_.source), "");
    EXPECT_EQ(Read("{kind: first-rows, rows: 7}", config::DescribeMechanism, &learner.mechanism),
              "");
    EXPECT_EQ(Read("{kind: sign, learning_rate: 0.01, beta1: 0.5}", config::DescribeOptimizer,
                   &learner.optimizer),
              "");
  }

  config::Learner& learner() { return config_.learners[0]; }
  Result<std::unique_ptr<mechanism::Mechanism>> Mechanism(const RowSpace& space) {
    return wiring::MakeMechanism({.config = config_, .mechanisms = kMakers}, space);
  }

  config::Config config_;
};

class NoLetters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter>) override {
    ADD_FAILURE() << "a record is dead";
    return {};
  }
  void Interrupt() override {}
};

TEST_F(NewKinds, AreReadByTheirRows) {
  EXPECT_EQ(config_.source.traits().name, "comb");
  EXPECT_EQ(learner().mechanism.traits().name, "first-rows");
  EXPECT_EQ(learner().mechanism.rows, 7u);
  EXPECT_EQ(learner().optimizer.traits().name, "sign");
  EXPECT_EQ(learner().optimizer.beta1, 0.5);
  // Their keys are those of the rows: rows is required, and epsilon is not used.
  config::Mechanism mechanism;
  mechanism.kinds = kMechanismTraits;
  EXPECT_THAT(Read("{kind: first-rows}", config::DescribeMechanism, &mechanism), HasSubstr("rows"));
  config::Optimizer optimizer;
  optimizer.kinds = kOptimizerTraits;
  EXPECT_EQ(Read("{kind: sign, epsilon: 0.5}", config::DescribeOptimizer, &optimizer), "");
  EXPECT_EQ(optimizer.epsilon, config::Optimizer().epsilon);
  // The product's tables know none of them.
  config::Source source;
  EXPECT_THAT(Read("{kind: comb}", config::DescribeSource, &source), HasSubstr("kind"));
  config::Optimizer known;
  EXPECT_THAT(Read("{kind: sign}", config::DescribeOptimizer, &known), HasSubstr("kind"));
}

TEST_F(NewKinds, AreCheckedByTheirTraits) {
  // A source without ends of files needs a period in offsets.
  learner().participation.mode = config::Participation::Mode::kPoisson;
  const config::Tree tree;
  const Status checked = config::CheckLearners(config::Place(tree), config_.learners,
                                               config_.source, config_.catalogue);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("records come from comb, which has no files"));
}

TEST_F(NewKinds, MechanismIsChargedForItsPromiseAndNoMore) {
  const RowSpace space = wiring::MakeSchema(config_.features).MakeRowSpace();
  const auto mechanism = Mechanism(space);
  ASSERT_TRUE(mechanism) << mechanism.error().message;
  const privacy::Charge& charge = (*mechanism)->charge();
  EXPECT_EQ(privacy::Name(charge.mechanism, kCharged), "first-rows");
  EXPECT_EQ(privacy::QueriesOf(charge, kCharged),
            *wiring::PlanQueries(learner(), wiring::AllLearnerKinds(), kMakers));
  const double spent =
      privacy::EpsilonMeter().Bounds(privacy::Spending::Of(charge, 1), Delta(1e-6)).upper;
  EXPECT_LE(spent, 50);
  EXPECT_GT(spent, 50 * 0.999);

  const wiring::WrittenRows rows{.space = space.rows(),
                                 .untouched = (*mechanism)->ExpectedExtraRows()};
  EXPECT_EQ(wiring::RowsText(charge.mechanism, rows, kMakers), "the first 7 of 50");
}

TEST_F(NewKinds, TrainTogether) {
  const event::FeatureTransform transform(wiring::MakeSchema(config_.features));
  train::ClickOptions options;
  options.id = "ctr";
  options.index = LearnerIndex(0);
  options.model = {.space = transform.row_space(), .dense_width = 1, .hidden = {8}};
  options.optimizer = wiring::MakeOptimizer(learner().optimizer, kRules);
  EXPECT_THAT(train::FingerprintText(options.optimizer, true), HasSubstr("optimizer=3 "));

  WorkerPool workers({.workers = 1});
  const auto backend = ops::MakeCpuBackend(workers);
  const store::RowLayout layout =
      train::MakeRowLayout(options, model::Pctr(options.model, *backend));
  EXPECT_EQ(layout.state_floats, std::vector<uint32_t>{4});
  train::MemoryRows rows(layout), initial(layout);
  auto mechanism = Mechanism(options.model.space);
  ASSERT_TRUE(mechanism) << mechanism.error().message;
  train::ClickLearner ctr(options, std::move(*mechanism), std::make_unique<noise::FixedNoise>(1),
                          *backend, rows, nullptr);

  const auto source = wiring::OpenSource(config_.source, nullptr, kOpeners);
  ASSERT_TRUE(source) << source.error().message;
  const auto codec = wiring::MakeCodec(config_.source, transform);
  NoLetters letters;
  const config::SourceTraits& traits = config_.source.traits();
  train::Intake intake({.learners = {{.index = options.index,
                                      .participation = wiring::MakeParticipationOf(
                                          learner().participation, {.has_files = traits.has_files}),
                                      .start = {}}},
                        .queued_records_max = traits.runs_queued},
                       **source, *codec, transform, letters);
  ASSERT_TRUE(intake.Start());
  const std::atomic<bool> go_on = false;
  std::vector<double> losses;
  while (const auto step = intake.steps().Pop()) {
    train::StepReport report;
    const auto taken = ctr.TakeStep(step->batch, go_on, &report);
    ASSERT_TRUE(taken && *taken);
    EXPECT_EQ(report.rows_written, 7u);
    losses.push_back(report.loss_sum / static_cast<double>(report.losses));
  }
  ASSERT_TRUE(intake.status());
  EXPECT_EQ(intake.records_read(), kCombRecords);
  ASSERT_EQ(losses.size(), kCombRecords / 100);
  EXPECT_GT(losses.front(), 0.4);
  EXPECT_LT(losses.back(), 0.2);

  // The first seven rows have moved, no other has.
  std::vector<uint64_t> ids(50);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float*> now(ids.size()), then(ids.size());
  ASSERT_TRUE(rows.Gather(ids, now));
  ASSERT_TRUE(initial.Gather(ids, then));
  for (const uint64_t id : ids) EXPECT_EQ(now[id][0] != then[id][0], id < 7) << id;
}

}  // namespace
}  // namespace tacit
