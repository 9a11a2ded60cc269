// The daemon killed at any moment and started again must end where an uninterrupted run ends: the
// same model to the last bit, the same offsets, the same charge. Noise is zero in this build, so
// that "the same" means something.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "privacy/ledger.h"
#include "store/store.h"
#include "support/process.h"
#include "support/small_run.h"
#include "system/crash/kills.h"
#include "wiring/assembly.h"

namespace tacit {
namespace {

using std::chrono::milliseconds;
using test::Ended;
using test::TempDir;

constexpr uint32_t kDays = 3;
constexpr uint64_t kRowsPerDay = 5000;
constexpr int kKills = 50, kCarrierKills = 10;

void WriteLog(const TempDir& dir) {
  test::WriteSmallLog(dir, kDays, kRowsPerDay, 7);
  std::string lines = test::ReadFile(dir / "day-1.tsv");
  lines.insert(lines.find('\n') + 1, "not\ta\tclick\n");
  test::WriteFile(dir / "day-1.tsv", lines);
}

// Every part at work: mask, clip, Adam, folds, a dead letter, two passes (so that the second
// participation is charged).
void WriteConfig(const TempDir& dir, const std::string& store, const std::string& mechanism) {
  test::SmallRun run;
  run.store = store;
  if (!mechanism.empty()) run.mechanism = mechanism;
  run.passes = run.max_participations = 2;
  run.WriteConfig(dir);
}

// Everything a finished run has come to.
struct Outcome {
  std::vector<float> parameters, optimizer, rows;
  uint64_t steps = 0;
  double epsilon = 0, worst_mu_squared = 0;
  size_t dead_letters = 0;
};

wiring::Assembly LoadAssembly(const std::string& config_path) {
  auto config = config::Load(config_path, {});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return *assembly;
}

Outcome ReadOutcome(const TempDir& dir, const std::string& store) {
  const wiring::Assembly assembly = LoadAssembly(dir / (store + ".yaml"));
  auto opened =
      store::OpenReadOnly(dir / store, dir / (store + ".witness"), wiring::MakeLayouts(assembly));
  EXPECT_TRUE(opened) << opened.error().message;
  if (!opened) return {};
  EXPECT_TRUE(privacy::VerifyChain(opened->entries));
  Outcome outcome;
  const auto dense = opened->snapshot->Dense(LearnerIndex(0));
  EXPECT_NE(dense, nullptr);
  outcome.parameters = dense->parameters;
  outcome.optimizer = dense->optimizer;
  const RowSpace& space = assembly.transform->row_space();
  std::vector<uint64_t> ids(space.rows());
  size_t floats = 0;
  for (uint64_t row = 0; row < ids.size(); ++row) {
    ids[row] = row;
    floats += space.tables()[space.TableOf(row)].dim;
  }
  outcome.rows.resize(floats);
  EXPECT_TRUE(opened->snapshot->Rows(LearnerIndex(0), ids, outcome.rows));
  outcome.steps = opened->snapshot->learners().at(0).steps;
  outcome.epsilon = opened->snapshot->total().epsilon;
  outcome.worst_mu_squared = opened->entries.back().worst.mu_squared;
  const std::string letters = test::ReadFile(dir / (store + ".dead-letters.jsonl"));
  outcome.dead_letters = static_cast<size_t>(std::count(letters.begin(), letters.end(), '\n'));
  return outcome;
}

void ExpectSame(const Outcome& a, const Outcome& b) {
  const auto same_bits = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * 4) == 0;
  };
  EXPECT_TRUE(same_bits(a.parameters, b.parameters)) << "dense parameters differ";
  EXPECT_TRUE(same_bits(a.optimizer, b.optimizer)) << "optimiser state differs";
  EXPECT_TRUE(same_bits(a.rows, b.rows)) << "embedding rows differ";
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.epsilon, b.epsilon);
  EXPECT_EQ(a.worst_mu_squared, b.worst_mu_squared);
  EXPECT_EQ(a.dead_letters, b.dead_letters);
}

