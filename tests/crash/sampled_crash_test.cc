// A sampled learner killed over and over: the period is read again, every step is taken once and
// charged once, and the bill is that of the sampled Gaussian.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "crash/kills.h"
#include "support/json.h"
#include "support/small_run.h"

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

}  // namespace
}  // namespace tacit
