// A stranger's mistakes: each gives a clear error or a dead letter; nothing is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "http/client.h"
#include "support/eventually.h"
#include "support/small_run.h"

namespace tacit {
namespace {

using test::Ended;
using test::Eventually;
using test::kPatience;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

Ended RunDaemon(const std::string& config, std::vector<std::string> more = {}) {
  std::vector<std::string> command{TACITD, "--config", config, "--until-end"};
  command.insert(command.end(), more.begin(), more.end());
  return test::Run(command);
}

// Steps charged in a store, by the tool.
std::string Ledger(const TempDir& dir, const std::string& store) {
  const Ended shown = test::Run({TACIT, "ledger", "show", "--store", dir / store, "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  return shown.out;
}

class BadInputTest : public testing::Test {
 protected:
  TempDir dir_;
  SmallRun run_;
};

TEST_F(BadInputTest, AnEmptyFileIsADayWithoutEvents) {
  test::WriteSmallLog(dir_, 2, 600, 1);
  test::WriteFile(dir_ / "day-0.tsv", "");
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(Ledger(dir_, "store"), HasSubstr("\"steps\":3"));
}

TEST_F(BadInputTest, BadLinesAreDeadLettersWithFileLineAndReason) {
  test::WriteSmallLog(dir_, 1, 1000, 1);
  std::string lines = test::ReadFile(dir_ / "day-0.tsv");
  const std::string first = lines.substr(0, lines.find('\n'));
  std::string bad = first.substr(0, first.rfind('\t')) + "\n";  // line 1: 39 columns
  bad += std::string(10 << 20, 'x') + "\n";                     // line 2: 10 MB
  bad += "2" + first.substr(1) + "\n";                          // line 3: label 2
  bad += "0\tabc" + first.substr(first.find('\t', 2)) + "\n";   // line 4: no integer
  test::WriteFile(dir_ / "day-0.tsv", bad + lines);
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("4 of 1,004 records"));
  const std::string letters = test::ReadFile(dir_ / "store.dead-letters.jsonl");
  for (int line = 1; line <= 4; ++line)
    EXPECT_THAT(letters, HasSubstr(fmt::format("\"line\":{},", line)));
  EXPECT_THAT(letters, HasSubstr("39"));
  EXPECT_THAT(letters, HasSubstr("column 2 (I1): is not an integer"));
}

// A letter outlives the record, and a user who is forgotten.
TEST_F(BadInputTest, LettersLogAndMetricsHoldNothingOfARecord) {
  test::WriteSmallLog(dir_, 1, 1000, 1);
  const std::string lines = test::ReadFile(dir_ / "day-0.tsv");
  const std::string first = lines.substr(0, lines.find('\n'));
  const std::string bad = "anna.secret@example.com" + first.substr(1) + "\n" + "0\tanna.secret" +
                          first.substr(first.find('\t', 2)) + "\n" + "anna.secret\n";
  test::WriteFile(dir_ / "day-0.tsv", bad + lines);
  const std::string operators = "unix:" + (dir_ / "operators");
  test::Process daemon({TACITD, "--config", run_.WriteConfig(dir_), "--set", "log.level=debug",
                        "--set", "serve.operator_listen=" + operators});
  std::string page;
  ASSERT_TRUE(Eventually(
      "one of each kind is counted",
      [&] {
        const auto answer = http::Fetch(operators + ":/metrics", "GET", "", kPatience);
        page = answer ? answer->body : "";
        size_t counted = 0;
        for (const char* part : {"label", "field", "syntax"})
          counted += page.find(fmt::format("tacit_dead_letters_total{{part=\"{}\"}} 1\n", part)) !=
                     page.npos;
        return counted == 3;
      }))
      << page << daemon.Err();
  daemon.Signal(SIGTERM);
  const auto ended = daemon.Wait();
  ASSERT_TRUE(ended && ended->exit_code == 0);
  const std::string letters = test::ReadFile(dir_ / "store.dead-letters.jsonl");
  EXPECT_EQ(std::count(letters.begin(), letters.end(), '\n'), 3) << letters;
  for (const std::string& text : {letters, page, ended->out, ended->err})
    EXPECT_THAT(text, Not(HasSubstr("anna")));
}

TEST_F(BadInputTest, AnUnknownKeyIsNamedWithItsNeighbour) {
  test::WriteSmallLog(dir_, 1, 10, 1);
  run_.privacy = "{unit: event, epsilom: 8, delta: 1.0e-6}";
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("learners[0].privacy.epsilom: unknown key (did you mean "
                                   "'epsilon'?)"));
}

TEST_F(BadInputTest, AnEmptyConfigurationIsToldByName) {
  test::WriteFile(dir_ / "empty.yaml", "");
  const Ended ended = RunDaemon(dir_ / "empty.yaml");
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("empty.yaml"));
  EXPECT_THAT(ended.err, Not(HasSubstr("error")));
}

// Alone it would be ignored, and the stream learnt from.
TEST_F(BadInputTest, ACheckpointWithoutServeOnlyIsRefused) {
  test::WriteSmallLog(dir_, 1, 10, 1);
  const Ended ended = RunDaemon(run_.WriteConfig(dir_), {"--checkpoint", dir_ / "store"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("--serve-only"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
}

TEST_F(BadInputTest, AServerWithoutAnAddressIsRefused) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  ASSERT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
  const Ended ended = test::Run({TACITD, "--config", run_.WriteConfig(dir_), "--serve-only",
                                 "--checkpoint", dir_ / "store", "--set", "serve.listen="});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("serve.listen is empty: no caller could reach the server"));
}

TEST_F(BadInputTest, TheFolderOfTheStoreIsMade) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  const Ended ended =
      RunDaemon(run_.WriteConfig(dir_), {"--set", "store.path=" + (dir_ / "new/folder/store")});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(Ledger(dir_, "new/folder/store"), HasSubstr("\"steps\":3"));
}

TEST_F(BadInputTest, PromisesThatCannotBeAreRefused) {
  test::WriteSmallLog(dir_, 1, 10, 1);
  const auto refuse = [&](const std::string& mechanism, const std::string& privacy,
                          const std::string& message) {
    run_.mechanism = mechanism;
    run_.privacy = privacy;
    const Ended ended = RunDaemon(run_.WriteConfig(dir_));
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
  };
  const std::string good = "{kind: adafest, threshold: 1.0}";
  refuse(good, "{unit: event, epsilon: 8, delta: 1}", "privacy.delta");
  refuse(good, "{unit: event, epsilon: 8}", "privacy.delta");
  refuse(good, "{unit: event, delta: 1.0e-6}", "privacy.epsilon");
  refuse(good, "{epsilon: 8, delta: 1.0e-6}", "privacy.unit");
  refuse("{kind: adafest, threshold: 1.0, noise_multiplier: 0}",
         "{unit: event, epsilon: 8, delta: 1.0e-6}", "noise_multiplier");
  refuse("{kind: adafest, threshold: 1.0, noise_multiplier: 0.3}",
         "{unit: event, epsilon: 8, delta: 1.0e-6}", "is needed");
  refuse("{kind: none}", "{unit: event, epsilon: 8, delta: 1.0e-6}", "epsilon");
}

TEST_F(BadInputTest, AStoreOfAnotherModelIsRefusedAndUntouched) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  ASSERT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
  const std::string before = Ledger(dir_, "store");
  run_.hidden = "[32, 17]";
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("'ctr'"));
  EXPECT_EQ(Ledger(dir_, "store"), before);
}

