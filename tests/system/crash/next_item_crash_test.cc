// Learners of the next item, killed at any moment: the model, what was released and every user's
// history end where an uninterrupted run ends, and the histories are what the log says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <vector>

#include "model/sequence/trained_scorer.h"
#include "model/transitions/scorer.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/store.h"
#include "support/process.h"
#include "system/crash/kills.h"
#include "train/counts/transitions_learner.h"
#include "train/learner/position.h"
#include "train/ranking/ranked_learner.h"
#include "train/sequence/sequence_learner.h"
#include "wiring/assembly.h"

namespace tacit {
namespace {

using test::Ended;
using test::TempDir;

constexpr uint32_t kItems = 30, kUsers = 60, kRemembered = 12, kPeriod = 400;
constexpr size_t kNextItemDays = 2, kRows = 2000;
constexpr int kNextItemKills = 20;

using Histories = std::map<std::string, std::vector<uint32_t>>;

// Two days of JSON lines and the catalogue; what users took of it, by the definition.
Histories WriteLog(const TempDir& dir, std::mt19937_64& random) {
  std::string catalogue;
  for (uint32_t i = 0; i < kItems; ++i) catalogue += fmt::format("item-{}\n", i);
  test::WriteFile(dir / "items.dat", catalogue);
  Histories taken;
  for (size_t day = 0; day < kNextItemDays; ++day) {
    std::string text;
    for (size_t row = 0; row < kRows; ++row) {
      const std::string user = fmt::format("user-{}", random() % kUsers);
      // Some are of no catalogue, some were passed over.
      const auto item = static_cast<uint32_t>(random() % (kItems + 3));
      const bool label = random() % 3 > 0;
      text += fmt::format(
          R"({{"label":{},"user":"{}","item":"item-{}","timestamp_ms":{},"features":{{"x":{}}}}})"
          "\n",
          label ? 1 : 0, user, item, 1000 * (day * kRows + row + 1), random() % 9);
      if (label && item < kItems) taken[user].push_back(item);
    }
    test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
  }
  for (auto& [user, items] : taken)
    if (items.size() > kRemembered) items.erase(items.begin(), items.end() - kRemembered);
  return taken;
}

void WriteConfig(const TempDir& dir, const std::string& store) {
  const std::string learner_end = fmt::format(
      "    history: {{items: {}}}\n"
      "    privacy: {{unit: user, epsilon: 50, delta: 1.0e-6}}\n",
      kRemembered);
  // Every user of a period is in each of its steps, so that two runs can be the same.
  const std::string sequence = fmt::format(
      "  - id: next\n"
      "    model: {{kind: sequence, width: 8, length: 8, blocks: 1}}\n"
      "    mechanism: {{kind: dp-sgd}}\n"
      "    participation: {{mode: poisson, period: {}, sampling_rate: 1, "
      "steps_per_period: 3, batch: 50, max_participations: 30}}\n"
      "    optimizer: {{kind: adam, learning_rate: 0.01}}\n",
      kPeriod);
  const std::string counts = fmt::format(
      "  - id: counts\n"
      "    model: {{kind: transitions}}\n"
      "    mechanism: {{kind: counts}}\n"
      "    participation: {{mode: once, batch: {}, max_participations: 10}}\n",
      kPeriod);
  // The same with what opens each period, and counts with their ranker.
  std::string more;
  for (const char* start : {"popularity", "counts"})
    more += fmt::format(
        "  - id: {}-start\n"
        "    model: {{kind: sequence, width: 8, length: 8, blocks: 1, start: {}, random_crops: "
        "true, warm_up_steps: 4}}\n"
        "    mechanism: {{kind: dp-sgd, clipping: automatic}}\n"
        "    participation: {{mode: poisson, period: {}, sampling_rate: 1, "
        "steps_per_period: 3, batch: 50, max_participations: 30}}\n"
        "    optimizer: {{kind: adam, learning_rate: 0.01, ema: 0.5}}\n{}",
        start, start, kPeriod, learner_end);
  // Carriers follow from the stored parameters and the step's number, warm-up and coins included;
  // the served answers know of their noise.
  for (const char* from : {"history", "random"})
    more += fmt::format(
        "  - id: {}-carriers\n"
        "    model: {{kind: sequence, width: 8, length: 8, blocks: 2, start: popularity, "
        "re_attention: 1}}\n"
        "    mechanism: {{kind: dp-sgd, carriers: {{from: {}, rank: 2{}}}}}\n"
        "    participation: {{mode: poisson, period: {}, sampling_rate: 1, "
        "steps_per_period: 3, batch: 50, max_participations: 30}}\n"
        "    optimizer: {{kind: adam, learning_rate: 0.01}}\n{}",
        from, from,
        from == std::string_view("history") ? ", power_steps: 2, warm_up_steps: 13" : "", kPeriod,
        learner_end);
  more += fmt::format(
      "  - id: ranked\n"
      "    model: {{kind: transitions, ranker: true, ranker_users: {}, ranker_steps: 5}}\n"
      "    mechanism: {{kind: counts}}\n"
      "    participation: {{mode: once, batch: {}, max_participations: 10}}\n{}",
      kUsers, kPeriod, learner_end);
  test::WriteFile(dir / (store + ".yaml"),
                  fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                              "catalogue: {{file: {}}}\n"
                              "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                              "learners:\n{}{}{}{}{}"
                              "store: {{path: {}, commit_interval_ms: 5}}\n"
                              "serve: {{listen: \"\"}}\n"
                              "training: {{idle_priority: false}}\n"
                              "memory: {{total_bytes: 600MiB}}\n",
                              dir / "day-*.jsonl", dir / "items.dat", sequence, learner_end, counts,
                              learner_end, more, dir / store));
}

struct NextItemOutcome {
  std::map<std::string, std::vector<float>> parameters, optimizer;
  std::map<std::string, std::string> released;
  std::map<std::string, uint64_t> steps;
  std::map<std::string, double> epsilon;
  double total = 0;
  std::map<std::string, Histories> remembered;
};

Histories ReadHistories(const store::Store& store, LearnerIndex learner, const Histories& users) {
  const SipHash hash(store.user_key());
  Histories read;
  for (const auto& [user, items] : users) {
    const auto history = store.Latest()->History(learner, hash(user));
    EXPECT_TRUE(history);
    for (const store::HistoryItem& item : *history) read[user].push_back(item.item);
  }
  return read;
}

// The scores of a learner that goes on from the store, by the learner's own code.
std::vector<float> LearnersScores(const wiring::LearnerPlan& plan, store::Store& store,
                                  std::span<const uint32_t> history) {
  WorkerPool workers({.workers = 1});
  const auto backend = ops::MakeCpuBackend(workers);
  const store::LearnerState state = store.State(plan.index);
  const auto position = train::DecodePosition(state.position);
  EXPECT_TRUE(position);
  auto learner = plan.model->Make({.noise = noise::MakeNoiseSource(),
                                   .backend = [&]() -> ops::Backend& { return *backend; },
                                   .workers = workers,
                                   .rows = store.working_rows(plan.index),
                                   .dense = state.dense.get(),
                                   .steps_taken = position->step});
  EXPECT_TRUE(learner) << learner.error().message;
  if (state.released) {
    EXPECT_TRUE((*learner)->LoadReleased(*state.released));
  }
  std::vector<float> scores(kItems);
  if (auto* const sequence = dynamic_cast<train::SequenceLearner*>(learner->get())) {
    model::TrainedScorer scorer;
    sequence->Publish(&scorer);
    EXPECT_TRUE(scorer.Score(history, scores));
  } else if (const auto* ranked = dynamic_cast<train::RankedLearner*>(learner->get())) {
    ranked->Score(history, scores);
  } else {
    const auto& counts = dynamic_cast<train::TransitionsLearner&>(**learner).released();
    model::transitions::Scorer(counts.estimate(), counts.options(), workers).Score(history, scores);
  }
  return scores;
}

// A commit is served with the scores that the learner itself computes, bit for bit.
void ExpectServedAsLearnt(const wiring::Assembly& assembly, store::Store& store) {
  const auto snapshot = store.Latest();
  for (const wiring::LearnerPlan& plan : assembly.learners) {
    SCOPED_TRACE(plan.id);
    const auto items = plan.model->Recommends();
    ASSERT_NE(items, nullptr);
    const auto state = items->Build(*snapshot, nullptr);
    ASSERT_TRUE(state) << state.error().message;
    ASSERT_NE(*state, nullptr);
    const auto scorer = items->MakeScorer();
    for (const std::vector<uint32_t>& history :
         std::vector<std::vector<uint32_t>>{{0}, {3, 7, 3}, {29, 1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      std::vector<float> served(kItems);
      ASSERT_TRUE(scorer->Score(**state, history, served));
      EXPECT_EQ(served, LearnersScores(plan, store, history));
    }
  }
}

NextItemOutcome ReadOutcome(const TempDir& dir, const std::string& name, const Histories& users,
                            bool compare_served = false) {
  auto config = config::Load(dir / (name + ".yaml"), {});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
  EXPECT_TRUE(store) << store.error().message;
  const auto snapshot = (*store)->Latest();
  NextItemOutcome outcome;
  for (const wiring::LearnerPlan& plan : assembly->learners) {
    if (const auto dense = snapshot->Dense(plan.index)) {
      outcome.parameters[plan.id] = dense->parameters;
      outcome.optimizer[plan.id] = dense->optimizer;
    }
    if (const auto released = snapshot->Released(plan.index)) outcome.released[plan.id] = *released;
    outcome.remembered[plan.id] = ReadHistories(**store, plan.index, users);
  }
  for (const auto& learner : snapshot->learners()) {
    outcome.steps[learner.learner] = learner.steps;
    outcome.epsilon[learner.learner] = learner.epsilon;
  }
  outcome.total = snapshot->total().epsilon;
  if (compare_served) ExpectServedAsLearnt(*assembly, **store);
  return outcome;
}

void ExpectSame(const NextItemOutcome& a, const NextItemOutcome& b) {
  EXPECT_TRUE(a.parameters == b.parameters) << "parameters differ";
  EXPECT_TRUE(a.optimizer == b.optimizer) << "optimiser state differs";
  for (const auto& [learner, released] : b.released)
    EXPECT_TRUE(a.released.contains(learner) && a.released.at(learner) == released)
        << "what " << learner << " released differs";
  EXPECT_EQ(a.released.size(), b.released.size());
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.epsilon, b.epsilon);
  EXPECT_EQ(a.total, b.total);
  EXPECT_EQ(a.remembered, b.remembered);
}

TEST(NextItemCrashTest, KilledAnywhereEndsWhereAnUninterruptedRunEnds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  const Histories taken = WriteLog(dir, random);
  WriteConfig(dir, "whole");
  const auto start = std::chrono::steady_clock::now();
  const Ended whole = test::Run(test::CrashCommand(dir, "whole"));
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const NextItemOutcome expected = ReadOutcome(dir, "whole", taken, /*compare_served=*/true);
  constexpr uint64_t kPeriods = kNextItemDays * kRows / kPeriod;
  // An opening is a release of its own on the ledger.
  EXPECT_EQ(expected.steps, (std::map<std::string, uint64_t>{{"counts", kPeriods},
                                                             {"counts-start", 4 * kPeriods},
                                                             {"history-carriers", 4 * kPeriods},
                                                             {"next", 3 * kPeriods},
                                                             {"popularity-start", 4 * kPeriods},
                                                             {"random-carriers", 4 * kPeriods},
                                                             {"ranked", kPeriods}}));
  EXPECT_EQ(expected.parameters.size(), 5u);
  EXPECT_EQ(expected.released.size(), 6u);
  for (const auto& [learner, remembered] : expected.remembered) EXPECT_EQ(remembered, taken);
  for (const auto& [learner, epsilon] : expected.epsilon) {
    EXPECT_LE(epsilon, 50) << learner;
    EXPECT_GT(epsilon, 49) << learner;
  }

  test::Kills kills;
  for (int life = 0; kills.all < kNextItemKills; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteConfig(dir, store);
    test::RunWithKills(dir, store, whole_ms, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    ExpectSame(ReadOutcome(dir, store, taken), expected);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
  fmt::print("killed {} times, {} of them between two named moments\n", kills.all, kills.by_point);
}

}  // namespace
}  // namespace tacit
