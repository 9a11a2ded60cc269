#include "system/crash/kills.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "store/store.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;

// Every moment of a commit and of a fold at which the store's files or its witness have changed.
constexpr const char* kPoints[] = {"commit.begin",     "commit.written",   "commit.synced",
                                   "commit.witnessed", "commit.published", "fold.ingested",
                                   "fold.trimmed"};

}  // namespace

std::vector<std::string> CrashCommand(const TempDir& dir, const std::string& store) {
  return {TACITD_CRASH, "--config", dir / (store + ".yaml"), "--until-end"};
}

void RunWithKills(const TempDir& dir, const std::string& store, milliseconds whole_ms,
                  std::mt19937_64& random, Kills* kills) {
  uint64_t steps_before = 0;
  for (int attempt = 0;; ++attempt) {
    std::vector<std::string> environment;
    milliseconds patience = 4 * kPatience;
    const bool at_point = random() % 2 == 0;
    if (attempt < 6 && at_point)
      environment.push_back(fmt::format("TACIT_TEST_CRASH_AT={}:{}",
                                        kPoints[random() % std::size(kPoints)], 1 + random() % 6));
    if (attempt < 6 && !at_point)
      patience = milliseconds(random() % static_cast<uint64_t>(whole_ms.count() + 1));
    Process daemon(CrashCommand(dir, store), environment);
    auto ended = daemon.WaitFor(patience);
    if (!ended) {
      daemon.Signal(SIGKILL);
      ended = daemon.Wait();
    }
    ASSERT_TRUE(ended);
    if (ended->signal == SIGKILL) {
      ++kills->all;
      kills->by_point += at_point ? 1 : 0;
    } else {
      ASSERT_EQ(ended->exit_code, 0) << ended->err;
    }
    // Everything that can be read between two lives never goes back.
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
}

}  // namespace tacit::test
