// Operators are told where a baseline is better: by file, and without files by stretches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "unit/train/trainer_rig.h"

namespace tacit::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Labels are coins, and the rate is so high that a constant is always better.
class BaselineWarningTest : public TrainerTest {
 protected:
  static constexpr size_t kEvents = 4000;  // in a step

  BaselineWarningTest() : logger_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "told", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  ~BaselineWarningTest() override { spdlog::set_default_logger(logger_); }

  void Make(bool has_days, const stream::Position& position = {}) {
    has_days_ = has_days;
    TrainerTest::Make({{"ctr", 1, 1e9, false, 1.f, position}}, std::chrono::hours(1), std::nullopt);
  }
  // Returns what the log gets while this many more steps are taken. If the stream has files, each
  // step ends one.
  std::string Steps(uint64_t count) {
    log_.str("");
    BoundedQueue<LearnerStep> steps(100);
    for (uint64_t i = 0; i < count; ++i, ++taken_) {
      LearnerStep step = MakeStep(taken_, taken_ * 32, kEvents);
      if (has_days_)
        step.batch.cuts = {{.kind = event::PublicCut::Kind::kFileEnd,
                            .offset = taken_ * 32,
                            .name = fmt::format("day-{}", taken_)}};
      EXPECT_TRUE(steps.Push(std::move(step)));
    }
    steps.Close();
    EXPECT_TRUE(trainer_->Run(steps));
    return log_.str();
  }

  uint64_t taken_ = 0;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> logger_;
};

TEST_F(BaselineWarningTest, ATopicIsJudgedByStretchesOnceAnHour) {
  Make(false);
  EXPECT_EQ(Steps(3), "") << "the first step was predicted by a model that had learnt nothing";
  EXPECT_THAT(Steps(1), AllOf(HasSubstr("learner 'ctr', its last 12,000 records"),
                              HasSubstr("of that of the best constant")));
  EXPECT_EQ(Steps(6), "") << "it was told";
  clock_.ahead = std::chrono::hours(2);
  EXPECT_THAT(Steps(3), HasSubstr("its last 12,000 records"));
}

TEST_F(BaselineWarningTest, ADayIsJudgedFromTheFirstReleaseOn) {
  Make(true);
  EXPECT_THAT(Steps(3), AllOf(HasSubstr("learner 'ctr', day-1"), HasSubstr("learner 'ctr', day-2"),
                              Not(HasSubstr("day-0")), Not(HasSubstr("its last"))));
}

// A learner that goes on predicts by what it learnt in an earlier run.
TEST_F(BaselineWarningTest, AResumedLearnerIsJudgedFromItsFirstDayOn) {
  stream::Position position;
  position.step = 5;
  Make(true, position);
  taken_ = 5;
  EXPECT_THAT(Steps(1), HasSubstr("learner 'ctr', day-5"));
}

}  // namespace
}  // namespace tacit::train
