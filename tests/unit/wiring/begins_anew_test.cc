// A learner in the middle of a period, as its store has it when it starts again: it goes on with
// the steps that it knows, and where it does not know them the budgets decide.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "privacy/bill.h"
#include "privacy/pld.h"
#include "support/process.h"
#include "train/learner/position.h"
#include "wiring/learning.h"
#include "wiring/plans/source.h"

namespace tacit::wiring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kAnewBlockSteps = 4, kAnewBlocks = 2;
constexpr uint64_t kAnewSteps = kAnewBlockSteps * kAnewBlocks;  // of a period
constexpr uint64_t kAnewOffsets = 100, kAnewPeriods = 2, kTakenBefore = 3;
constexpr double kAnewSigma = 1, kAnewDelta = 1e-6, kNoBudget = 20;

// The epsilon of a record that was in this many periods' blocks.
double EpsilonOfPeriods(uint64_t periods) {
  privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove);
  EXPECT_TRUE(accountant.Add(privacy::Event::Allocation(kAnewSigma, kAnewBlockSteps),
                             periods * kAnewBlocks));
  const auto found = accountant.Epsilon(Delta(kAnewDelta));
  EXPECT_TRUE(found);
  return found ? found->upper : -1;
}
// Budgets that are a little above, or below, what is needed; and how near the ledger's own
// composition comes to ours.
constexpr double kRoom = 1.01, kNoRoom = 0.99, kNear = 1e-3;

struct Budgets {
  double own = kNoBudget, total = kNoBudget;
};

// The state of the learner when it has learnt all it may.
struct Stand {
  uint64_t charged = 0;  // steps
  double epsilon = 0;
  stream::Position position;
  std::string log;
};