TEST_F(BadInputTest, AStoreBehindItsWitnessIsRefused) {
  test::WriteSmallLog(dir_, 2, 600, 1);
  run_.files = "day-0.tsv";
  ASSERT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
  std::filesystem::copy(dir_ / "store", dir_ / "old", std::filesystem::copy_options::recursive);
  run_.files = "day-*.tsv";
  ASSERT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
  std::filesystem::remove_all(dir_ / "store");
  std::filesystem::rename(dir_ / "old", dir_ / "store");
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("witness"));
}

TEST_F(BadInputTest, ALostWitnessIsRefusedUnlessTheOperatorSaysSo) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  ASSERT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
  std::filesystem::remove(dir_ / "store.witness");
  const Ended refused = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("tacit store accept-witness"));
  const std::vector<std::string> accept = {TACIT, "store", "accept-witness", "--config",
                                           run_.WriteConfig(dir_)};
  test::WriteSmallLog(dir_, 2, 600, 1);  // more to learn, which the command leaves alone
  const auto ledger = [&] {
    const std::string shown = Ledger(dir_, "store");
    return shown.substr(0, shown.find("\"witness\""));
  };
  const std::string before = ledger();
  const Ended written = test::Run(accept);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("store.witness was written: the store's last commit is "));
  EXPECT_EQ(ledger(), before);
  EXPECT_THAT(test::Run(accept).out, HasSubstr("agrees with the store: nothing was done"));
  EXPECT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
}

