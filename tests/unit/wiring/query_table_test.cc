// The table of queries, cell by cell: each is built as a configuration, and is refused at the start
// or charged as the cell says. What the cells are is written down here once more, by hand.
#include "privacy/query_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "noise/stream_noise.h"
#include "privacy/gaussian.h"
#include "privacy/ledger.h"
#include "privacy/pld.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "train/counts/item_histogram.h"
#include "wiring/assembly.h"

namespace tacit::wiring {
namespace {

using privacy::ParticipationMode;
using privacy::Price;
using privacy::Query;
using privacy::Unit;
using ::testing::HasSubstr;

constexpr char kDpSgd[] = "model: {kind: pctr, hidden: [4]}, mechanism: {kind: dp-sgd}";
constexpr double kQuantileSigma = 20, kVocabularySigma = 5, kStartShare = 0.6;
constexpr uint64_t kRows = 5;
constexpr double kRowEpsilon = 0.01;

// A row of the table as it has to be. Cells: once of events, once of users, then poisson and
// allocate as well; `-` refused, `u` unbounded, `g` Gaussian, `k` of known coins, `s` sampled
// Gaussian, `a` allocated Gaussian, `z` zCDP, `G` and `Z` once a period. `learner`: how such a
// query is asked for; if empty, by `evaluate` alone.
struct Row {
  Query query;
  const char* cells;
  std::string learner;
};

std::vector<Row> Rows() {
  const std::string pctr = "model: {kind: pctr, hidden: [4]}, mechanism: ";
  const std::string vocabulary = pctr + fmt::format(
                                            "{{kind: fest, vocabulary: {{source: running, "
                                            "keep: 9, noise_multiplier: {}",
                                            kVocabularySigma);
  const std::string started = "model: {kind: sequence, length: 4, width: 4, start: ";
  const std::string as_start = fmt::format(
      ", start_share: {}}}, history: {{items: 4}}, mechanism: {{kind: dp-sgd}}", kStartShare);
  return {
      {Query::kUnnoised, "uuuuuu", pctr + "{kind: none}"},
      {Query::kGradient, "ggssaa", kDpSgd},
      {Query::kRowThreshold, "ggssaa", pctr + "{kind: adafest, threshold: 2, sigma_ratio: 3}"},
      {Query::kClipQuantile, "ggssaa",
       pctr +
           fmt::format("{{kind: dp-sgd, clipping: quantile, quantile: {{noise_multiplier: {}}}}}",
                       kQuantileSigma)},
      {Query::kRowChoice, "zzzz--",
       pctr + fmt::format("{{kind: exponential, rows: {}, row_epsilon: {}}}", kRows, kRowEpsilon)},
      {Query::kRowHistogram, "--GGGG", vocabulary + "}}"},
      {Query::kTopRows, "--ZZZZ", vocabulary + ", query: gumbel}}"},
      {Query::kSequenceGradient, "-g-s-a",
       "model: {kind: sequence, length: 4, width: 4}, history: {items: 4}, mechanism: {kind: "
       "dp-sgd}"},
      {Query::kPeriodCounts, "-g----",
       "model: {kind: transitions, cells: 100}, history: {items: 4}, mechanism: {kind: counts}"},
      {Query::kPeriodSums, "gg----", "model: {kind: linear}, mechanism: {kind: sums}"},
      {Query::kItemHistogram, "---G-G", started + "popularity" + as_start},
      {Query::kPairCounts, "---G-G", started + "counts, cells: 100" + as_start},
      {Query::kRepresentation, "g-k---", pctr + "{kind: forward, representation_clip: 2}"},
      {Query::kRankerGradient, "-g----",
       "model: {kind: transitions, cells: 100, ranker: true, ranker_users: 50, ranker_share: 0.2}, "
       "history: {items: 4}, mechanism: {kind: counts}"},
      {Query::kUnreadableCount, "g-----", ""},
      {Query::kScoreCounts, "g-----", ""},
      {Query::kInspectedCounts, "gg----", ""},
  };
}

Price PriceOfLetter(char letter) {
  switch (letter) {
    case 'u':
      return Price::kUnbounded;
    case 'g':
      return Price::kGaussian;
    case 'k':
      return Price::kKnownCoins;
    case 's':
      return Price::kSampledGaussian;
    case 'a':
      return Price::kAllocatedGaussian;
    case 'z':
      return Price::kZcdp;
    case 'G':
      return Price::kGaussianOfPeriod;
    case 'Z':
      return Price::kZcdpOfPeriod;
  }
  return Price::kRefused;
}

struct Cell {
  ParticipationMode mode;
  Unit unit;
  const char* participation;
  // That the worst unit takes part in, of all that are made below.
  uint64_t steps, periods;
};
constexpr uint64_t kStepsOfPeriod = 4, kBlocks = 2, kPeriods = 3;
constexpr double kRate = 0.1;
constexpr size_t kModesAndUnits = 6;
constexpr Cell kCells[kModesAndUnits] = {
    {ParticipationMode::kOnce, Unit::kEvent, "{mode: once, batch: 10, max_participations: 3}", 3,
     0},
    {ParticipationMode::kOnce, Unit::kUser, "{mode: once, batch: 10, max_participations: 2}", 2, 0},
    {ParticipationMode::kPoisson, Unit::kEvent,
     "{mode: poisson, batch: 10, sampling_rate: 0.1, steps_per_period: 4, period: 100}", 4, 1},
    {ParticipationMode::kPoisson, Unit::kUser,
     "{mode: poisson, batch: 10, sampling_rate: 0.1, steps_per_period: 4, period: 100, "
     "max_participations: 8}",
     8, 2},
    {ParticipationMode::kAllocate, Unit::kEvent,
     "{mode: allocate, batch: 25, steps_per_period: 4, blocks: 2, period: 100}", 8, 1},
    {ParticipationMode::kAllocate, Unit::kUser,
     "{mode: allocate, batch: 25, steps_per_period: 4, blocks: 2, period: 100, "
     "max_participations: 17}",
     16, 2}};

class QueryTable : public ::testing::Test {
 protected:
  QueryTable() {
    test::WriteFile(dir_ / "log.jsonl", "");
    test::WriteFile(dir_ / "items.dat", "1\n2\n3\n");
  }

