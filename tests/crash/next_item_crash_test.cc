// Learners of the next item, killed at any moment: the model, what was released and every user's
// history end where an uninterrupted run ends, and the histories are what the log says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <vector>

#include "crash/kills.h"
#include "store/store.h"
#include "support/process.h"
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
  test::WriteFile(dir / (store + ".yaml"),
                  fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                              "catalogue: {{file: {}}}\n"
                              "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                              "learners:\n{}{}{}{}"
                              "store: {{path: {}, commit_interval_ms: 5}}\n"
                              "serve: {{listen: \"\"}}\n"
                              "training: {{idle_priority: false}}\n"
                              "memory: {{total_bytes: 400MiB}}\n",
                              dir / "day-*.jsonl", dir / "items.dat", sequence, learner_end, counts,
                              learner_end, dir / store));
}

struct NextItemOutcome {
  std::vector<float> parameters, optimizer;
  std::string released;
  std::vector<uint64_t> steps;  // by the learners' names
  double epsilon = 0;
  Histories next, counts;
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

NextItemOutcome ReadOutcome(const TempDir& dir, const std::string& name, const Histories& users) {
  auto config = config::Load(dir / (name + ".yaml"), {});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
  EXPECT_TRUE(store) << store.error().message;
  const auto snapshot = (*store)->Latest();
  NextItemOutcome outcome;
  const auto dense = snapshot->Dense(LearnerIndex(0));
  EXPECT_NE(dense, nullptr);
  outcome.parameters = dense->parameters;
  outcome.optimizer = dense->optimizer;
  const auto released = snapshot->Released(LearnerIndex(1));
  EXPECT_NE(released, nullptr);
  outcome.released = *released;
  for (const auto& learner : snapshot->learners()) outcome.steps.push_back(learner.steps);
  outcome.epsilon = snapshot->total().epsilon;
  outcome.next = ReadHistories(**store, LearnerIndex(0), users);
  outcome.counts = ReadHistories(**store, LearnerIndex(1), users);
  return outcome;
}

void ExpectSame(const NextItemOutcome& a, const NextItemOutcome& b) {
  EXPECT_TRUE(a.parameters == b.parameters) << "parameters differ";
  EXPECT_TRUE(a.optimizer == b.optimizer) << "optimiser state differs";
  EXPECT_TRUE(a.released == b.released) << "what was released differs";
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.epsilon, b.epsilon);
  EXPECT_EQ(a.next, b.next);
  EXPECT_EQ(a.counts, b.counts);
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
  const NextItemOutcome expected = ReadOutcome(dir, "whole", taken);
  constexpr uint64_t kPeriods = kNextItemDays * kRows / kPeriod;
  EXPECT_EQ(expected.steps, (std::vector<uint64_t>{kPeriods, 3 * kPeriods}));
  EXPECT_EQ(expected.next, taken);
  EXPECT_EQ(expected.counts, taken);

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