class BeginsAnewTest : public ::testing::Test {
 protected:
  BeginsAnewTest() : logger_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "told", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    std::string text;
    for (uint64_t i = 0; i < kAnewPeriods * kAnewOffsets; ++i)
      text += fmt::format(R"({{"label":{},"user":"u{}","features":{{"n":{}}}}}{})", i % 2, i % 10,
                          i % 7, '\n');
    test::WriteFile(dir_ / "log.jsonl", text);
  }
  ~BeginsAnewTest() override { spdlog::set_default_logger(logger_); }

  Assembly Build(const Budgets& budgets, double sigma = kAnewSigma,
                 const std::string& unit = "event") const {
    auto config = config::Parse(
        fmt::format("source: {{kind: log, format: json, files: {}}}\n"
                    "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                    "learners:\n"
                    "  - id: it\n"
                    "    model: {{kind: pctr, hidden: [4]}}\n"
                    "    mechanism: {{kind: dp-sgd, noise_multiplier: {}}}\n"
                    "    participation: {{mode: allocate, batch: 25, steps_per_period: {}, blocks: "
                    "{}, period: {}{}}}\n"
                    "    privacy: {{unit: {}, epsilon: {}, delta: {}}}\n"
                    "budget: {{epsilon: {}, delta: {}}}\n"
                    "store: {{path: {}, witness: none}}\n"
                    "training: {{workers: 1, idle_priority: false}}\n",
                    dir_ / "log.jsonl", sigma, kAnewBlockSteps, kAnewBlocks, kAnewOffsets,
                    unit == "user" ? ", max_participations: 24" : "", unit, budgets.own, kAnewDelta,
                    budgets.total, kAnewDelta, dir_ / "store"),
        "anew", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return *std::move(assembly);
  }

  // Leaves a store that was charged for the first period, and is behind the third step of it.
  void Begin(const Assembly& assembly, const std::optional<stream::PeriodAllocation>& allocation) {
    const LearnerPlan& plan = assembly.learners[0];
    const auto store = MustOpen(assembly);
    const OffsetRange period{0, 0, kAnewOffsets};
    privacy::Bill bill(plan.id, TopicOf(assembly.config.source));
    for (uint64_t step = 0; step < kTakenBefore; ++step)
      bill.Add({.whole_period = true,
                .opens_period = step == 0,
                .period_steps = kAnewSteps,
                .ranges = {&period, 1}},
               plan.charge, plan.opening_charge);
    store::CommitRequest request{.learners = {}, .source_identity = ""};
    request.learners.push_back({.learner = plan.index,
                                .position = train::EncodePosition({.period_start = {{0, 0, 0}},
                                                                   .next = {period},
                                                                   .step = kTakenBefore,
                                                                   .period_step = kTakenBefore}),
                                .charges = bill.Take()});
    request.learners.back().allocation =
        train::EncodeAllocation(allocation, plan.charge.noise_multiplier);
    ASSERT_TRUE(store->Commit(std::move(request), {}));
    ASSERT_TRUE(store->Flush());
  }

  Stand LearnToTheEnd(const Assembly& assembly) {
    const auto source = OpenSource(assembly.config.source);
    EXPECT_TRUE(source) << source.error().message;
    const auto store = MustOpen(assembly);
    const SystemClock clock;
    metrics::Registry registry;
    train::Progress progress(assembly.learners.size());
    class : public event::DeadLetterSink {
      Status Write(std::span<const event::DeadLetter>) override {
        ADD_FAILURE() << "a record is dead";
        return {};
      }
    } letters;
    const auto positions = ReadPositions(assembly, *store);
    EXPECT_TRUE(positions);
    const auto learning = Learning::Make({.assembly = assembly,
                                          .store = *store,
                                          .source = **source,
                                          .dead_letters = letters,
                                          .clock = clock,
                                          .registry = registry,
                                          .progress = progress},
                                         *positions);
    EXPECT_TRUE(learning) << learning.error().message;
    EXPECT_TRUE((*learning)->intake().Start());
    const auto outcome = (*learning)->trainer().Run((*learning)->intake().steps());
    EXPECT_TRUE(outcome) << outcome.error().message;
    (*learning)->intake().Stop();
    const privacy::LedgerTotal total = store->Latest()->learners().at(0);
    return {.charged = total.steps,
            .epsilon = total.epsilon,
            .position = *train::DecodePosition(store->State(LearnerIndex(0)).position),
            .log = log_.str()};
  }

  static std::unique_ptr<store::Store> MustOpen(const Assembly& assembly) {
    auto store = store::Store::Open(MakeStoreOptions(assembly));
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }

  static void ExpectBegunAnew(const Stand& stand) {
    EXPECT_EQ(stand.charged, (kAnewPeriods + 1) * kAnewSteps);
    EXPECT_EQ(stand.position.step, kTakenBefore + kAnewPeriods * kAnewSteps);
    EXPECT_EQ(stand.position.begun_anew, 1u);
    EXPECT_NEAR(stand.epsilon, EpsilonOfPeriods(2), kNear) << "the first period was paid for twice";
    EXPECT_THAT(stand.log, AllOf(HasSubstr("learner 'it'"), HasSubstr("is begun anew, and charged "
                                                                      "once more")));
  }
  static void ExpectClosed(const Stand& stand) {
    EXPECT_EQ(stand.charged, kAnewPeriods * kAnewSteps);
    EXPECT_EQ(stand.position.step, kTakenBefore + (kAnewPeriods - 1) * kAnewSteps);
    EXPECT_EQ(stand.position.begun_anew, 0u);
    EXPECT_NEAR(stand.epsilon, EpsilonOfPeriods(1), kNear);
    EXPECT_THAT(stand.log,
                AllOf(HasSubstr("learner 'it'"),
                      HasSubstr("the period is closed after step 3, since its budget has "
                                "no room")));
  }
  // The allocation that the learner goes on with, where all is as it was.
  static stream::PeriodAllocation Known() {
    stream::PeriodAllocation known{.block_steps = kAnewBlockSteps, .period_steps = kAnewSteps};
    known.key.fill(7);
    return known;
  }

  const test::TempDir dir_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> logger_;
};

