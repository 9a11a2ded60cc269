// The daemon killed at any moment and started again must end where an uninterrupted run ends: the
// same model to the last bit, the same offsets, the same charge. Noise is zero in this build, so
// that "the same" means something.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "app/assembly.h"
#include "privacy/ledger.h"
#include "store/store.h"
#include "support/process.h"
#include "support/small_run.h"

namespace tacit {
namespace {

using std::chrono::milliseconds;
using test::Ended;
using test::TempDir;

constexpr uint32_t kDays = 3;
constexpr uint64_t kRowsPerDay = 5000;
constexpr int kKills = 50;

// Every moment of a commit and of a fold at which the store's files or its witness have changed.
constexpr const char* kPoints[] = {"commit.begin",     "commit.written",   "commit.synced",
                                   "commit.witnessed", "commit.published", "fold.ingested",
                                   "fold.trimmed"};

void WriteLog(const TempDir& dir) {
  test::WriteSmallLog(dir, kDays, kRowsPerDay, 7);
  std::string lines = test::ReadFile(dir / "day-1.tsv");
  lines.insert(lines.find('\n') + 1, "not\ta\tclick\n");
  test::WriteFile(dir / "day-1.tsv", lines);
}

// Every part at work: mask, clip, Adam, folds, a dead letter, two passes (so that the second
// participation is charged).
void WriteConfig(const TempDir& dir, const std::string& store) {
  test::SmallRun run;
  run.store = store;
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

app::Assembly LoadAssembly(const std::string& config_path) {
  auto config = config::Load(config_path, {});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = app::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return *assembly;
}

Outcome ReadOutcome(const TempDir& dir, const std::string& store) {
  const app::Assembly assembly = LoadAssembly(dir / (store + ".yaml"));
  auto opened =
      store::OpenReadOnly(dir / store, dir / (store + ".witness"), app::MakeLayouts(assembly));
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

std::vector<std::string> Command(const TempDir& dir, const std::string& store) {
  return {TACITD_CRASH, "--config", dir / (store + ".yaml"), "--until-end"};
}

TEST(CrashTest, KilledAnywhereEndsWhereAnUninterruptedRunEnds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  WriteLog(dir);

  WriteConfig(dir, "whole");
  const auto start = std::chrono::steady_clock::now();
  const Ended whole = test::Run(Command(dir, "whole"));
  const auto whole_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Outcome expected = ReadOutcome(dir, "whole");
  // 5000 records and a bad one on day 1: 20 steps a day, two passes.
  EXPECT_EQ(expected.steps, 2u * kDays * 20u);
  EXPECT_EQ(expected.dead_letters, 1u);
  const std::vector<float> untrained(expected.rows.size());
  ASSERT_NE(expected.rows, untrained);

  int kills = 0, by_point = 0;
  for (int life = 0; kills < kKills; ++life) {
    ASSERT_LT(life, 200) << "the daemon ends before it can be killed";
    const std::string store = fmt::format("store-{}", life);
    WriteConfig(dir, store);
    uint64_t steps_before = 0;
    for (int attempt = 0;; ++attempt) {
      std::vector<std::string> environment;
      milliseconds patience(60000);
      const bool at_point = random() % 2 == 0;
      if (attempt < 6 && at_point)
        environment.push_back(fmt::format(
            "TACIT_TEST_CRASH_AT={}:{}", kPoints[random() % std::size(kPoints)], 1 + random() % 6));
      if (attempt < 6 && !at_point)
        patience = milliseconds(random() % static_cast<uint64_t>(whole_ms.count() + 1));
      test::Process daemon(Command(dir, store), environment);
      auto ended = daemon.WaitFor(patience);
      if (!ended) {
        daemon.Signal(SIGKILL);
        ended = daemon.WaitFor(milliseconds(10000));
      }
      ASSERT_TRUE(ended);
      if (ended->signal == SIGKILL) {
        ++kills;
        by_point += at_point ? 1 : 0;
      } else {
        ASSERT_EQ(ended->exit_code, 0) << ended->err;
      }
      // What can be read between two lives never goes back.
      if (std::filesystem::exists(dir / (store + ".witness"))) {
        auto opened = store::OpenReadOnly(dir / store, dir / (store + ".witness"), {});
        ASSERT_TRUE(opened) << opened.error().message;
        const auto& learners = opened->snapshot->learners();
        const uint64_t steps = learners.empty() ? 0 : learners[0].steps;
        ASSERT_GE(steps, steps_before);
        steps_before = steps;
      }
      if (ended->exit_code == 0) break;
    }
    ExpectSame(ReadOutcome(dir, store), expected);
    if (testing::Test::HasFailure()) break;
    std::filesystem::remove_all(dir / store);
  }
  fmt::print("killed {} times, {} of them between two named moments\n", kills, by_point);
}

}  // namespace
}  // namespace tacit
