// Private quality, killed around its releases: a window is released and charged once, in the commit
// of its last step, and what was released stays as it was drawn in every later life.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <random>

#include "base/score_histogram.h"
#include "store/store.h"
#include "support/small_run.h"
#include "train/learner/position.h"
#include "train/quality/private_quality.h"
#include "wiring/assembly.h"

namespace tacit {
namespace {

constexpr uint64_t kQualitySteps = 3, kQualityBatch = 50, kQualityWindows = 24;
constexpr int kQualityKills = 20;  // a kill costs at most the window it falls in
constexpr const char* kQualityPoints[] = {"commit.begin", "commit.written", "commit.synced",
                                          "commit.witnessed", "commit.published"};

struct SeenQuality {
  uint64_t steps = 0;    // of the learner
  uint64_t windows = 0;  // by the account's position
  uint64_t charged = 0;  // by the ledger
  double epsilon = 0;    // of the account
  std::string released;  // its bytes
};

class QualityCrash : public testing::Test {
 protected:
  QualityCrash() {
    run_.batch = kQualityBatch;
    run_.commit_interval_ms = 1;
    run_.second_learner = fmt::format(
        "    quality: {{steps: {}, bins: 8, epsilon: 2, delta: 1.0e-6}}\n", kQualitySteps);
    test::WriteSmallLog(dir_, 1, kQualityWindows * kQualitySteps * kQualityBatch, 5);
  }

  SeenQuality LookAtQuality() {
    auto config = config::Load(dir_ / "store.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = wiring::Assemble(*config);
    EXPECT_TRUE(assembly) << assembly.error().message;
    auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
    EXPECT_TRUE(store) << store.error().message;
    SeenQuality seen;
    const LearnerIndex account = assembly->qualities.at(0).index;
    seen.steps = train::DecodePosition((*store)->State(LearnerIndex(0)).position)->step;
    seen.windows = train::DecodePosition((*store)->State(account).position)->step;
    if (const auto released = (*store)->State(account).released) seen.released = *released;
    for (const privacy::LedgerTotal& total : (*store)->Latest()->learners())
      if (total.learner == "ctr.quality") {
        seen.charged = total.steps;
        seen.epsilon = total.epsilon;
      }
    return seen;
  }

  test::TempDir dir_;
  test::SmallRun run_;
};

TEST_F(QualityCrash, AWindowIsReleasedAndChargedOnce) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::string config = run_.WriteConfig(dir_);
  std::map<uint64_t, std::string> released_at;  // by the windows' number
  SeenQuality before;
  int kills = 0;
  for (int life = 0;; ++life) {
    ASSERT_LT(life, 200);
    std::vector<std::string> environment;
    if (life < kQualityKills)
      environment.push_back(fmt::format("TACIT_TEST_CRASH_AT={}:{}",
                                        kQualityPoints[random() % std::size(kQualityPoints)],
                                        1 + random() % 4));
    const test::Ended ended =
        test::Run({TACITD_NOISED_CRASH, "--config", config, "--until-end"}, environment);
    kills += ended.signal == SIGKILL ? 1 : 0;
    const SeenQuality after = LookAtQuality();
    EXPECT_EQ(after.charged, after.windows) << "each release is charged, once";
    EXPECT_GE(after.windows, before.windows);
    EXPECT_LE(after.windows, after.steps / kQualitySteps) << "a window before its last step";
    EXPECT_LE(after.epsilon, 2 + 1e-6) << "no record is counted twice";
    if (!after.released.empty()) {
      const auto scores = ReleasedScores::Decode(after.released);
      ASSERT_TRUE(scores);
      EXPECT_EQ(scores->all.windows, after.windows);
      EXPECT_EQ(scores->step_begin % kQualitySteps, 0u);
      EXPECT_EQ(scores->step_end - scores->step_begin, kQualitySteps);
      EXPECT_LE(scores->step_end, after.steps);
      EXPECT_EQ(released_at.try_emplace(after.windows, after.released).first->second,
                after.released)
          << "what was drawn was drawn anew";
    }
    before = after;
    if (ended.signal == 0) {
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
      break;
    }
  }
  EXPECT_EQ(before.steps, kQualityWindows * kQualitySteps);
  EXPECT_GE(before.windows + kills, kQualityWindows) << "a kill costs its window and no other";
  EXPECT_GT(kills, 0) << "the daemon has no moment to die at";
}

}  // namespace
}  // namespace tacit
