// A stream that has gone wrong is told to operators: by the log, the metrics, readiness and the
// exit status. The public is told nothing of it, since it depends on records.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "service.h"
#include "support/small_run.h"

namespace tacit {
namespace {

using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LoudDataTest : public testing::Test {
 protected:
  // A log whose labels are words where `bad` of ten lines are.
  void WriteLog(int bad) {
    test::WriteSmallLog(dir_, 1, 2000, 5);
    std::string lines = test::ReadFile(dir_ / "day-0.tsv"), text;
    int line = 0;
    for (size_t begin = 0; begin < lines.size(); ++line) {
      const size_t end = lines.find('\n', begin) + 1;
      const bool is_bad = line % 10 < bad;
      text += (is_bad ? "secret" : "") +
              lines.substr(begin + (is_bad ? 1 : 0), end - begin - (is_bad ? 1 : 0));
      begin = end;
    }
    test::WriteFile(dir_ / "day-0.tsv", text);
  }
  Ended LearnToTheEnd(const std::string& store = "store") {
    run_.store = store;
    return test::Run({TACITD, "--config", run_.WriteConfig(dir_), "--until-end"});
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(LoudDataTest, ARunThatLearntFromNothingIsNoSuccess) {
  WriteLog(10);
  run_.source = ", accept_unreadable: true";
  const Ended ended = LearnToTheEnd();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("because of its label (" + (dir_ / "day-0.tsv") + ", line 1)"),
                    HasSubstr("nothing was learnt: none of the 2,000 records"),
                    HasSubstr("store.dead-letters.jsonl"), Not(HasSubstr("secret"))));
  EXPECT_THAT(ended.out, Not(HasSubstr("0.5000"))) << "a day without events has no AUC";
}

TEST_F(LoudDataTest, ASourceWithoutRecordsIsNoSuccessAndOneThatIsLearntIs) {
  test::WriteFile(dir_ / "day-0.tsv", "");
  const Ended empty = LearnToTheEnd("empty");
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.err, HasSubstr("nothing was learnt: the source has no records"));
  WriteLog(1);
  EXPECT_EQ(LearnToTheEnd().exit_code, 0);
  EXPECT_EQ(LearnToTheEnd().exit_code, 0) << "nothing new is no failure";
}

TEST_F(LoudDataTest, OperatorsAreToldAndThePublicIsNot) {
  WriteLog(3);
  Service service(dir_, run_, {"--set", "serve.operator_listen=unix:" + (dir_ / "operators")});
  ASSERT_TRUE(service.WaitForSteps(8));
  const auto ask = [&](const std::string& path) {
    const auto answer =
        http::Fetch("unix:" + (dir_ / "operators") + ":" + path, "GET", "", test::kPatience);
    return answer ? answer->body : answer.error().message;
  };
  ASSERT_TRUE(service.Until("operators are told of dead letters", [&] {
    return ask("/readyz").find(
               "30 % of the last 2,000 records could not be learnt from "
               "(label 600)") != std::string::npos;
  })) << ask("/readyz");
  EXPECT_THAT(ask("/metrics"), AllOf(HasSubstr("tacit_dead_letters_total{part=\"label\"} 600"),
                                     HasSubstr("tacit_records_read_total 2000"),
                                     HasSubstr("tacit_normalised_entropy{learner=\"ctr\"}"),
                                     HasSubstr("tacit_calibration{learner=\"ctr\"}")));
  EXPECT_EQ(service.Ask("GET", "/readyz")->body, "ready\n");
  EXPECT_THAT(service.Ask("GET", "/metrics")->body,
              AllOf(Not(HasSubstr("dead_letters")), Not(HasSubstr("records_read")),
                    Not(HasSubstr("entropy")), Not(HasSubstr("tacit_stream"))));
  ASSERT_TRUE(service.Stop());
}

}  // namespace
}  // namespace tacit
