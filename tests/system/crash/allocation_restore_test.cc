// A store that is lost in the middle of an allocation's period. The checkpoint that it is restored
// from is of the middle of a period, too, and does not say which records the steps left hold: it
// may be older than what was learnt.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "privacy/pld.h"
#include "support/json.h"
#include "support/small_run.h"
#include "system/crash/kills.h"
#include "wiring/assembly.h"
#include "wiring/learning.h"

namespace tacit {
namespace {

using test::Ended;
using test::TempDir;
using testing::HasSubstr;

constexpr uint64_t kBlockStepsThere = 10, kBlocksThere = 3, kPeriodsThere = 4;
constexpr uint64_t kStepsThere = kBlockStepsThere * kBlocksThere;  // of a period
constexpr double kSigmaWithRoom = 3;

struct Loss {
  bool room = false;     // for another period on the same records
  bool goes_on = false;  // the daemon learns on behind the checkpoint before its store is lost
};

class AllocationRestore : public testing::TestWithParam<Loss> {
 protected:
  AllocationRestore() {
    test::WriteSmallLog(dir_, 2, 4000, 3);
    test::SmallRun run;
    run.mechanism = GetParam().room
                        ? fmt::format("{{kind: dp-sgd, noise_multiplier: {}}}", kSigmaWithRoom)
                        : "{kind: dp-sgd}";
    run.participation = fmt::format(
        "{{mode: allocate, batch: 200, steps_per_period: {}, blocks: {}, period: 2000}}",
        kBlockStepsThere, kBlocksThere);
    run.commit_interval_ms = 1;
    config_ = run.WriteConfig(dir_);
  }

  // Kills the daemon in the middle of a period, after some more commits.
  stream::Position LearnIntoAPeriod() {
    for (int commits = 4; commits < 60; ++commits) {
      const Ended ended =
          test::Run(test::CrashCommand(dir_, "store"),
                    {fmt::format("TACIT_TEST_CRASH_AT=commit.published:{}", commits)});
      EXPECT_EQ(ended.signal, SIGKILL) << ended.err;
      if (ended.signal != SIGKILL) break;
      const stream::Position position = Open([](store::Store&) {});
      if (position.period_step > 0) {
        EXPECT_TRUE(position.allocation.has_value()) << "the key is lost without a restore";
        return position;
      }
    }
    ADD_FAILURE() << "no commit was in the middle of a period";
    return {};
  }
  // Opens the store as the daemon does, for `use`; returns where its learner is.
  template <class Use>
  stream::Position Open(const Use& use) {
    const auto assembly = wiring::Assemble(*config::Load(config_, {}));
    EXPECT_TRUE(assembly) << assembly.error().message;
    const auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
    EXPECT_TRUE(store) << store.error().message;
    use(**store);
    const auto positions = wiring::ReadPositions(*assembly, **store);
    EXPECT_TRUE(positions);
    return positions->at(0);
  }
  std::string MakeCheckpoint() {
    std::string folder;
    Open([&](store::Store& store) {
      const auto made = store.MakeCheckpoint({.kind = store::CheckpointKind::kFull,
                                              .parent = dir_ / "checkpoints",
                                              .schema = "a small log"});
      EXPECT_TRUE(made) << made.error().message;
      folder = made->place.folder;
    });
    return folder;
  }

  const TempDir dir_;
  std::string config_;
};

TEST_P(AllocationRestore, BeginsThePeriodAnewOrClosesIt) {
  LearnIntoAPeriod();
  if (HasFailure()) return;
  const std::string checkpoint = MakeCheckpoint();
  if (GetParam().goes_on) LearnIntoAPeriod();
  if (HasFailure()) return;
  std::filesystem::rename(dir_ / "store", dir_ / "lost");
  const Ended restored =
      test::Run({TACIT, "checkpoint", "restore", checkpoint, "--config", config_});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  const stream::Position at = Open([](store::Store&) {});
  ASSERT_GT(at.period_step, 0u) << "the lost store was in the middle of a period";
  EXPECT_FALSE(at.allocation.has_value());

  const Ended ended = test::Run(test::CrashCommand(dir_, "store"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr(GetParam().room ? std::string("is begun anew, and charged once more")
                                        : fmt::format("is closed after step {}", at.period_step)));
  const auto ledger =
      test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  EXPECT_EQ(ledger.at("learners").at(0).at("steps"),
            (kPeriodsThere + (GetParam().room ? 1 : 0)) * kStepsThere);
  const double epsilon = ledger.at("total").at("epsilon").to_number<double>();
  if (GetParam().room) {
    privacy::PldAccountant twice(privacy::Adjacency::kAddRemove);
    ASSERT_TRUE(
        twice.Add(privacy::Event::Allocation(kSigmaWithRoom, kBlockStepsThere), 2 * kBlocksThere));
    EXPECT_NEAR(epsilon, twice.Epsilon(Delta(1e-6))->upper, 1e-3 * epsilon);
  } else {
    EXPECT_LE(epsilon, 8);
  }
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"}).exit_code,
            0);
}

INSTANTIATE_TEST_SUITE_P(Losses, AllocationRestore,
                         testing::Values(Loss{true, false}, Loss{true, true}, Loss{false, false},
                                         Loss{false, true}),
                         [](const auto& info) {
                           return fmt::format("{}{}", info.param.room ? "WithRoom" : "WithoutRoom",
                                              info.param.goes_on ? "Later" : "");
                         });

}  // namespace
}  // namespace tacit
