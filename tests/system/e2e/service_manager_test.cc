// The daemon under a service manager: what it tells on the socket, and which stages it watches.
#include "daemon/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/files/unique_fd.h"
#include "base/threads/heartbeat.h"
#include "daemon/watchdog.h"
#include "service.h"
#include "support/held_clock.h"
#include "support/scoped_variable.h"

namespace tacit {
namespace {

using std::chrono::seconds;
using test::SmallRun;
using testing::HasSubstr;

// A service manager's end of the socket.
class Manager {
 public:
  explicit Manager(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  // All messages that have come so far, a blank line behind each.
  const std::string& Heard() {
    char text[4096];
    for (ssize_t got; (got = ::recv(fd_.get(), text, sizeof(text), MSG_DONTWAIT)) >= 0;)
      heard_.append(text, static_cast<size_t>(got)).append("\n\n");
    return heard_;
  }
  // Waits until something has come behind `from`; returns its place.
  size_t WaitFor(const std::string& words, size_t from = 0) {
    EXPECT_TRUE(test::Eventually(words + " is told", [&] {
      return Heard().find(words, from) != std::string::npos;
    })) << heard_;
    return heard_.find(words, from);
  }

 private:
  UniqueFd fd_;
  std::string heard_;
};

TEST(ServiceManagerTest, IsToldWhatTheDaemonDoes) {
  const test::TempDir dir;
  Manager manager(dir / "notify");
  SmallRun run;
  run.endless = true;
  test::Process daemon(
      {TACITD, "--config", run.WriteConfig(dir), "--set", "serve.listen=unix:" + (dir / "socket"),
       "--set", "store.witness=" + (dir / "apart/witness")},
      {"NOTIFY_SOCKET=" + (dir / "notify"), "WATCHDOG_USEC=600000"});
  const size_t ready = manager.WaitFor("READY=1\nSTATUS=training");
  size_t alive = ready;
  for (int i = 0; i < 3; ++i) alive = manager.WaitFor("WATCHDOG=1\n\n", alive + 1);
  // The time is the system's monotonic one, as sd_notify(3) asks for it.
  const auto now_us = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
  };
  const int64_t before = now_us();
  daemon.Signal(SIGHUP);
  const size_t reloading = manager.WaitFor("RELOADING=1\nMONOTONIC_USEC=", alive);
  const int64_t told =
      std::atoll(manager.Heard().c_str() + manager.Heard().find("USEC=", reloading) + 5);
  EXPECT_GE(told, before);
  EXPECT_LE(told, now_us());
  const size_t again = manager.WaitFor("READY=1\n\n", reloading);
  daemon.Signal(SIGTERM);
  manager.WaitFor("STOPPING=1", again);
  EXPECT_EQ(daemon.Wait()->exit_code, 0);
}

TEST(ServiceManagerTest, NoCoreIsLeftBehind) {
  const test::TempDir dir;
  SmallRun run;
  run.endless = true;
  test::Service daemon(dir, run);
  ASSERT_TRUE(daemon.WaitFor("/healthz"));
  const auto limits = [](pid_t pid) {
    return test::ReadFile("/proc/" + std::to_string(pid) + "/limits");
  };
  const auto core = [](const std::string& text) {
    return text.substr(text.find("Max core file size"), 50);
  };
  EXPECT_THAT(core(limits(daemon.process().pid())), testing::ContainsRegex("size +0 +0 "));
}

// sd_watchdog_enabled(3): 2^64-1 stands for no watchdog. A clock counts nanoseconds in 63 bits.
TEST(ServiceManagerTest, APatienceThatNoClockHoldsIsAYear) {
  for (const char* us : {"18446744073709551615", "9223372036854775808", "9223372036854775807",
                         "9223372036854776", "31536000000001"}) {
    const test::ScopedVariable variable("WATCHDOG_USEC", us);
    EXPECT_EQ(Clock::Duration(daemon::WatchdogPatience()), std::chrono::hours(365 * 24)) << us;
  }
  const test::ScopedVariable variable("WATCHDOG_USEC", "30000000");
  EXPECT_EQ(daemon::WatchdogPatience(), seconds(30));
}

class WatchdogTest : public testing::Test {
 protected:
  void Pass(seconds time) {
    for (; time > seconds(0); time -= seconds(1)) {
      clock_.Pass(seconds(1));
      if (works_) beat_.Work();
      dog_.Look();
    }
  }

  test::HeldClock clock_;
  Heartbeat beat_;
  bool works_ = true;
  int told_ = 0;
  daemon::Watchdog dog_{
      clock_, seconds(60), {{"training", [this] { return beat_.Look(); }}}, [this] { ++told_; }};
};

TEST_F(WatchdogTest, AStageThatStandsStillEndsTheSignsOfLife) {
  Pass(seconds(600));
  EXPECT_EQ(told_, 30);  // each third of the patience
  works_ = false;        // the planted fault: it began a piece of work, and is stuck in it
  Pass(seconds(30));
  const int last = told_;
  EXPECT_LE(last, 32);
  Pass(seconds(600));
  EXPECT_EQ(told_, last) << "the manager's patience ends";
  works_ = true;
  Pass(seconds(20));
  EXPECT_GT(told_, last) << "it was slow, not dead";
}

TEST_F(WatchdogTest, AStageThatWaitsForOthersIsWell) {
  works_ = false;
  beat_.Rest();
  Pass(seconds(600));
  EXPECT_EQ(told_, 30);
}

TEST_F(WatchdogTest, NothingIsToldToAManagerWhoDoesNotListen) {
  daemon::Watchdog deaf(clock_, seconds(0), {}, [this] { ++told_; });
  for (int i = 0; i < 100; ++i) deaf.Look();
  EXPECT_EQ(told_, 0);
}

}  // namespace
}  // namespace tacit