// An empty mechanism: the usual one.
void ExpectKillsChangeNothing(const std::string& mechanism, int kills_wanted) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  WriteLog(dir);

  WriteConfig(dir, "whole", mechanism);
  const auto start = std::chrono::steady_clock::now();
  const Ended whole = test::Run(test::CrashCommand(dir, "whole"));
  const auto whole_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Outcome expected = ReadOutcome(dir, "whole");
  // 5000 records and a bad one on day 1: 20 steps a day, two passes.
  EXPECT_EQ(expected.steps, 2u * kDays * 20u);
  EXPECT_EQ(expected.dead_letters, 1u);
  const std::vector<float> untrained(expected.rows.size());
  ASSERT_NE(expected.rows, untrained);

  test::Kills kills;
  for (int life = 0; kills.all < kills_wanted; ++life) {
    ASSERT_LT(life, 200) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteConfig(dir, store, mechanism);
    test::RunWithKills(dir, store, whole_ms, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    ExpectSame(ReadOutcome(dir, store), expected);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
  fmt::print("killed {} times, {} of them between two named moments\n", kills.all, kills.by_point);
}

TEST(CrashTest, KilledAnywhereEndsWhereAnUninterruptedRunEnds) {
  ExpectKillsChangeNothing("", kKills);
}

// Carriers of a step follow from the stored parameters and its number, warm-up and coins included.
TEST(CrashTest, CarriersAreThoseOfAnUninterruptedRun) {
  ExpectKillsChangeNothing(
      "{kind: adafest, threshold: 1.0, sigma_ratio: 5, carriers: {from: history, rank: 3, "
      "power_steps: 2, warm_up_steps: 50}}",
      kCarrierKills);
  ExpectKillsChangeNothing(
      "{kind: adafest, threshold: 1.0, sigma_ratio: 5, carriers: {from: random, rank: 3}}",
      kCarrierKills);
}

TEST(CrashTest, NoisedRepresentationsAreLearntFromAsInAnUninterruptedRun) {
  ExpectKillsChangeNothing("{kind: forward, representation_clip: 4}", kCarrierKills);
}

// ---- Unit user: no user is in more steps than the allowance, after any crash. ----

constexpr uint64_t kUserBatch = 100, kAllowance = 7, kPerPeriod = 2, kPeriod = 1000, kWindow = 400;

struct UserLine {
  std::string user, id;
};

// Two days of JSON lines: some users are everywhere, some records come twice, some name no user.
std::vector<std::vector<UserLine>> WriteUserLog(const TempDir& dir, std::mt19937_64& random) {
  std::vector<std::vector<UserLine>> days(2);
  uint64_t made = 0;
  for (size_t day = 0; day < days.size(); ++day) {
    std::string text;
    for (int i = 0; i < 4000; ++i) {
      UserLine line{fmt::format("user-{}", std::min(random() % 300, random() % 300)),
                    fmt::format("event-{}", ++made)};
      if (random() % 10 == 0 && days[day].size() > 50)
        line = days[day][days[day].size() - 1 - random() % 50];
      if (random() % 100 == 0) line.user = "";
      text += fmt::format(R"({{"label":{},"features":{{"I1":{},"C1":"{:x}"}},"event_id":"{}")",
                          random() % 2, random() % 50, random() % 90, line.id);
      text += line.user.empty() ? "}\n" : fmt::format(R"(,"user":"{}"}}{})", line.user, '\n');
      days[day].push_back(std::move(line));
    }
    test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
  }
  return days;
}

// Steps that each user must have been in, by the definition, in two passes; how many there were.
std::map<std::string, uint64_t> NaiveUses(const std::vector<std::vector<UserLine>>& days,
                                          uint64_t* steps) {
  std::map<std::string, uint64_t> used, in_period;
  uint64_t covered = 0;
  *steps = 0;
  for (int pass = 0; pass < 2; ++pass) {
    std::map<std::pair<std::string, std::string>, uint64_t> last;
    uint64_t offset = 0;
    for (const auto& day : days) {
      for (size_t begin = 0; begin < day.size(); begin += kUserBatch) {
        const size_t end = std::min<size_t>(begin + kUserBatch, day.size());
        std::set<std::string> there;
        for (size_t i = begin; i < end; ++i, ++offset) {
          if (day[i].user.empty()) continue;
          const auto key = std::pair(day[i].user, day[i].id);
          const bool repeated = last.contains(key) && offset - last[key] <= kWindow;
          last[key] = offset;
          if (!repeated) there.insert(day[i].user);
        }
        for (const std::string& user : there) {
          if (used[user] == kAllowance || in_period[user] == kPerPeriod) continue;
          ++used[user];
          ++in_period[user];
        }
        ++*steps;
        covered += end - begin;
        if (covered < kPeriod && end < day.size()) continue;
        covered = 0;
        in_period.clear();
      }
    }
  }
  return used;
}

// As the store has counted them.
std::map<std::string, uint64_t> StoredUses(const TempDir& dir, const std::string& name,
                                           const std::map<std::string, uint64_t>& users) {
  auto store = store::Store::Open(wiring::MakeStoreOptions(LoadAssembly(dir / (name + ".yaml"))));
  EXPECT_TRUE(store) << store.error().message;
  if (!store) return {};
  const SipHash hash((*store)->user_key());
  std::vector<UserUses> uses;
  for (const auto& [user, used] : users) uses.push_back({.user = hash(user)});
  EXPECT_TRUE((*store)->ReadAllowances(LearnerIndex(0), uses));
  std::map<std::string, uint64_t> stored;
  size_t at = 0;
  for (const auto& [user, used] : users) stored[user] = uses[at++].used;
  return stored;
}

TEST(CrashTest, UsersAreCountedExactlyHoweverOftenItIsKilled) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  uint64_t steps = 0;
  const auto uses = NaiveUses(WriteUserLog(dir, random), &steps);
  const auto write_config = [&](const std::string& store) {
    test::SmallRun run;
    run.store = store;
    run.passes = 2;
    run.files = "day-*.jsonl";
    run.source = fmt::format(", format: json, dedupe: {{window: {}}}", kWindow);
    run.privacy = "{unit: user, epsilon: 8, delta: 1.0e-6}";
    run.participation =
        fmt::format("{{mode: once, batch: {}, max_participations: {}, per_period: {}, period: {}}}",
                    kUserBatch, kAllowance, kPerPeriod, kPeriod);
    run.WriteConfig(dir);
  };
  write_config("whole");
  const auto start = std::chrono::steady_clock::now();
  const Ended whole = test::Run(test::CrashCommand(dir, "whole"));
  const auto whole_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Outcome expected = ReadOutcome(dir, "whole");
  EXPECT_EQ(expected.steps, steps);
  EXPECT_GT(expected.dead_letters, 0u) << "records of nobody";
  // The ledger states the steps that a user can have been in, not how many steps there were.
  EXPECT_LE(expected.epsilon, 8);
  EXPECT_GT(expected.epsilon, 7.9);
  ASSERT_EQ(StoredUses(dir, "whole", uses), uses);
  EXPECT_EQ(std::max_element(uses.begin(), uses.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; })
                ->second,
            kAllowance)
      << "nobody's allowance was ever used: the test would show nothing";

  test::Kills kills;
  for (int life = 0; kills.all < kKills / 3; ++life) {
    ASSERT_LT(life, 100) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    write_config(store);
    test::RunWithKills(dir, store, whole_ms, random, &kills);
    if (testing::Test::HasFatalFailure()) break;
    ExpectSame(ReadOutcome(dir, store), expected);
    EXPECT_EQ(StoredUses(dir, store, uses), uses);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
  fmt::print("killed {} times, {} of them between two named moments\n", kills.all, kills.by_point);
}

}  // namespace
}  // namespace tacit