  Result<config::Config> Config(const std::string& learner, const Cell& cell) {
    const bool open = learner.ends_with("{kind: none}");
    return config::Parse(
        fmt::format("source: {{kind: log, format: json, files: {}}}\n"
                    "catalogue: {{file: {}}}\n"
                    "schema: {{features: [{{name: n, kind: dense}}, {{name: C, kind: categorical, "
                    "buckets: 50}}]}}\n"
                    "learners:\n  - {{id: it, {}, participation: {}, privacy: {{unit: {}, epsilon: "
                    "{}, delta: 1.0e-6}}}}\n"
                    "store: {{path: {}}}\n",
                    dir_ / "log.jsonl", dir_ / "items.dat", learner, cell.participation,
                    cell.unit == Unit::kUser ? "user" : "event", open ? ".inf" : "8",
                    dir_ / "store"),
        "cell", {});
  }
  Result<Assembly> Build(const std::string& learner, const Cell& cell) {
    auto config = Config(learner, cell);
    if (!config) return Fail(std::move(config.error()));
    return Assemble(std::move(*config));
  }

  test::TempDir dir_;
};

// Steps and periods as a trainer charges them, more than a user's allowance lets him be in.
privacy::Ledger Charged(const LearnerPlan& plan, const Cell& cell) {
  privacy::Ledger ledger;
  EXPECT_TRUE(ledger.Declare(plan.promise));
  const bool once = cell.mode == ParticipationMode::kOnce;
  const uint64_t rounds = cell.unit == Unit::kUser ? kPeriods : once ? 3 : 1;
  for (uint64_t round = 1; round <= rounds; ++round) {
    std::vector<privacy::CommitCharge> charges;
    if (plan.opening_charge)
      charges.push_back({"it", *plan.opening_charge, 1, 1, "log", {{0, 0, 100}}});
    const bool in_blocks = cell.mode == ParticipationMode::kAllocate;
    const uint64_t steps = once ? 1 : in_blocks ? kBlocks * kStepsOfPeriod : kStepsOfPeriod;
    charges.push_back({"it", plan.charge, steps, steps, "log", {{0, 0, 100}}});
    ledger.Append(CommitSeq(round), static_cast<int64_t>(round), charges, {}, "test");
  }
  return ledger;
}

bool IsStart(Query query) { return query == Query::kItemHistogram || query == Query::kPairCounts; }

// The spending that the cell says, from the sigmas and from the options of the queries alone.
privacy::Spending Expected(const Row& row, const LearnerPlan& plan, char letter, const Cell& cell) {
  const privacy::Charge& c = plan.charge;
  double squares = 0;
  for (const double sigma : {c.sigma_gradient, c.sigma_selection, c.sigma_clip})
    if (sigma > 0) squares += 1 / (sigma * sigma);
  // Its representations share nothing.
  if (row.query == Query::kRepresentation) squares = 1 / (c.noise_multiplier * c.noise_multiplier);
  const auto steps = static_cast<double>(cell.steps), periods = static_cast<double>(cell.periods);
  privacy::Spending spending;
  if (letter == 'u') return {.mu_squared = INFINITY};
  if (cell.mode == ParticipationMode::kOnce)
    spending.mu_squared = steps * squares;
  else if (cell.mode == ParticipationMode::kPoisson)
    spending.sampled = {{1 / std::sqrt(squares), kRate, cell.steps, 0, letter == 'k'}};
  else
    spending.sampled = {{1 / std::sqrt(squares), 0.25, cell.steps / kStepsOfPeriod, 4}};
  if (letter == 'z')
    spending.rho = steps * static_cast<double>(kRows) * kRowEpsilon * kRowEpsilon / 8;
  if (letter == 'G') spending.mu_squared = periods / (kVocabularySigma * kVocabularySigma);
  if (letter == 'G' && IsStart(row.query)) {
    // Its share of the whole promise, for any number of periods.
    const double mu = privacy::GaussianMu(Epsilon(8), Delta(1e-6));
    spending.mu_squared = kStartShare * mu * mu;
  }
  if (letter == 'Z') spending.rho = periods / (2 * kVocabularySigma * kVocabularySigma);
  return spending;
}

// The epsilon of a composition, by events and not by a ledger's way of adding up.
double EpsilonOf(const privacy::Spending& spending) {
  if (spending.rho == 0 && spending.sampled.empty())
    return privacy::GaussianEpsilon(std::sqrt(spending.mu_squared), Delta(1e-6)).value;
  std::vector<privacy::CountedEvent> events;
  if (spending.mu_squared > 0)
    events.push_back({privacy::Event::Gaussian(1 / std::sqrt(spending.mu_squared)), 1});
  if (spending.rho > 0) events.push_back({privacy::Event::Zcdp(spending.rho), 1});
  for (const auto& s : spending.sampled)
    events.push_back({s.coins_known ? privacy::Event::KnownCoin(s.noise_multiplier, s.sampling_rate)
                      : s.block_steps > 0
                          ? privacy::Event::Allocation(s.noise_multiplier, s.block_steps)
                          : privacy::Event::PoissonGaussian(s.noise_multiplier, s.sampling_rate),
                      s.count});
  return *privacy::PldUpperEpsilon(events, privacy::Adjacency::kAddRemove, Delta(1e-6));
}

void ExpectCharged(const Row& row, char letter, const Cell& cell, const LearnerPlan& plan) {
  const privacy::Ledger ledger = Charged(plan, cell);
  const privacy::LedgerEntry& last = ledger.entries().back();
  const privacy::Spending want = Expected(row, plan, letter, cell);
  if (letter == 'u') {
    EXPECT_FALSE(last.worst.bounded());
    EXPECT_TRUE(std::isinf(last.epsilon));
    return;
  }
  EXPECT_NEAR(last.worst.mu_squared, want.mu_squared, 1e-9 * want.mu_squared);
  EXPECT_NEAR(last.worst.rho, want.rho, 1e-9 * want.rho);
  ASSERT_EQ(last.worst.sampled.size(), want.sampled.size());
  for (size_t i = 0; i < want.sampled.size(); ++i) {
    EXPECT_NEAR(last.worst.sampled[i].noise_multiplier, want.sampled[i].noise_multiplier, 1e-9);
    EXPECT_EQ(last.worst.sampled[i].sampling_rate, want.sampled[i].sampling_rate);
    EXPECT_EQ(last.worst.sampled[i].count, want.sampled[i].count);
    EXPECT_EQ(last.worst.sampled[i].block_steps, want.sampled[i].block_steps);
    EXPECT_EQ(last.worst.sampled[i].coins_known, want.sampled[i].coins_known);
  }
  const double epsilon = EpsilonOf(want);
  EXPECT_NEAR(last.epsilon, epsilon, 5e-3 * epsilon);
  EXPECT_LE(last.epsilon, 8 * (1 + 1e-9));
  EXPECT_GT(last.epsilon, 7.9) << "more noise than the promise asks for";
  const auto queries = privacy::QueriesOf(plan.charge);
  const auto opening =
      plan.opening_charge ? privacy::QueriesOf(*plan.opening_charge) : std::vector<Query>{};
  const Query told = row.query == Query::kSequenceGradient ? Query::kGradient
                     : IsStart(row.query)                  ? Query::kRowHistogram
                                                           : row.query;
  EXPECT_TRUE(std::ranges::count(queries, told) + std::ranges::count(opening, told) == 1);
  EXPECT_TRUE(privacy::VerifyChain(ledger.entries()));
}

TEST_F(QueryTable, EveryCellIsRefusedAtTheStartOrChargedAsItSays) {
  size_t refused = 0, charged = 0;
  for (const Row& row : Rows()) {
    for (size_t at = 0; at < kModesAndUnits; ++at) {
      const Cell& cell = kCells[at];
      SCOPED_TRACE(fmt::format("{}, participation {}, unit {}", Name(row.query), Name(cell.mode),
                               Name(cell.unit)));
      EXPECT_EQ(PriceOf(row.query, cell.mode, cell.unit), PriceOfLetter(row.cells[at]));
      if (row.learner.empty()) continue;
      const auto built = Build(row.learner, cell);
      if (row.cells[at] != '-') {
        ASSERT_TRUE(built) << built.error().message;
        ExpectCharged(row, row.cells[at], cell, built->learners[0]);
        ++charged;
        continue;
      }
      ++refused;
      ASSERT_FALSE(built) << "what has no price was taken";
      EXPECT_THAT(built.error().message, HasSubstr("learners[0]."));
    }
  }
  EXPECT_EQ(refused, 35u);
  EXPECT_EQ(charged, 49u);
}

TEST_F(QueryTable, HasEveryQueryOnce) {
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), std::size(privacy::kQueries));
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].query, privacy::kQueries[i]);
}

