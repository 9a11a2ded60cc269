#include "train/watch/left_out_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace tacit::train {
namespace {

using testing::HasSubstr;

class LeftOutNewsTest : public testing::Test {
 protected:
  LeftOutNewsTest() : logger_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "told", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  ~LeftOutNewsTest() override { spdlog::set_default_logger(logger_); }

  // Returns what the log has got. A user let in has one record, and one left out `records`.
  std::string See(uint64_t let_in, uint64_t left_out, uint64_t records = 1) {
    log_.str("");
    news_.See({.users = let_in + left_out,
               .users_left_out = left_out,
               .records = let_in + left_out * records,
               .records_left_out = left_out * records});
    return log_.str();
  }
  std::string Metrics(metrics::Audience audience) const { return registry_.Scrape(audience); }

  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> logger_;
  metrics::Registry registry_;
  LeftOutNews news_{"next", registry_};
};

TEST_F(LeftOutNewsTest, TheLogSaysWhenMoreUsersAreLeftOut) {
  EXPECT_EQ(See(1000, 0), "");
  EXPECT_EQ(See(910, 90), "") << "less than a tenth";
  EXPECT_THAT(See(880, 120),
              HasSubstr("learner 'next': 12 % of the last 1,000 users and 12 % of their 1,000 "
                        "records could not be learnt from: allowances"));
  EXPECT_EQ(See(800, 200), "") << "it was told";
  EXPECT_THAT(See(700, 300), HasSubstr("30 % of the last 1,000 users"));
  EXPECT_EQ(See(850, 150), "") << "and is no news";
  EXPECT_THAT(See(0, 100), HasSubstr("100 % of the last 100 users"));
  EXPECT_THAT(See(99, 1), HasSubstr("1 % of the last 100 users"));
  EXPECT_THAT(See(80, 20), HasSubstr("20 %")) << "news again";
}

// Few users may have most of the records.
TEST_F(LeftOutNewsTest, TheShareOfRecordsIsTold) {
  EXPECT_THAT(See(98, 2, 49), HasSubstr("2 % of the last 100 users and 50 % of their 196 records"));
  EXPECT_THAT(Metrics(metrics::Audience::kOperator),
              HasSubstr("tacit_records_left_out_share{learner=\"next\"} 0.5"));
  EXPECT_EQ(See(98, 2, 20), "") << "less than was told, and no less than a tenth";
}

TEST_F(LeftOutNewsTest, SmallStepsAreSeenTogether) {
  for (int step = 0; step < 9; ++step) EXPECT_EQ(See(4, 7), "");
  EXPECT_THAT(See(0, 1), HasSubstr("64 % of the last 100 users"));
}

TEST_F(LeftOutNewsTest, TheShareIsForTheOperatorAlone) {
  See(300, 100);
  EXPECT_THAT(Metrics(metrics::Audience::kOperator),
              HasSubstr("tacit_users_left_out_share{learner=\"next\"} 0.25"));
  EXPECT_EQ(Metrics(metrics::Audience::kPublic).find("left_out"), std::string::npos);
}

}  // namespace
}  // namespace tacit::train
