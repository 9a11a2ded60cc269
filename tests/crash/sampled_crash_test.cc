// Learners that hold periods, killed over and over: the period is read again, every step is taken
// once and charged once, and the bill is that of the sampled Gaussian or of the allocation. With an
// allocation each record is learnt from exactly as often as there are blocks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <vector>

#include "crash/kills.h"
#include "support/json.h"
#include "support/small_run.h"
#include "wiring/assembly.h"

namespace tacit {
namespace {

using std::chrono::milliseconds;
using test::Ended;
using test::Json;
using test::TempDir;

constexpr uint64_t kSteps = 4 * 30;
constexpr int kSampledKills = 10;

void WriteConfig(const TempDir& dir, const std::string& store) {
  test::SmallRun run;
  run.store = store;
  run.participation =
      "{mode: poisson, batch: 200, sampling_rate: 0.1, steps_per_period: 30, period: 2000}";
  run.WriteConfig(dir);
}

void ExpectCharged(const TempDir& dir, const std::string& store) {
  const auto ledger = Json(test::Run({TACIT, "ledger", "show", "--store", dir / store, "--json"}));
  EXPECT_EQ(ledger.at("learners").at(0).at("steps"), kSteps);
  EXPECT_EQ(ledger.at("entries"), 1) << "one run of equal steps";
  const double epsilon = ledger.at("total").at("epsilon").to_number<double>();
  EXPECT_LE(epsilon, 8);
  EXPECT_GT(epsilon, 7.9);
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir / store}).exit_code, 0);
}

TEST(SampledCrashTest, APeriodIsReadAgainAfterAKill) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  test::WriteSmallLog(dir, 2, 4000, 3);
  WriteConfig(dir, "whole");
  const auto start = std::chrono::steady_clock::now();
  const Ended whole = test::Run(test::CrashCommand(dir, "whole"));
  const auto whole_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ExpectCharged(dir, "whole");
  test::Kills kills;
  for (int life = 0; kills.all < kSampledKills; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteConfig(dir, store);
    test::RunWithKills(dir, store, whole_ms, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    ExpectCharged(dir, store);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
}

// ---- allocate ----

void WriteAllocationConfig(const TempDir& dir, const std::string& store,
                           const std::string& files = "day-*.tsv") {
  test::SmallRun run;
  run.store = store;
  run.files = files;
  run.mechanism = "{kind: dp-sgd}";
  run.participation = "{mode: allocate, batch: 200, steps_per_period: 10, blocks: 3, period: 2000}";
  const std::string path = run.WriteConfig(dir);
  std::string yaml = test::ReadFile(path);
  const std::string usual = "{kind: adam, learning_rate: 0.002}";
  yaml.replace(yaml.find(usual), usual.size(), "{kind: sgd, learning_rate: 1.0e-7}");
  test::WriteFile(path, yaml);
}

// Without noise, and with a learning rate that hardly moves the model, what a parameter that began
// at zero has come to is the sum of all gradients taken, whatever steps they were taken in.
std::vector<double> SumOfGradients(const TempDir& dir, const std::string& store) {
  const auto config = config::Load(dir / (store + ".yaml"), {});
  EXPECT_TRUE(config) << config.error().message;
  const auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  const auto opened = store::Store::Open(wiring::MakeStoreOptions(*assembly));
  EXPECT_TRUE(opened) << opened.error().message;
  const auto forgotten = (*opened)->ReadAllocation(LearnerIndex(0));
  EXPECT_TRUE(forgotten);
  EXPECT_EQ(*forgotten, "") << "a key outlives its period";
  std::vector<double> sums;
  for (const float number : (*opened)->State(LearnerIndex(0)).dense->parameters)
    if (number != 0 && std::abs(number) < 2e-6f) sums.push_back(number);
  return sums;
}

// The length of the difference of two sums, over that of the first.
double Apart(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double between = 0, length = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    between += (a[i] - b[i]) * (a[i] - b[i]);
    length += a[i] * a[i];
  }
  return std::sqrt(between / length);
}

// This build draws the same key for every period. That a key is kept over a restart is tested where
// keys differ: AllocationTest of tests/stream and of tests/store.
TEST(SampledCrashTest, AnAllocationLearnsFromEachRecordOnceABlockOverKills) {
  constexpr double kRounding = 3e-5;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  test::WriteSmallLog(dir, 2, 4000, 3);
  WriteAllocationConfig(dir, "whole");
  const auto start = std::chrono::steady_clock::now();
  const Ended whole = test::Run(test::CrashCommand(dir, "whole"));
  const auto whole_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ExpectCharged(dir, "whole");
  const std::vector<double> sums = SumOfGradients(dir, "whole");
  ASSERT_GT(sums.size(), 16u);

  // One record that is there twice, and one that is not there, would be seen.
  const std::string first = test::ReadFile(dir / "day-0.tsv");
  const std::string line = first.substr(0, first.find('\n') + 1);
  test::WriteFile(dir / "twice-0.tsv", line + first);
  test::WriteFile(dir / "twice-1.tsv", test::ReadFile(dir / "day-1.tsv"));
  WriteAllocationConfig(dir, "twice", "twice-*.tsv");
  ASSERT_EQ(test::Run(test::CrashCommand(dir, "twice")).exit_code, 0);
  EXPECT_GT(Apart(sums, SumOfGradients(dir, "twice")), 3 * kRounding);

  test::Kills kills;
  for (int life = 0; kills.all < kSampledKills; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteAllocationConfig(dir, store);
    test::RunWithKills(dir, store, whole_ms, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    ExpectCharged(dir, store);
    EXPECT_LT(Apart(sums, SumOfGradients(dir, store)), kRounding);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
}

}  // namespace
}  // namespace tacit