// The configuration refuses it first, with a reason of its own. The table is the second guard.
TEST_F(QueryTable, RefusesByItselfWhatNoConfigurationLetsThrough) {
  size_t refused = 0;
  for (const Row& row : Rows()) {
    if (row.learner.empty()) continue;
    const size_t good = std::string(row.cells).find_first_not_of('-');
    auto config = Config(row.learner, kCells[good]);
    ASSERT_TRUE(config) << config.error().message;
    for (size_t at = 0; at < kModesAndUnits; ++at) {
      config::Learner learner = config->learners[0];
      learner.participation.mode = kCells[at].mode;
      learner.privacy.unit = kCells[at].unit;
      const auto checked = PlanQueries(learner);
      EXPECT_EQ(checked.has_value(), row.cells[at] != '-') << Name(row.query) << " " << at;
      if (checked) continue;
      EXPECT_THAT(checked.error().message, HasSubstr("learner 'it': participation.mode"));
      EXPECT_THAT(checked.error().message, HasSubstr(Name(row.query)));
      ++refused;
    }
  }
  EXPECT_EQ(refused, 35u);
}

// A start without its charge, and a charge without a start.
TEST_F(QueryTable, AStartThatIsNotChargedEndsTheProgram) {
  const auto started = Build(Rows()[10].learner, kCells[3]);
  ASSERT_TRUE(started) << started.error().message;
  const LearnerPlan& plan = started->learners[0];
  const config::Learner& learner = started->config.learners[0];
  CheckCharges(*PlanQueries(learner), plan.charge, plan.opening_charge);
  EXPECT_DEATH(CheckCharges(*PlanQueries(learner), plan.charge, {}), "what it is not charged for");
  config::Learner without = learner;
  without.model.sequence.start = config::Sequence::Start::kNone;
  CheckCharges(*PlanQueries(without), plan.charge, {});
  EXPECT_DEATH(CheckCharges(*PlanQueries(without), plan.charge, plan.opening_charge),
               "what it is not charged for");
}

