// A second daemon on a store that another one has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "service.h"
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

  static bool WaitUntilItStandsBy(const test::Process& process) {
    for (int i = 0; i < 4000; ++i) {
      if (process.Err().find("standing by: ") != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
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
  const auto took_over = standby.WaitFor(std::chrono::seconds(60));
  ASSERT_TRUE(took_over);
  EXPECT_EQ(took_over->exit_code, 0) << took_over->err;
  EXPECT_THAT(took_over->err, HasSubstr("taking over"));
}

TEST_F(StandbyTest, WhoStandsByEndsWhenAskedTo) {
  Service first(dir_, run_);
  ASSERT_TRUE(first.WaitForSteps(1));
  test::Process standby(Second({"--standby"}));
  ASSERT_TRUE(WaitUntilItStandsBy(standby)) << standby.Err();
  standby.Signal(SIGTERM);
  const auto ended = standby.WaitFor(std::chrono::seconds(60));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

}  // namespace
}  // namespace tacit
