// Retention beside a daemon: what it has read may go; what it has not is refused by its offsets, or
// given up where the configuration says so, and is never learnt twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <regex>

#include "system/kafka/fault.h"

namespace tacit::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kGoOn[] = "format: criteo_tsv, on_period_lost: close";

class RetentionTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeTopic(SharedBroker(), 2);
    Configure();
  }
};

TEST_F(RetentionTest, WhatWasReadMayGo) {
  for (int32_t p = 0; p < 2; ++p) Write(NewEvents(p, 100));
  ASSERT_EQ(Learn().exit_code, 0);
  broker_->DeleteRecordsBefore(topic_, 0, 100);
  broker_->DeleteRecordsBefore(topic_, 1, 60);
  const Ended nothing_new = Learn();
  EXPECT_EQ(nothing_new.exit_code, 0) << nothing_new.err;
  for (int32_t p = 0; p < 2; ++p) Write(NewEvents(p, 50));
  const Ended ended = Learn();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  ExpectLearnt();
  ExpectSteps(2 * (StepsOf(0, 100) + StepsOf(100, 150)));
}

TEST_F(RetentionTest, WhatWasNotReadIsRefusedByItsOffsetsOrGivenUp) {
  for (int32_t p = 0; p < 2; ++p) Write(NewEvents(p, 100));
  ASSERT_EQ(Learn().exit_code, 0);
  Write(NewEvents(0, 70));
  Write(NewEvents(1, 30, 0));  // the ones that go
  Write(NewEvents(1, 40));
  broker_->DeleteRecordsBefore(topic_, 1, 130);
  for (int again = 0; again < 2; ++again) {
    const Ended refused = Learn();
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("topic '" + topic_ + "' partition 1: offsets 100 to 129 are gone"),
                      HasSubstr("source.on_period_lost: close")));
  }
  ExpectSteps(2 * StepsOf(0, 100));  // not even of the other partition

  Configure(kGoOn);
  for (int again = 0; again < 2; ++again) {
    const Ended ended = Learn();
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    if (again == 0) {
      EXPECT_THAT(ended.err, HasSubstr("partition 1: 30 offsets before 130 are lost"));
    }
    ExpectLearnt();
    // The lost offsets are a step of their own, without a record, and on the ledger like any other.
    ExpectSteps(2 * StepsOf(0, 100) + StepsOf(100, 170) + 1 + StepsOf(130, 170));
  }
}

// The daemon lags, and retention overtakes it while it runs.
class RetentionOvertakesTest : public RetentionTest {
 protected:
  static constexpr int kRead = 208, kBehind = 3008;
  static constexpr int64_t kGone = 2512;

  // Reads in small pieces; stands still while the topic grows and its front goes.
  void Overtake(const std::string& source) {
    Configure(source,
              ", queued.min.messages: 10, queued.max.messages.kbytes: 4, "
              "fetch.message.max.bytes: 1000");
    Write(NewEvents(0, kRead));
    StartDaemon();
    AwaitLearnt();
    daemon_->Suspend();
    Write(NewEvents(0, kBehind), {{"batch.num.messages", "20"}});
    broker_->DeleteRecordsBefore(topic_, 0, kGone);
    daemon_->Continue();
  }
  // The daemon names the offsets that are gone: none of them is to be learnt.
  void ExpectGone(const std::string& words, int first_group, bool second_is_end) {
    AwaitWord(topic_ + "' partition 0: ");
    const std::regex pattern(words);
    std::smatch match;
    std::string said;
    ASSERT_TRUE(Eventually("the daemon says " + words, [&] {
      said = daemon_->Err();
      return std::regex_search(said, match, pattern);
    })) << said;
    const int64_t number = std::stoll(match[first_group]);
    EXPECT_EQ(std::stoll(match[3 - first_group]), second_is_end ? kGone : kGone - 1);
    const int64_t begin = second_is_end ? kGone - number : number;
    ASSERT_GE(begin, kRead);
    ASSERT_LT(begin, kGone);
    // A step that was not full is begun anew, and not reached any more, where nothing continues.
    const int64_t learnt = second_is_end ? begin : begin / Oracle::kBatch * Oracle::kBatch;
    std::fill(expected_.begin() + learnt, expected_.begin() + kGone, 0);
  }
};

TEST_F(RetentionOvertakesTest, AndIsRefusedByOffsetsWhileServingGoesOn) {
  Overtake("format: criteo_tsv");
  ExpectGone("offsets (\\d+) to (\\d+) are gone before they were read", 1, false);
  if (HasFatalFailure()) return;
  std::fill(expected_.begin() + kGone, expected_.end(), 0);  // not reached
  AwaitReadyz("", "training has failed");
  ExpectServing();
  KillDaemon();
  ExpectLearnt();
  const Ended refused = Learn();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("to 2511 are gone"));
  ExpectLearnt();
}

TEST_F(RetentionOvertakesTest, AndIsGoneOnBehindWhereThatIsAllowed) {
  Overtake(kGoOn);
  ExpectGone("(\\d+) offsets before (\\d+) are lost", 1, true);
  if (HasFatalFailure()) return;
  AwaitLearnt();
  ExpectServing();
  KillDaemon();
  Write(NewEvents(0, 16));
  EXPECT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
}

}  // namespace
}  // namespace tacit::test
