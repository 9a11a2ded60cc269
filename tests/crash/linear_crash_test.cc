// A linear click model, killed at any moment: its weights with all their state, its released
// numbers and its bill end where an uninterrupted run ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
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

using test::TempDir;

constexpr size_t kLinearDays = 3, kLinearRows = 4000;
constexpr uint64_t kLinearPeriod = 700;  // periods end inside of files and at their ends
constexpr int kLinearKills = 20;

void WriteClicks(const TempDir& dir, std::mt19937_64& random) {
  for (size_t day = 0; day < kLinearDays; ++day) {
    std::string text;
    for (size_t row = 0; row < kLinearRows; ++row) {
      const auto colour = random() % 12, seen = random() % 100;
      const bool label = random() % 20 < colour + seen / 20;
      text += fmt::format(
          R"({{"label":{},"timestamp_ms":{},"features":{{"x":{},"c":"{}","many":"{}"}}}})"
          "\n",
          label ? 1 : 0, 1000 * (day * kLinearRows + row + 1), seen, colour, random() % 5000);
    }
    test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
  }
}

// The column of many values is released by threshold, the others whole.
void WriteLinearConfig(const TempDir& dir, const std::string& store) {
  test::WriteFile(
      dir / (store + ".yaml"),
      fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                  "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, "
                  "buckets: 40}}, {{name: many, kind: categorical, buckets: 2000}}]}}\n"
                  "learners:\n"
                  "  - id: sums\n"
                  "    model: {{kind: linear}}\n"
                  "    mechanism: {{kind: sums, whole_columns: 100, deviations: 3}}\n"
                  "    participation: {{mode: once, batch: {}}}\n"
                  "    privacy: {{unit: event, epsilon: 50, delta: 1.0e-6}}\n"
                  "store: {{path: {}, commit_interval_ms: 5}}\n"
                  "serve: {{listen: \"\"}}\n"
                  "training: {{idle_priority: false}}\n"
                  "memory: {{total_bytes: 400MiB}}\n",
                  dir / "day-*.jsonl", kLinearPeriod, dir / store));
}

struct LinearOutcome {
  std::map<uint64_t, std::vector<float>> rows;
  std::string released;
  uint64_t steps = 0;
  double epsilon = 0;
};

LinearOutcome ReadLinear(const TempDir& dir, const std::string& name) {
  auto config = config::Load(dir / (name + ".yaml"), {});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
  EXPECT_TRUE(store) << store.error().message;
  const auto snapshot = (*store)->Latest();
  LinearOutcome outcome;
  for (uint32_t table = 0; table < 3; ++table)
    EXPECT_TRUE(snapshot->ForWritten(
        LearnerIndex(0), table, [&](uint64_t row, std::span<const float> floats) {
          EXPECT_TRUE(outcome.rows.emplace(row, std::vector(floats.begin(), floats.end())).second)
              << "row " << row << " is listed twice";
        }));
  const auto released = snapshot->Released(LearnerIndex(0));
  EXPECT_NE(released, nullptr);
  outcome.released = *released;
  outcome.steps = snapshot->learners()[0].steps;
  outcome.epsilon = snapshot->learners()[0].epsilon;
  return outcome;
}

TEST(LinearCrash, KilledAnywhereEndsWhereAnUninterruptedRunEnds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const TempDir dir;
  WriteClicks(dir, random);
  WriteLinearConfig(dir, "whole");
  const auto begun = std::chrono::steady_clock::now();
  const test::Ended whole = test::Run(test::CrashCommand(dir, "whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  const LinearOutcome expected = ReadLinear(dir, "whole");
  EXPECT_EQ(expected.steps, kLinearDays * ((kLinearRows + kLinearPeriod - 1) / kLinearPeriod));
  EXPECT_GT(expected.rows.size(), 50u);

  test::Kills kills;
  for (int life = 0; kills.all < kLinearKills; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteLinearConfig(dir, store);
    test::RunWithKills(dir, store, took, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    const LinearOutcome outcome = ReadLinear(dir, store);
    EXPECT_EQ(outcome.rows, expected.rows);
    EXPECT_EQ(outcome.released, expected.released);
    EXPECT_EQ(outcome.steps, expected.steps);
    EXPECT_EQ(outcome.epsilon, expected.epsilon);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
  fmt::print("killed {} times, {} of them between two named moments\n", kills.all, kills.by_point);
}

}  // namespace
}  // namespace tacit
