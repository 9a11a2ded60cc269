// The breaker, killed around its decisions, with the noise of the product: half of each window
// cannot be read, so that the noise alone decides. All that was to be seen of a decision, in the
// store or in what a daemon said, holds in every later life, and no window is decided or charged
// twice.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <random>

#include "store/store.h"
#include "support/small_run.h"
#include "train/learner/position.h"
#include "train/quality/breaker.h"
#include "wiring/assembly.h"

namespace tacit {
namespace {

constexpr uint64_t kCrashWindow = 200, kCrashWindows = 10;
constexpr int kHaltKills = 30, kHalts = 10;  // of as many stores as it takes
constexpr const char* kCommitPoints[] = {"commit.begin", "commit.written", "commit.synced",
                                         "commit.witnessed", "commit.published"};

struct Seen {
  uint64_t version = 0;
  train::BreakerState breaker;
  uint64_t charged = 0;  // windows, by the ledger
  double epsilon = 0;
  uint64_t learnt = 0;  // offsets
};

class HaltCrash : public testing::Test {
 protected:
  HaltCrash() {
    run_.source = fmt::format(", halt_above: {{share: 0.5, window: {}, epsilon: 2, delta: 1.0e-6}}",
                              kCrashWindow);
    run_.batch = 50;
    run_.commit_interval_ms = 1;
    test::WriteSmallLog(dir_, 1, kCrashWindow * kCrashWindows, 5);
    std::string text;
    uint64_t line = 0;
    for (const char c : test::ReadFile(dir_ / "day-0.tsv")) {
      if ((text.empty() || text.back() == '\n') && line++ % 2 == 0) text += "renamed";
      text += c;
    }
    test::WriteFile(dir_ / "day-0.tsv", text);
  }

  Seen Look() {
    auto config = config::Load(dir_ / "store.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = wiring::Assemble(*config);
    EXPECT_TRUE(assembly) << assembly.error().message;
    auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
    EXPECT_TRUE(store) << store.error().message;
    Seen seen;
    seen.version = (*store)->Latest()->version().value;
    const auto position = [&](LearnerIndex learner) {
      return *train::DecodePosition((*store)->State(learner).position);
    };
    seen.breaker = train::BreakerState::Of(position(assembly->breaker->index));
    for (const OffsetRange& next : position(LearnerIndex(0)).next) seen.learnt = next.begin;
    for (const privacy::LedgerTotal& total : (*store)->Latest()->learners())
      if (total.learner == train::kBreakerAccount) {
        seen.charged = total.steps;
        seen.epsilon = total.epsilon;
      }
    return seen;
  }

  test::TempDir dir_;
  test::SmallRun run_;
};

// The window at which a daemon said that it has halted; 0: it did not.
uint64_t ToldOf(const std::string& err) {
  constexpr std::string_view kTold = "halted training at window ";
  const size_t at = err.find(kTold);
  return at == std::string::npos ? 0 : std::strtoull(err.c_str() + at + kTold.size(), nullptr, 10);
}

TEST_F(HaltCrash, WhatWasSeenOfADecisionHolds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  int kills = 0, halts = 0;
  for (int store = 0; kills < kHaltKills || halts < kHalts; ++store) {
    ASSERT_LT(store, 30) << kills << " kills and " << halts << " halts";
    std::filesystem::remove_all(dir_ / "store");
    std::filesystem::remove(dir_ / "store.witness");
    std::filesystem::remove(dir_ / "store.dead-letters.jsonl");
    const std::string config = run_.WriteConfig(dir_);
    Seen before;
    for (int life = 0;; ++life) {
      ASSERT_LT(life, 200);
      std::vector<std::string> command{TACITD_NOISED_CRASH, "--config", config, "--until-end"};
      const bool passes = before.breaker.halted && random() % 2 == 0;
      if (passes) {
        command.emplace_back("--past-halt");
        command.push_back(fmt::format("{}", before.breaker.windows));
      }
      std::vector<std::string> environment;
      if (life < 30)
        environment.push_back(fmt::format("TACIT_TEST_CRASH_AT={}:{}",
                                          kCommitPoints[random() % std::size(kCommitPoints)],
                                          1 + random() % 4));
      const test::Ended ended = test::Run(command, environment);
      kills += ended.signal == SIGKILL ? 1 : 0;
      const Seen after = Look();

      if (const uint64_t told = ToldOf(ended.err)) {
        EXPECT_TRUE(after.breaker.halted) << "it said that it halted, and the store does not";
        EXPECT_EQ(after.breaker.windows, told) << ended.err;
      }
      EXPECT_EQ(after.charged, after.breaker.windows) << "each decision is charged, once";
      EXPECT_GE(after.breaker.windows, before.breaker.windows);
      EXPECT_LE(after.learnt, kCrashWindow * (after.breaker.windows + 1))
          << "learnt from behind a window that is not decided";
      // A store goes on being halted until the next window is decided, in every process.
      if (after.breaker.halted && after.breaker.windows > before.breaker.windows) {
        EXPECT_LE(after.learnt, kCrashWindow * after.breaker.windows) << "learnt behind a halt";
      }
      if (before.breaker.halted && !passes) {
        EXPECT_EQ(after.version, before.version) << "a version behind a halt";
        EXPECT_EQ(after.breaker, before.breaker);
      }
      halts += after.breaker.halted && after.breaker.windows > before.breaker.windows ? 1 : 0;
      ASSERT_FALSE(testing::Test::HasFailure()) << ended.err;
      if (ended.exit_code == 0) break;
      before = after;
    }
    const Seen last = Look();
    EXPECT_EQ(last.charged, kCrashWindows);
    EXPECT_NEAR(last.epsilon, 2, 1e-6) << "no record is charged twice";
    EXPECT_EQ(last.learnt, kCrashWindow * kCrashWindows);
  }
  fmt::print("killed {} times, halted {} times\n", kills, halts);
}

}  // namespace
}  // namespace tacit
