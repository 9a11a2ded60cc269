#include "train/watch/dead_letter_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "support/held_clock.h"

namespace tacit::train {
namespace {

using event::BadPart;
using testing::HasSubstr;
using testing::Not;

class DeadLetterNewsTest : public testing::Test {
 protected:
  DeadLetterNewsTest() : logger_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "told", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  ~DeadLetterNewsTest() override { spdlog::set_default_logger(logger_); }

  // A run of `good` records and one bad one for each part.
  void Run(size_t good, const std::vector<BadPart>& bad, const std::string& origin = "day.jsonl") {
    event::RawRecords records;
    records.end.resize(good + bad.size());
    std::vector<event::DeadLetter> dead;
    for (const BadPart part : bad)
      dead.push_back({.origin = origin,
                      .line = origin == "topic" ? 0u : 17u,
                      .partition = 2,
                      .offset = 16,
                      .reason = "label: 'a secret' is neither 0 nor 1",
                      .part = part});
    news_.See(records, dead);
  }
  std::string Metrics(metrics::Audience reader) const { return registry_.Scrape(reader); }
  size_t Lines() const {
    const std::string text = log_.str();
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  }

  test::HeldClock clock_;
  metrics::Registry registry_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> logger_;
  DeadLetterNews news_{clock_, registry_, "shop/dead.jsonl"};
};

TEST_F(DeadLetterNewsTest, TheFirstOfEachPartIsToldWithItsPlaceAndWithoutItsContents) {
  Run(10, {BadPart::kLabel, BadPart::kLabel});
  EXPECT_THAT(log_.str(), HasSubstr("because of its label (day.jsonl, line 17)"));
  EXPECT_THAT(log_.str(), HasSubstr("shop/dead.jsonl"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("secret")));
  EXPECT_EQ(Lines(), 1u);
  Run(0, {BadPart::kLabel, BadPart::kSyntax}, "topic");
  EXPECT_EQ(Lines(), 2u);
  EXPECT_THAT(log_.str(), HasSubstr("because of its syntax (topic, partition 2, offset 16)"));
}

TEST_F(DeadLetterNewsTest, ThenARateIsToldOnceAMinute) {
  Run(0, {BadPart::kLabel});
  for (int second = 0; second < 59; ++second) {
    clock_.Pass(std::chrono::seconds(1));
    Run(1, {BadPart::kLabel});
  }
  EXPECT_EQ(Lines(), 1u);
  clock_.Pass(std::chrono::seconds(1));
  Run(1, {BadPart::kUser});
  EXPECT_THAT(log_.str(), HasSubstr("61 of the 121 records of the last 60 s could not be learnt "
                                    "from: label 60, user 1"));
  const size_t lines = Lines();
  for (int minute = 0; minute < 3; ++minute) {
    clock_.Pass(std::chrono::seconds(60));
    Run(100, {});
  }
  EXPECT_EQ(Lines(), lines) << "nothing new, nothing told";
}

TEST_F(DeadLetterNewsTest, OperatorsHaveCountsByPartAndThePublicNothing) {
  Run(7, {BadPart::kLabel, BadPart::kTime, BadPart::kTime});
  const std::string metrics = Metrics(metrics::Audience::kOperator);
  EXPECT_THAT(metrics, HasSubstr("tacit_dead_letters_total{part=\"label\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("tacit_dead_letters_total{part=\"time\"} 2"));
  EXPECT_THAT(metrics, HasSubstr("tacit_dead_letters_total{part=\"syntax\"} 0"));
  EXPECT_THAT(metrics, HasSubstr("tacit_records_read_total 10"));
  EXPECT_THAT(Metrics(metrics::Audience::kPublic), Not(HasSubstr("dead_letters")));
}

TEST_F(DeadLetterNewsTest, ATenthOfTheLastRecordsIsTrouble) {
  Run(2000, std::vector<BadPart>(150, BadPart::kLabel));
  EXPECT_EQ(news_.trouble(), "") << "7 %";
  Run(0, std::vector<BadPart>(150, BadPart::kLabel));
  EXPECT_EQ(news_.trouble(), "13 % of the last 2,300 records could not be learnt from (label 300)");
  Run(20'000, {});
  Run(20'000, {});
  EXPECT_EQ(news_.trouble(), "");
}

TEST_F(DeadLetterNewsTest, AFewBadRecordsOfASlowStreamAreNoTrouble) {
  Run(0, std::vector<BadPart>(99, BadPart::kSyntax));
  EXPECT_EQ(news_.trouble(), "");
  Run(0, {BadPart::kSyntax});
  EXPECT_THAT(news_.trouble(), HasSubstr("100 %"));
}

}  // namespace
}  // namespace tacit::train
