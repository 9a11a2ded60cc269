// A learner whose budget is used up, beside one that goes on, when the store is opened again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

#include "support/process.h"
#include "train/learner/position.h"
#include "wiring/learning.h"
#include "wiring/plans/source.h"

namespace tacit::wiring {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSpentOffsets = 100, kSpentLater = 200;  // of the first file, and the second
constexpr double kSpentWide = 100, kSpentHardly = 1.0001;

// A run's end: the records that it read, and each learner's place behind it.
struct SpentRun {
  train::Outcome outcome = train::Outcome::kStopped;
  uint64_t read = 0;
  std::vector<uint64_t> reached;
  std::vector<double> epsilon;
  double total = 0;  // epsilon
  std::vector<privacy::Spent> spent;
  std::string log;
};

class SpentLearnerTest : public ::testing::Test {
 protected:
  SpentLearnerTest() : logger_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "told", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    Write("day-0.jsonl", kSpentOffsets);
  }
  ~SpentLearnerTest() override { spdlog::set_default_logger(logger_); }

  void Write(const std::string& name, uint64_t records) const {
    std::string text;
    for (uint64_t i = 0; i < records; ++i)
      text += fmt::format(R"({{"label":{},"user":"u{}","features":{{"n":{}}}}}{})", i % 2, i % 10,
                          i % 7, '\n');
    test::WriteFile(dir_ / name, text);
  }
  // Learns from all that is there. Every period costs a user more. `near` is the budget of the
  // second learner, which has so much noise from then on.
  SpentRun Learn(double near, double sigma = 1, double total = 1000) {
    const auto learner = [](const std::string& id, double epsilon, double noise) {
      return fmt::format(
          "  - id: {}\n"
          "    model: {{kind: pctr, hidden: [4]}}\n"
          "    mechanism: {{kind: dp-sgd, noise_multiplier: {}}}\n"
          "    participation: {{mode: poisson, batch: 25, sampling_rate: 0.25, steps_per_period: "
          "4, period: "
          "{}, max_participations: 12}}\n"
          "    privacy: {{unit: user, epsilon: {}, delta: 1.0e-6}}\n",
          id, noise, kSpentOffsets, epsilon);
    };
    auto config = config::Parse(fmt::format("source: {{kind: log, format: json, files: {}}}\n"
                                            "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                                            "learners:\n{}{}"
                                            "budget: {{epsilon: {}, delta: 2.0e-6}}\n"
                                            "store: {{path: {}, witness: none}}\n"
                                            "training: {{workers: 1, idle_priority: false}}\n",
                                            dir_ / "day-*.jsonl", learner("far", kSpentWide, 1),
                                            learner("near", near, sigma), total, dir_ / "store"),
                                "spent", {});
    EXPECT_TRUE(config) << config.error().message;
    const auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return Learn(*assembly);
  }

  SpentRun Learn(const Assembly& assembly) {
    log_.str("");
    const auto source = OpenSource(assembly.config.source);
    auto store = store::Store::Open(MakeStoreOptions(assembly));
    EXPECT_TRUE(store) << store.error().message;
    const SystemClock clock;
    metrics::Registry registry;
    train::Progress progress(assembly.learners.size());
    class : public event::DeadLetterSink {
      Status Write(std::span<const event::DeadLetter>) override { return {}; }
    } letters;
    const auto learning = Learning::Make({.assembly = assembly,
                                          .store = **store,
                                          .source = **source,
                                          .dead_letters = letters,
                                          .clock = clock,
                                          .registry = registry,
                                          .progress = progress},
                                         *ReadPositions(assembly, **store));
    EXPECT_TRUE(learning) << learning.error().message;
    EXPECT_TRUE((*learning)->intake().Start());
    const auto outcome = (*learning)->trainer().Run((*learning)->intake().steps());
    EXPECT_TRUE(outcome) << outcome.error().message;
    SpentRun run;
    run.outcome = *outcome;
    (*learning)->intake().Stop();
    run.read = (*learning)->intake().records_read();
    for (const LearnerPlan& plan : assembly.learners) {
      const auto position = train::DecodePosition((*store)->State(plan.index).position);
      run.reached.push_back(position->next.empty() ? 0 : position->next[0].begin);
      run.spent.push_back((*learning)->trainer().spent(plan.index));
      for (const privacy::LedgerTotal& total : (*store)->Latest()->learners())
        if (total.learner == plan.id) run.epsilon.push_back(total.epsilon);
    }
    run.total = (*store)->Latest()->total().epsilon;
    run.log = log_.str();
    return run;
  }

  const test::TempDir dir_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> logger_;
};

TEST_F(SpentLearnerTest, IsNotReadForUntilItsBudgetHasRoomAgain) {
  constexpr double kMoreNoise = 5;
  const double spent = Learn(kSpentWide).epsilon.at(1);
  Write("day-1.jsonl", kSpentLater);
  const SpentRun first = Learn(spent * kSpentHardly, kMoreNoise);
  EXPECT_EQ(first.read, kSpentLater);
  EXPECT_THAT(first.reached, ElementsAre(kSpentOffsets + kSpentLater, kSpentOffsets));
  EXPECT_EQ(first.epsilon.at(1), spent);

  // Used up, or less than was spent: either way none of its records is read again.
  for (const double near : {spent * kSpentHardly, spent / kSpentHardly}) {
    const SpentRun again = Learn(near, kMoreNoise);
    EXPECT_EQ(again.read, 0u);
    EXPECT_EQ(again.outcome, train::Outcome::kEndOfSource);
    EXPECT_EQ(again.reached, first.reached) << "its place is kept";
    EXPECT_EQ(again.epsilon, first.epsilon);
    EXPECT_THAT(again.spent, ElementsAre(privacy::Spent::kNone, privacy::Spent::kOwn));
    EXPECT_THAT(again.log, HasSubstr("learner 'near': its budget has no room for another step"));
    EXPECT_THAT(again.log, Not(HasSubstr("learner 'far'")));
  }

  // With more it goes on from where it stopped, and leaves nothing out.
  const SpentRun more = Learn(kSpentWide, kMoreNoise);
  EXPECT_EQ(more.read, kSpentLater);
  EXPECT_THAT(more.reached, Each(kSpentOffsets + kSpentLater));
  EXPECT_THAT(more.spent, Each(privacy::Spent::kNone));
  EXPECT_GT(more.epsilon.at(1), spent);
}

TEST_F(SpentLearnerTest, NothingIsReadWhereTheTotalIsSpent) {
  const double spent = Learn(kSpentWide).total;
  Write("day-1.jsonl", kSpentLater);
  const SpentRun again = Learn(kSpentWide, 1, spent * kSpentHardly);
  EXPECT_EQ(again.read, 0u);
  EXPECT_EQ(again.outcome, train::Outcome::kBudgetExhausted);
  EXPECT_THAT(again.reached, Each(kSpentOffsets));
  EXPECT_THAT(again.spent, Each(privacy::Spent::kTotal));
  EXPECT_THAT(again.log, HasSubstr("learner 'far': the total budget has no room for another step"));
  const SpentRun more = Learn(kSpentWide);
  EXPECT_EQ(more.read, kSpentLater);
  EXPECT_THAT(more.reached, Each(kSpentOffsets + kSpentLater));
}

}  // namespace
}  // namespace tacit::wiring