TEST_F(BadInputTest, ALostWitnessOfNoStoreIsNotWritten) {
  const std::vector<std::string> accept = {TACIT, "store", "accept-witness", "--config",
                                           run_.WriteConfig(dir_)};
  const Ended refused = test::Run(accept);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("there is no store " + (dir_ / "store")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store.witness"));
}

TEST_F(BadInputTest, AChangedLogIsRefusedByName) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  ASSERT_EQ(RunDaemon(run_.WriteConfig(dir_)).exit_code, 0);
  test::WriteSmallLog(dir_, 1, 600, 2);
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("day-0.tsv"));
}

TEST_F(BadInputTest, ASecondDaemonOnOneStoreIsRefused) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  run_.listen = "unix:" + (dir_ / "socket");
  const std::string config = run_.WriteConfig(dir_);
  test::Process first({TACITD, "--config", config});
  const std::string ready = "unix:" + (dir_ / "socket") + ":/readyz";
  ASSERT_TRUE(Eventually("the first is ready", [&] {
    const auto answer = http::Fetch(ready, "GET", "", kPatience);
    return answer && answer->status == 200;
  })) << first.Err();
  const Ended second = RunDaemon(config, {"--set", "serve.listen="});
  EXPECT_EQ(second.exit_code, 3) << second.err;
  EXPECT_THAT(second.err, HasSubstr(dir_ / "store"));
  const auto still = http::Fetch(ready, "GET", "", kPatience);
  ASSERT_TRUE(still);
  EXPECT_EQ(still->status, 200u);
  first.Signal(SIGTERM);
  const auto ended = first.Wait();
  ASSERT_TRUE(ended) << "SIGTERM must drain";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

TEST_F(BadInputTest, APortInUseIsNamed) {
  test::WriteSmallLog(dir_, 1, 100, 1);
  const std::string socket = "unix:" + (dir_ / "socket");
  run_.listen = "127.0.0.1:0";
  test::Process first({TACITD, "--config", run_.WriteConfig(dir_), "--set", "log.level=info"});
  std::string address;
  ASSERT_TRUE(Eventually("the first says where it serves", [&] {
    const std::string said = first.Err();
    const size_t at = said.find("127.0.0.1:");
    const size_t end = said.find('\n', at);
    if (at == std::string::npos || end == std::string::npos) return false;
    address = said.substr(at, end - at);
    return true;
  })) << first.Err();
  run_.store = "other";
  run_.listen = address;
  const Ended second = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(address));
}

TEST_F(BadInputTest, AMemoryBudgetTooSmallSaysWhatWouldDo) {
  test::WriteSmallLog(dir_, 1, 10, 1);
  run_.more = "memory: {total_bytes: 64MiB}\n";
  run_.hidden = "[4096, 4096, 4096]";
  const Ended ended = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("memory.total_bytes"));
  EXPECT_THAT(ended.err, HasSubstr("the least that would do"));
}

// A limit on file sizes stands for a full disk: writes fail in the middle of a commit. The daemon
// says so and lives long enough to say it; with room again it continues to where it would have
// been.
TEST_F(BadInputTest, AFullDiskLosesNothingThatWasCommitted) {
  test::WriteSmallLog(dir_, 2, 4000, 1);
  run_.hidden = "[256, 128]";
  run_.commit_interval_ms = 1;  // a commit for each step or two: the log grows beyond the limit
  const std::string config = run_.WriteConfig(dir_);
  const Ended full =
      test::Run({"/bin/bash", "-c",
                 fmt::format("ulimit -f 2048; exec {} --config {} --until-end", TACITD, config)});
  EXPECT_EQ(full.exit_code, 1) << full.err;
  EXPECT_THAT(full.err, HasSubstr("commit"));
  const std::string between = Ledger(dir_, "store");
  const Ended after = RunDaemon(config);
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_THAT(Ledger(dir_, "store"), HasSubstr("\"steps\":32")) << "before: " << between;
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store"}).exit_code, 0);
}

TEST_F(BadInputTest, MissingFilesAreNamed) {
  run_.files = "nothing-*.tsv";
  const Ended no_match = RunDaemon(run_.WriteConfig(dir_));
  EXPECT_EQ(no_match.exit_code, 2);
  EXPECT_THAT(no_match.err, HasSubstr("nothing-*.tsv"));
  const Ended no_config = test::Run({TACITD, "--config", dir_ / "missing.yaml"});
  EXPECT_EQ(no_config.exit_code, 2);
  EXPECT_THAT(no_config.err, HasSubstr("missing.yaml"));
}

}  // namespace
}  // namespace tacit
