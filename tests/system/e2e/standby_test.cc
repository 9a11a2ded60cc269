// A second daemon on a store that another one has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "service.h"
#include "store/disk/unfinished_restore.h"
#include "support/small_run.h"

namespace tacit {
namespace {

using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

class StandbyTest : public testing::Test {
 protected:
  StandbyTest() { test::WriteSmallLog(dir_, 1, 2000, 3); }

  // The same store, and a server of its own.
  std::vector<std::string> Second(std::vector<std::string> more) {
    std::vector<std::string> command{TACITD,
                                     "--config",
                                     dir_ / "store.yaml",
                                     "--set",
                                     "serve.listen=unix:" + (dir_ / "second"),
                                     "--set",
                                     "log.level=info"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  static testing::AssertionResult WaitUntilItStandsBy(const test::Process& process) {
    return test::Eventually(
        "it stands by", [&] { return process.Err().find("standing by: ") != std::string::npos; });
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(StandbyTest, ASecondDaemonIsRefusedUnlessItStandsBy) {
  Service first(dir_, run_);
  ASSERT_TRUE(first.WaitForSteps(1));
  const Ended refused = test::Run(Second({}));
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  test::Process standby(Second({"--standby", "--until-end"}));
  ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
  first.process().Signal(SIGKILL);
  const auto took_over = standby.Wait();
  ASSERT_TRUE(took_over);
  EXPECT_EQ(took_over->exit_code, 0) << took_over->err;
  EXPECT_THAT(took_over->err, HasSubstr("taking over"));
}

// The standby learns from what the configuration names when it takes over.
TEST_F(StandbyTest, FilesThatCameMeanwhileAreLearntFrom) {
  Service first(dir_, run_);
  ASSERT_TRUE(first.WaitForSteps(8));
  test::Process standby(Second({"--standby", "--until-end"}));
  ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
  test::WriteSmallLog(dir_, 2, 2000, 3);
  first.process().Signal(SIGKILL);
  const auto took_over = standby.Wait();
  ASSERT_TRUE(took_over);
  EXPECT_EQ(took_over->exit_code, 0) << took_over->err;
  EXPECT_THAT(took_over->out, HasSubstr("day-1.tsv"));
}

// The primary has read a file that was not there when the standby began to wait.
TEST_F(StandbyTest, AFileThatThePrimaryReadMeanwhileIsNoReasonToRefuse) {
  auto first = std::make_unique<Service>(dir_, run_);
  ASSERT_TRUE(first->WaitForSteps(8));
  test::Process standby(Second({"--standby", "--until-end"}));
  ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
  standby.Suspend();  // it does not get the store while the primary is started anew
  test::WriteSmallLog(dir_, 2, 2000, 3);
  ASSERT_TRUE(first->Stop());
  first = std::make_unique<Service>(dir_, run_);
  ASSERT_TRUE(first->WaitForSteps(9)) << "of the new file";
  standby.Continue();
  first->process().Signal(SIGKILL);
  const auto took_over = standby.Wait();
  ASSERT_TRUE(took_over);
  EXPECT_EQ(took_over->exit_code, 0) << took_over->err;
}

// Waiting is for another daemon to end. For a permission it would be for ever.
TEST_F(StandbyTest, APermissionIsNotWaitedFor) {
  if (geteuid() == 0) {
    // Nothing is forbidden to root: a file in the store's place is as good a mistake.
    run_.WriteConfig(dir_);
    test::WriteFile(dir_ / "store", "x");
  } else {
    run_.WriteConfig(dir_);
    std::filesystem::create_directory(dir_ / "store");
    std::filesystem::permissions(dir_ / "store", std::filesystem::perms::owner_read);
  }
  const Ended ended = test::Run(Second({"--standby"}));
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("standing by")));
  EXPECT_THAT(ended.err, HasSubstr(dir_ / "store"));
}

// Root restores what another user's daemons learn in, and the lock file lets nobody ask.
TEST_F(StandbyTest, ARestoreOfAnotherUserIsWaitedFor) {
  namespace fs = std::filesystem;
  const bool root = geteuid() == 0;
  const auto as_daemon = [&](std::vector<std::string> command) {
    if (root)
      command.insert(command.begin(), {"/usr/bin/env", "setpriv", "--reuid=65534", "--regid=65534",
                                       "--clear-groups"});
    return command;
  };
  const std::string lock = dir_ / "store.restoring.lock";
  const std::string config = run_.WriteConfig(dir_);
  if (root) test::Run({"/usr/bin/env", "chown", "-R", "65534:65534", dir_ / "."});
  test::Process first(as_daemon({TACITD, "--config", config, "--set", "log.level=info", "--set",
                                 "serve.listen=unix:" + (dir_ / "first")}));
  ASSERT_TRUE(test::Eventually("it learns", [&] { return fs::exists(dir_ / "first"); }))
      << first.Err();
  test::Process standby(as_daemon(Second({"--standby", "--until-end"})));
  ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
  test::WriteFile(lock, "");
  fs::permissions(lock, root ? fs::perms(0600) : fs::perms::none);
  first.Signal(SIGKILL);
  ASSERT_TRUE(test::Eventually("it has found the lock, or ended", [&] {
    return standby.Err().find("is another user's") != std::string::npos ||
           standby.WaitFor(std::chrono::milliseconds(0));
  })) << standby.Err();
  EXPECT_FALSE(standby.WaitFor(std::chrono::seconds(3))) << standby.Err();
  fs::remove(lock);
  const auto took_over = standby.Wait();
  ASSERT_TRUE(took_over);
  EXPECT_EQ(took_over->exit_code, 0) << took_over->err;
  const size_t warned = took_over->err.find("is another user's");
  EXPECT_EQ(took_over->err.find("is another user's", warned + 1), std::string::npos)
      << took_over->err;
}

// A restore has the store's name for itself, and no lock of the store: who stands by waits for it,
// too, ends when asked to, and takes over once it has ended.
TEST_F(StandbyTest, ARestoreIsWaitedForLikeADaemon) {
  namespace fs = std::filesystem;
  const std::string config = run_.WriteConfig(dir_);
  const auto learn = [&] { return test::Run({TACITD, "--config", config, "--until-end"}); };
  ASSERT_EQ(learn().exit_code, 0);
  fs::copy(dir_ / "store", dir_ / "copy", fs::copy_options::recursive);
  test::WriteSmallLog(dir_, 2, 2000, 3);
  ASSERT_EQ(learn().exit_code, 0);
  fs::remove_all(dir_ / "store");
  fs::rename(dir_ / "copy", dir_ / "store");
  const auto second = Second({"--standby", "--accept-older-copy", "--until-end"});
  std::optional<Ended> stopped, took_over;
  {
    const auto restore = store::RestoreLock::Take(dir_ / "store");
    ASSERT_TRUE(restore) << restore.error().message;
    test::Process asked_to_stop(second);
    ASSERT_TRUE(WaitUntilItStandsBy(asked_to_stop)) << asked_to_stop.Err();
    asked_to_stop.Signal(SIGTERM);
    stopped = asked_to_stop.Wait();
  }
  ASSERT_TRUE(stopped) << "it does not listen";
  EXPECT_EQ(stopped->exit_code, 0) << stopped->err;
  {
    auto restore = store::RestoreLock::Take(dir_ / "store");
    ASSERT_TRUE(restore) << restore.error().message;
    std::optional<store::RestoreLock> held(std::move(*restore));
    test::Process standby(second);
    ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
    held.reset();
    took_over = standby.Wait();
  }
  ASSERT_TRUE(took_over);
  EXPECT_EQ(took_over->exit_code, 0) << took_over->err;
  EXPECT_THAT(took_over->err, HasSubstr("restored from commit"));
  const size_t first = took_over->err.find("standing by: ");
  EXPECT_EQ(took_over->err.find("standing by: ", first + 1), std::string::npos)
      << "it tried again and again";
}

TEST_F(StandbyTest, WhoStandsByEndsWhenAskedTo) {
  Service first(dir_, run_);
  ASSERT_TRUE(first.WaitForSteps(1));
  test::Process standby(Second({"--standby"}));
  ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
  standby.Signal(SIGTERM);
  const auto ended = standby.Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

}  // namespace
}  // namespace tacit
