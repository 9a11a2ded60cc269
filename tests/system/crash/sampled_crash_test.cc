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

#include "support/json.h"
#include "support/small_run.h"
#include "system/crash/kills.h"
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

// Users of about 40 records a period. Each may be in the steps of three of the four periods.
constexpr uint64_t kUsers = 50, kAllowance = 3 * 30;

void WriteUserLog(const TempDir& dir, const std::string& name) {
  for (int day = 0; day < 2; ++day) {
    std::mt19937_64 random(static_cast<uint64_t>(day));
    std::string text;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t user = random() % kUsers;
      text +=
          fmt::format(R"({{"label":{},"user":"u{}","features":{{"I1":{},"C1":"{}","C2":"{}"}}}}{})",
                      random() % 4 == 0 ? 1 : 0, user, random() % 50, random() % 60, user, '\n');
    }
    test::WriteFile(dir / fmt::format("{}-{}.jsonl", name, day), text);
  }
}

struct AllocationRun {
  std::string unit = "event", files = "day-*.tsv", source = "";
};

void WriteAllocationConfig(const TempDir& dir, const std::string& store, const AllocationRun& of) {
  test::SmallRun run;
  run.store = store;
  run.files = of.files;
  run.source = of.source;
  run.mechanism = "{kind: dp-sgd}";
  run.privacy = fmt::format("{{unit: {}, epsilon: 8, delta: 1.0e-6}}", of.unit);
  const bool users = of.unit == "user";
  run.participation = fmt::format(
      "{{mode: allocate, batch: {}, steps_per_period: 10, blocks: 3, period: 2000{}}}",
      users ? 5 : 200, users ? fmt::format(", max_participations: {}", kAllowance) : "");
  const std::string path = run.WriteConfig(dir);
  std::string yaml = test::ReadFile(path);
  const std::string usual = "{kind: adam, learning_rate: 0.002}";
  yaml.replace(yaml.find(usual), usual.size(), "{kind: sgd, learning_rate: 1.0e-7}");
  test::WriteFile(path, yaml);
}

// Without noise, and with a learning rate that hardly moves the model, what a parameter that began
// at zero has come to is the sum of all gradients taken, in any steps.
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

constexpr double kRounding = 3e-5;

struct WholeRun {
  std::vector<double> sums;
  std::chrono::milliseconds took{};
};

// Every run draws keys of its own: that the sums of a second one are the first one's shows that
// they do not depend on who is in which step.
WholeRun RunWhole(const TempDir& dir, const AllocationRun& of) {
  WholeRun whole;
  for (const char* store : {"whole", "again"}) {
    WriteAllocationConfig(dir, store, of);
    const auto start = std::chrono::steady_clock::now();
    const Ended ended = test::Run(test::CrashCommand(dir, store));
    whole.took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    ExpectCharged(dir, store);
    const std::vector<double> sums = SumOfGradients(dir, store);
    EXPECT_GT(sums.size(), 16u);
    if (whole.sums.empty()) whole.sums = sums;
    EXPECT_LT(Apart(whole.sums, sums), kRounding);
  }
  return whole;
}

// Killed over and over, the daemon learns what it learns when it is left alone. The keys of this
// build differ from each other, so that one drawn anew within a period would be seen.
void ExpectTheSameOverKills(const TempDir& dir, const AllocationRun& of, const WholeRun& whole,
                            std::mt19937_64& random) {
  test::Kills kills;
  for (int life = 0; kills.all < kSampledKills; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteAllocationConfig(dir, store, of);
    test::RunWithKills(dir, store, whole.took, random, &kills);
    if (testing::Test::HasFatalFailure()) return;
    ExpectCharged(dir, store);
    EXPECT_LT(Apart(whole.sums, SumOfGradients(dir, store)), kRounding);
    if (testing::Test::HasFailure()) return;
    std::filesystem::remove_all(dir / store);
  }
}

TEST(SampledCrashTest, AnAllocationLearnsFromEachRecordOnceABlockOverKills) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  test::WriteSmallLog(dir, 2, 4000, 3);
  const WholeRun whole = RunWhole(dir, {});
  if (HasFailure()) return;

  // One record that is there twice, and one that is not there, would be seen.
  const std::string first = test::ReadFile(dir / "day-0.tsv");
  const std::string line = first.substr(0, first.find('\n') + 1);
  test::WriteFile(dir / "twice-0.tsv", line + first);
  test::WriteFile(dir / "twice-1.tsv", test::ReadFile(dir / "day-1.tsv"));
  WriteAllocationConfig(dir, "twice", {.files = "twice-*.tsv"});
  ASSERT_EQ(test::Run(test::CrashCommand(dir, "twice")).exit_code, 0);
  EXPECT_GT(Apart(whole.sums, SumOfGradients(dir, "twice")), 3 * kRounding);

  ExpectTheSameOverKills(dir, {}, whole, random);
}

// Users are counted for a period when it begins: those without room for it are in none of its
// steps, and a kill changes neither who they are nor what the others are in.
TEST(SampledCrashTest, AnAllocationOfUsersLearnsFromEachOnceABlockOverKills) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  WriteUserLog(dir, "shop");
  const AllocationRun users{.unit = "user", .files = "shop-*.jsonl", .source = ", format: json"};
  const WholeRun whole = RunWhole(dir, users);
  if (HasFailure()) return;

  // One user with one more record, in one period, would be seen.
  test::WriteFile(dir / "more-0.jsonl",
                  R"({"label":1,"user":"u1","features":{"I1":49,"C1":"x","C2":"y"}})"
                  "\n" +
                      test::ReadFile(dir / "shop-0.jsonl"));
  test::WriteFile(dir / "more-1.jsonl", test::ReadFile(dir / "shop-1.jsonl"));
  AllocationRun more = users;
  more.files = "more-*.jsonl";
  WriteAllocationConfig(dir, "more", more);
  ASSERT_EQ(test::Run(test::CrashCommand(dir, "more")).exit_code, 0);
  EXPECT_GT(Apart(whole.sums, SumOfGradients(dir, "more")), 3 * kRounding);

  ExpectTheSameOverKills(dir, users, whole, random);
}

}  // namespace
}  // namespace tacit
