#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "base/threads/heartbeat.h"
#include "daemon/watchdog.h"
#include "support/held_clock.h"

namespace tacit::feed {

// A watchdog with a patience of a minute over one stage, by a clock that the test moves.
class WatchedStage {
 public:
  explicit WatchedStage(const Heartbeat& heartbeat)
      : dog_(clock_, std::chrono::seconds(60),
             {{"the feed", [&heartbeat] { return heartbeat.Look(); }}}, [this] { ++told_; }) {}

  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Pass(std::chrono::seconds(1));
      dog_.Look();
    }
  }
  // The manager hears of a stage that stands still for half of the patience, and then no more.
  void ExpectStuck() {
    Pass(29);
    const int before = told_;
    EXPECT_GT(before, 0);
    Pass(600);
    EXPECT_EQ(told_, before) << "it is stuck for longer than half of the patience";
  }
  int told() const { return told_; }

 private:
  test::HeldClock clock_;
  int told_ = 0;
  daemon::Watchdog dog_;
};

}  // namespace tacit::feed