TEST_F(BeginsAnewTest, AKnownKeyGoesOnAndIsNotSpokenOf) {
  const Assembly assembly = Build({});
  Begin(assembly, Known());
  const Stand stand = LearnToTheEnd(assembly);
  EXPECT_EQ(stand.charged, kAnewPeriods * kAnewSteps);
  EXPECT_EQ(stand.position.step, kAnewPeriods * kAnewSteps);
  EXPECT_NEAR(stand.epsilon, EpsilonOfPeriods(1), kNear);
  EXPECT_THAT(stand.log, Not(HasSubstr("which records")));
}

TEST_F(BeginsAnewTest, ALostKeyBeginsThePeriodAnewWhereBothBudgetsHaveRoom) {
  const double both = EpsilonOfPeriods(2);
  const Assembly assembly = Build({.own = both * kRoom, .total = both * kRoom});
  Begin(assembly, std::nullopt);
  ExpectBegunAnew(LearnToTheEnd(assembly));
}

TEST_F(BeginsAnewTest, ALostKeyClosesThePeriodWhereTheLearnersBudgetHasNoRoom) {
  const Assembly assembly = Build({.own = EpsilonOfPeriods(2) * kNoRoom});
  Begin(assembly, std::nullopt);
  ExpectClosed(LearnToTheEnd(assembly));
}

TEST_F(BeginsAnewTest, ALostKeyClosesThePeriodWhereTheTotalBudgetHasNoRoom) {
  const Assembly assembly = Build({.total = EpsilonOfPeriods(2) * kNoRoom});
  Begin(assembly, std::nullopt);
  ExpectClosed(LearnToTheEnd(assembly));
}

// The key is there, and was drawn for other steps than those that would be charged from now on.
TEST_F(BeginsAnewTest, AKeyOfAnotherNoiseOrOtherBlocksIsNotKnown) {
  stream::PeriodAllocation other = Known();
  other.block_steps = kAnewSteps;
  const Assembly assembly = Build({});
  Begin(assembly, other);
  ExpectBegunAnew(LearnToTheEnd(assembly));
}

TEST_F(BeginsAnewTest, NoiseThatChangedWithinAPeriodBeginsItAnewAtItsOwnPrice) {
  Begin(Build({}, 2 * kAnewSigma), Known());
  const Stand stand = LearnToTheEnd(Build({}));
  EXPECT_EQ(stand.charged, (kAnewPeriods + 1) * kAnewSteps);
  EXPECT_EQ(stand.position.begun_anew, 1u);
  EXPECT_GT(stand.epsilon, EpsilonOfPeriods(1));
  EXPECT_LT(stand.epsilon, EpsilonOfPeriods(2));
  EXPECT_THAT(stand.log, HasSubstr("begun anew"));
}

// Unit user: the worst user was in every period, in the one that was begun anew twice.
TEST_F(BeginsAnewTest, UsersPayOnceMoreToo) {
  const double three = EpsilonOfPeriods(3) * kRoom;
  const Assembly wide = Build({.own = three}, kAnewSigma, "user");
  Begin(wide, std::nullopt);
  const Stand anew = LearnToTheEnd(wide);
  EXPECT_EQ(anew.charged, (kAnewPeriods + 1) * kAnewSteps);
  EXPECT_NEAR(anew.epsilon, EpsilonOfPeriods(3), kNear);
  EXPECT_THAT(anew.log, HasSubstr("is begun anew"));

  std::filesystem::remove_all(dir_ / "store");
  log_.str("");
  const Assembly narrow =
      Build({.own = three, .total = EpsilonOfPeriods(2) * kNoRoom}, kAnewSigma, "user");
  Begin(narrow, std::nullopt);
  const Stand closed = LearnToTheEnd(narrow);
  EXPECT_EQ(closed.charged, kAnewSteps) << "the next period would be a user's second one";
  EXPECT_THAT(closed.log, HasSubstr("is closed after step 3"));
}

}  // namespace
}  // namespace tacit::wiring
