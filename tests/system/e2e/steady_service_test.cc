// Events that a service survives: signals, bad files beside it, its own bad model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "service.h"
#include "support/files_below.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

class SteadyServiceTest : public testing::Test {
 protected:
  SteadyServiceTest() { test::WriteSmallLog(dir_, 1, 2000, 3); }

  Ended TrainToEnd(std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--until-end"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  json::object Ledger() {
    return test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  }
  uint64_t LogBytes() { return test::BytesBelow(dir_ / "store", {".log"}); }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(SteadyServiceTest, SighupEndsNothing) {
  Service service(dir_, run_, {"--set", "log.level=info"});
  ASSERT_TRUE(service.WaitForWord("configuration "));
  service.process().Signal(SIGHUP);
  ASSERT_TRUE(service.WaitForSteps(8));
  service.process().Signal(SIGHUP);
  EXPECT_TRUE(service.WaitForWord("SIGHUP: "));
  EXPECT_TRUE(service.WaitFor("/readyz"));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_THAT(ended->err, HasSubstr("stopped at commit"));
}

// RocksDB is held up for ever, by a pipe without a writer in the place of its first file.
TEST_F(SteadyServiceTest, SigtermIsObeyedWhileTheStoreIsOpened) {
  fs::create_directory(dir_ / "store");
  ASSERT_EQ(mkfifo((dir_ / "store/CURRENT").c_str(), 0600), 0);
  test::Process daemon({TACITD, "--config", run_.WriteConfig(dir_), "--set", "log.level=info"});
  ASSERT_TRUE(test::Eventually("it opens its store", [&] {
    return daemon.Err().find("opening store") != std::string::npos;
  })) << daemon.Err();
  daemon.Signal(SIGTERM);
  const auto ended = daemon.Wait();
  ASSERT_TRUE(ended) << "it waits for RocksDB";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_THAT(ended->err, HasSubstr("asked to stop while opening store " + (dir_ / "store")));
}

TEST_F(SteadyServiceTest, TheStartSaysWhatRuns) {
  ASSERT_EQ(TrainToEnd().exit_code, 0);
  const Ended again = TrainToEnd({"--set", "log.level=info"});
  const std::string first = again.err.substr(0, again.err.find('\n'));
  EXPECT_THAT(first, HasSubstr("tacit 0.1.0: configuration " + (dir_ / "store.yaml")));
  EXPECT_THAT(first, HasSubstr("store " + (dir_ / "store") + " at commit "));
  EXPECT_THAT(first, HasSubstr("'ctr' after step 8, 2,000 records in; kernels for AVX"));
}

// So that the next start needs no room for replaying it.
TEST_F(SteadyServiceTest, ACleanStopLeavesNoLogBehind) {
  run_.hidden = "[512, 256]";
  ASSERT_EQ(TrainToEnd().exit_code, 0);
  EXPECT_LT(LogBytes(), 64u << 10);
  EXPECT_EQ(Ledger().at("learners").at(0).at("steps").to_number<uint64_t>(), 8u);
}

TEST_F(SteadyServiceTest, AForeignLineAmongDeadLettersDoesNotStopTheStart) {
  std::ofstream(dir_ / "day-0.tsv", std::ios::app) << "no record\n";
  ASSERT_EQ(TrainToEnd().exit_code, 0);
  const std::string letters = dir_ / "store.dead-letters.jsonl";
  ASSERT_THAT(test::ReadFile(letters), HasSubstr("\"offset\":2000"));
  std::ofstream(letters, std::ios::app) << "garbage\n";
  const Ended again = TrainToEnd();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("store.dead-letters.jsonl:2: not a dead letter, passed over"));
}

// Eight layers and a rate that no model survives: after some steps it gives no numbers.
TEST_F(SteadyServiceTest, AModelThatStopsBeingNumbersEndsTrainingAndIsNotServed) {
  run_.hidden = "[32, 32, 32, 32, 32, 32, 32, 32]";
  ASSERT_EQ(TrainToEnd().exit_code, 0);
  test::WriteSmallLog(dir_, 2, 2000, 3);
  const Ended ended = TrainToEnd({"--set", "learners.0.optimizer.learning_rate=1e6"});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("learner 'ctr': its model has stopped being numbers"));
  EXPECT_THAT(ended.err, HasSubstr("optimizer.learning_rate"));
  const auto steps = Ledger().at("learners").at(0).at("steps").to_number<uint64_t>();
  EXPECT_GT(steps, 8u) << "what it released is charged";
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store"}).exit_code, 0);
  // The model before is served.
  Service service(dir_, run_, {"--serve-only", "--checkpoint", dir_ / "store"});
  ASSERT_TRUE(service.WaitFor("/readyz"));
  std::string row =
      "{\"learner\":\"ctr\",\"rows\":[{\"dense\":[1,1,1,1,1,1,1,1,1,1,1,1,1],"
      "\"categorical\":[";
  for (int i = 0; i < 26; ++i) row += i == 0 ? "\"a\"" : ",\"a\"";
  const auto scored = service.Ask("POST", "/v1/score", row + "]}]}");
  ASSERT_TRUE(scored);
  EXPECT_EQ(scored->status, 200u) << scored->body;
  // And the state it resumes from, at a rate that a model survives.
  EXPECT_EQ(TrainToEnd().exit_code, 0);
}

TEST_F(SteadyServiceTest, AServiceWhoseModelIsNoneSaysSo) {
  run_.hidden = "[32, 32, 32, 32, 32, 32, 32, 32]";
  Service service(dir_, run_, {"--set", "learners.0.optimizer.learning_rate=1e6"});
  ASSERT_TRUE(service.Until("it says that the model is none", [&] {
    const auto ready = service.Ask("GET", "/readyz");
    return ready && ready->status == 503u &&
           ready->body.find("a model has stopped being numbers") != std::string::npos;
  }));
}

TEST_F(SteadyServiceTest, ALearningRateBeyondReasonIsRefusedByName) {
  for (const char* key : {"learning_rate", "row_learning_rate"}) {
    const Ended ended = TrainToEnd({"--set", std::string("learners.0.optimizer.") + key + "=1e30"});
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.err, HasSubstr(std::string("optimizer.") + key));
  }
}

}  // namespace
}  // namespace tacit