// A charge with a query that the learner does not ask, or without one that it asks.
TEST_F(QueryTable, AChargeOfOtherQueriesEndsTheProgram) {
  const auto built = Build(Rows()[2].learner, kCells[0]);
  ASSERT_TRUE(built) << built.error().message;
  const config::Learner& learner = built->config.learners[0];
  const privacy::Charge charge = built->learners[0].charge;
  CheckCharges(*PlanQueries(learner), charge, {});
  privacy::Charge more = charge, less = charge;
  more.sigma_clip = 3;
  less.sigma_selection = 0;
  EXPECT_DEATH(CheckCharges(*PlanQueries(learner), more, {}), "what it is not charged for");
  EXPECT_DEATH(CheckCharges(*PlanQueries(learner), less, {}), "what it is not charged for");
  EXPECT_DEATH(CheckCharges(*PlanQueries(learner), charge, charge), "what it is not charged for");
}

// The release of a start, from histories that are all there: one Gaussian.
TEST_F(QueryTable, AHistogramOfItemsIsOneGaussian) {
  auto noise = noise::FixedNoise(0);
  model::Histories histories;
  histories.catalogue = 3;
  const train::ItemHistogram released = train::ReleaseItems(histories, {}, 4, 0.5, noise);
  const auto spending = privacy::Spending::Of(released.charge, 1);
  EXPECT_TRUE(spending.gaussian());
  EXPECT_LE(spending.mu_squared, 0.25 * (1 + 1e-9));
  EXPECT_GT(spending.mu_squared, 0.25 * 0.99);
}

}  // namespace
}  // namespace tacit::wiring
