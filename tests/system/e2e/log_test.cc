// The log of a daemon: its first line says what runs, each line is JSON with its figures as fields
// where it is asked for, and nothing is said while nothing happens.
#include "base/files/log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <boost/json.hpp>
#include <ranges>
#include <sstream>
#include <thread>

#include "daemon/progress_line.h"
#include "support/held_clock.h"
#include "support/json.h"
#include "watched_shop.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::TempDir;
using testing::HasSubstr;
using testing::IsEmpty;
using watch::WatchedShop;

std::vector<json::object> LinesOf(const std::string& log) {
  std::vector<json::object> lines;
  std::istringstream text(log);
  for (std::string line; std::getline(text, line);) {
    lines.push_back(test::ParseJson(line));
    EXPECT_TRUE(lines.back().contains("message")) << line;
  }
  return lines;
}

// Waits for what a daemon tells after the last progress: a table, or that there was nothing to
// learn. Progress is also told every five seconds, however far it is by then.
testing::AssertionResult WaitForTheOutcome(WatchedShop& shop) {
  return test::Eventually("it has told the outcome", [&] {
    return !shop.process().Out().empty() ||
           shop.process().Err().find("has nothing left to learn") != std::string::npos;
  });
}

// The last event of this name.
const json::object* FindEvent(const std::vector<json::object>& lines, std::string_view event) {
  for (const json::object& line : std::views::reverse(lines))
    if (line.contains("event") && std::string_view(line.at("event").as_string()) == event)
      return &line;
  ADD_FAILURE() << "no event " << event;
  return nullptr;
}

TEST(LogTest, TheFirstLineSaysWhatRunsAndFiguresAreFields) {
  TempDir dir;
  for (const int start : {0, 1}) {
    WatchedShop shop(dir);
    ASSERT_TRUE(shop.WaitUntilLearnt());
    ASSERT_TRUE(WaitForTheOutcome(shop));
    shop.process().Signal(SIGTERM);
    const auto ended = shop.process().Wait();
    ASSERT_TRUE(ended);
    const std::vector<json::object> lines = LinesOf(ended->err);
    ASSERT_FALSE(lines.empty());
    const json::object& first = lines.front();
    EXPECT_EQ(first.at("event"), "start");
    EXPECT_THAT(std::string(first.at("version").as_string()), HasSubstr("tacit "));
    EXPECT_EQ(first.at("configuration"), (dir / "shop.yaml").c_str());
    EXPECT_EQ(first.at("store"), (dir / "store").c_str());
    const auto& clicks = first.at("learners").at(1);
    EXPECT_EQ(clicks.at("learner"), "clicks");
    EXPECT_EQ(clicks.at("steps").to_number<int>(), 24 * start);
    EXPECT_EQ(clicks.at("records").to_number<int>(), 2400 * start);
    EXPECT_EQ(first.at("commit").to_number<int>() > 0, start == 1);
    const json::object* progress = FindEvent(lines, "progress");
    ASSERT_NE(progress, nullptr);
    EXPECT_EQ(progress->at("learners").at(0).at("learner"), "counts");
    EXPECT_EQ(progress->at("events").to_number<int>(), 2400 * (1 - start));
    EXPECT_EQ(progress->at("learners").at(1).at("auc").is_null(), start == 1);
    const json::object* stopped = FindEvent(lines, "stopped");
    ASSERT_NE(stopped, nullptr);
    EXPECT_GT(stopped->at("commit").to_number<int>(), 0);
  }
}

TEST(LogTest, AnIdleDaemonWritesNoLine) {
  TempDir dir;
  WatchedShop shop(dir);
  ASSERT_TRUE(shop.WaitUntilLearnt());
  ASSERT_TRUE(WaitForTheOutcome(shop));
  const std::string before = shop.process().Err();
  // A line that is repeated comes every five seconds: only time shows that none does. Scrapes and
  // probes are no reason for one.
  for (int second = 0; second < 6; ++second) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    shop.Page(1);
    shop.Ask(0, "/readyz");
  }
  EXPECT_EQ(shop.process().Err(), before);
}

// Progress lines as the log has them, under a clock of the test's own.
class ProgressLogTest : public testing::Test {
 protected:
  ProgressLogTest() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_)));
    spdlog::set_pattern("%v");
  }
  ~ProgressLogTest() override { spdlog::set_default_logger(before_); }

  // Lines logged within this time, while nothing changes.
  std::vector<std::string> Within(std::chrono::seconds time) {
    said_.str("");
    for (std::chrono::milliseconds passed(0); passed < time; passed += kTick) {
      clock_.Pass(kTick);
      line_.Update(read_, total_, views_);
    }
    std::vector<std::string> lines;
    std::istringstream text(said_.str());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  static constexpr std::chrono::milliseconds kTick{100};
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream said_;
  test::HeldClock clock_;
  daemon::ProgressLine line_{clock_};
  uint64_t read_ = 0, total_ = 0;
  std::vector<daemon::LearnerView> views_{{.id = "ctr", .view = {}}};
};

TEST_F(ProgressLogTest, NothingIsRepeatedWhileNothingHappens) {
  total_ = 1000;
  views_[0].view.events = 500;
  EXPECT_THAT(Within(std::chrono::seconds(5)),
              testing::ElementsAre(testing::StartsWith(" 50 % 500 events  100/s")));
  // The rate falls to 0, and that is the last that is said for a day.
  EXPECT_THAT(Within(std::chrono::seconds(5)),
              testing::ElementsAre(testing::StartsWith(" 50 % 500 events  0/s")));
  EXPECT_THAT(Within(std::chrono::hours(24)), IsEmpty());
  views_[0].view.events = 600;
  EXPECT_THAT(Within(std::chrono::seconds(5)),
              testing::ElementsAre(testing::StartsWith(" 60 % 600 events  20/s")));
}

// A topic is read to its end, and the last records wait for their period.
TEST_F(ProgressLogTest, RecordsThatWaitAreNamedAndTheProgressEnds) {
  read_ = total_ = 1000;
  views_[0].view.events = 890;
  views_[0].waiting = 110;
  views_[0].waits_for = "period";
  EXPECT_THAT(Within(std::chrono::seconds(5)),
              testing::ElementsAre(testing::AllOf(testing::StartsWith(" 89 % 890 events  178/s"),
                                                  testing::Not(HasSubstr("wait")))));
  EXPECT_THAT(Within(std::chrono::seconds(5)),
              testing::ElementsAre(
                  testing::AllOf(testing::StartsWith("100 % 890 events  0/s"),
                                 HasSubstr(", 110 records wait until their period is full"))));
  views_[0].waiting = 0;
  views_[0].view.events = 1000;
  EXPECT_THAT(Within(std::chrono::seconds(5)),
              testing::ElementsAre(testing::Not(HasSubstr("wait"))));
}

}  // namespace
}  // namespace tacit
