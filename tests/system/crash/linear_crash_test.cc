// A linear click model, killed at any moment: its weights with all their state, its released
// numbers and its bill end where an uninterrupted run ends.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <vector>

#include "base/cpu.h"
#include "support/process.h"
#include "system/crash/kills.h"
#include "system/crash/linear_outcome.h"

namespace tacit {
namespace {

using test::LinearOutcome;
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
void WriteLinearConfig(const TempDir& dir, const std::string& store, int commit_ms = 5,
                       uint64_t period = kLinearPeriod) {
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
                  "store: {{path: {}, commit_interval_ms: {}}}\n"
                  "serve: {{listen: \"\"}}\n"
                  "training: {{idle_priority: false}}\n"
                  "memory: {{total_bytes: 400MiB}}\n",
                  dir / "day-*.jsonl", period, dir / store, commit_ms));
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
  const LinearOutcome expected = test::ReadLinear(dir / "whole.yaml");
  EXPECT_EQ(expected.steps, 1 + kLinearDays * ((kLinearRows + kLinearPeriod - 1) / kLinearPeriod))
      << "an opening, and the periods";
  EXPECT_GT(expected.rows.size(), 50u);

  test::Kills kills;
  for (int life = 0; kills.all < kLinearKills; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteLinearConfig(dir, store);
    test::RunWithKills(dir, store, took, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    const LinearOutcome outcome = test::ReadLinear(dir / (store + ".yaml"));
    EXPECT_EQ(outcome.rows, expected.rows);
    EXPECT_EQ(outcome.released, expected.released);
    EXPECT_EQ(outcome.position, expected.position);
    EXPECT_EQ(outcome.steps, expected.steps);
    EXPECT_EQ(outcome.epsilon, expected.epsilon);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
  fmt::print("killed {} times, {} of them between two named moments\n", kills.all, kills.by_point);
}

// A machine, as far as code asks what it has: the kernel's text in the daemon's log, and what makes
// libraries and kernels of our own compute as they do there.
struct Machine {
  std::string kernels;
  std::vector<std::string> environment;
};

std::vector<Machine> Machines() {
  std::vector<Machine> machines = {
      {"AVX2",
       {"TACIT_TEST_NO_AVX512=1", "SIMDJSON_FORCE_IMPLEMENTATION=haswell",
        "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"}},
      // The C library's functions without fused products round otherwise.
      {"AVX2",
       {"TACIT_TEST_NO_AVX512=1", "SIMDJSON_FORCE_IMPLEMENTATION=westmere",
        "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-FMA"}}};
  if (ThisCpu().avx512) machines.push_back({KernelText(ThisCpu()), {}});
  return machines;
}

// A store goes from machine to machine, killed after its second commit on each: its bill and its
// steps are exactly those of the store that stays, its weights to the last digits of f32.
TEST(LinearCrash, AStoreThatMovesBetweenMachinesIsTheStoreThatStays) {
  std::mt19937_64 random(7);
  const TempDir dir;
  WriteClicks(dir, random);
  for (const char* name : {"stays", "moves"})
    WriteLinearConfig(dir, name, /*commit_ms=*/1, /*period=*/100);
  const test::Ended whole = test::Run(test::CrashCommand(dir, "stays"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;

  const std::vector<Machine> machines = Machines();
  std::vector<int> visits(machines.size());
  for (size_t life = 0;; ++life) {
    ASSERT_LT(life, 1000u);
    const size_t m = life % machines.size();
    std::vector<std::string> environment = machines[m].environment;
    environment.push_back("TACIT_TEST_CRASH_AT=commit.published:2");
    const test::Ended ended = test::Run(test::CrashCommand(dir, "moves"), environment);
    EXPECT_NE(ended.err.find("kernels for " + machines[m].kernels + "\n"), std::string::npos)
        << ended.err;
    if (ended.signal != SIGKILL) {
      ASSERT_EQ(ended.exit_code, 0) << ended.err;
      break;
    }
    ++visits[m];
  }
  for (size_t m = 0; m < machines.size(); ++m)
    EXPECT_GT(visits[m], 1) << "machine " << m << " has hardly learnt";

  const LinearOutcome stays = test::ReadLinear(dir / "stays.yaml"),
                      moves = test::ReadLinear(dir / "moves.yaml");
  EXPECT_EQ(moves.steps, stays.steps);
  EXPECT_EQ(moves.epsilon, stays.epsilon);
  EXPECT_EQ(moves.released.size(), stays.released.size());
  ASSERT_EQ(moves.rows.size(), stays.rows.size());
  float furthest = 0;
  for (const auto& [row, floats] : stays.rows) {
    const auto moved = moves.rows.find(row);
    ASSERT_NE(moved, moves.rows.end()) << row;
    for (size_t i = 0; i < floats.size(); ++i)
      furthest = std::max(
          furthest, std::abs(moved->second[i] - floats[i]) / std::max(1.0f, std::abs(floats[i])));
  }
  EXPECT_LE(furthest, 1e-5f);
}

}  // namespace
}  // namespace tacit
