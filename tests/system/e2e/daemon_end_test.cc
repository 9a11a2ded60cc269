// Tests how a daemon ends, and what it says while it cannot learn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "service.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Eventually;
using test::kPatience;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kSmallLearner[] =
    "  - id: small\n"
    "    model: {kind: pctr, hidden: [8]}\n"
    "    mechanism: {kind: adafest, threshold: 2.0}\n"
    "    participation: {mode: once, batch: 1000}\n"
    "    privacy: {unit: event, epsilon: 2, delta: 1.0e-6}\n";

// Two learners within their own budgets, and too much together.
TEST(DaemonEndTest, TheTotalBudgetEndsLearningWithItsOwnStatus) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  run.passes = run.max_participations = 2;
  run.privacy = "{unit: event, epsilon: 4, delta: 1.0e-6}";
  run.second_learner = kSmallLearner;
  const size_t at = run.second_learner.find("batch: 1000");
  run.second_learner.replace(at, 11, "batch: 1000, max_participations: 2");
  run.more = "budget: {epsilon: 3.3, delta: 1.0e-6, on_exhausted: exit}\n";
  const std::string config = run.WriteConfig(dir);
  const Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
  EXPECT_EQ(ended.exit_code, 4) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("learner 'ctr'"));
  EXPECT_THAT(ended.err, HasSubstr("over the total budget of 3.3"));
  const json::object ledger =
      test::Json(test::Run({TACIT, "ledger", "show", "--store", dir / "store", "--json"}));
  const double total = ledger.at("total").at("epsilon").to_number<double>();
  EXPECT_LE(total, 3.3);
  EXPECT_GT(total, 3.0) << "a pass of both does fit";
  // Configured to stop learning only, it is done.
  const Ended stopped = test::Run(
      {TACITD, "--config", config, "--until-end", "--set", "budget.on_exhausted=stop-learning"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("over the total budget of 3.3: it stops learning"),
                                 Not(HasSubstr("nothing left to learn"))));
}

// One learner has room in its own budget, and none in the total one.
TEST(DaemonEndTest, ATotalBudgetThatIsUsedUpIsSeen) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  run.passes = run.max_participations = 20;
  run.more = "budget: {epsilon: 6, delta: 1.0e-6}\n";
  Service service(dir, run);
  ASSERT_TRUE(service.Until("the budget of all is used up", [&] {
    const auto ready = service.Ask("GET", "/readyz");
    return ready &&
           ready->body.find("the budget of all learners together is used up") != std::string::npos;
  }));
  EXPECT_EQ(service.Ask("GET", "/readyz")->status, 200u) << "what is learnt is served on";
  ASSERT_TRUE(service.Stop());
  // A forecast sees a ledger alone: what was spent leaves no room in this total.
  run.more = "budget: {epsilon: 5, delta: 1.0e-6}\n";
  const std::string config = run.WriteConfig(dir);
  const Ended words =
      test::Run({TACIT, "ledger", "forecast", "--store", dir / "store", "--config", config});
  EXPECT_THAT(words.out, HasSubstr("stands still: the budget of all together has no room"));
  EXPECT_THAT(words.out, HasSubstr("has run out: there is no room for another step"));
  const json::object forecast = test::Json(test::Run(
      {TACIT, "ledger", "forecast", "--store", dir / "store", "--config", config, "--json"}));
  EXPECT_EQ(forecast.at("learners").at(0).at("forecast").as_string(), "exhausted");
}

// The total has room for the steps of one learner and for none of the other.
TEST(DaemonEndTest, ATotalBudgetThatStopsOneLearnerOfTwoNamesBoth) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  run.second_learner = kSmallLearner;
  run.second_learner.replace(run.second_learner.find("epsilon: 2"), 10, "epsilon: 8");
  run.more = "budget: {epsilon: 10, delta: 1.0e-6}\n";
  const std::string config = run.WriteConfig(dir);
  const std::string operators = "unix:" + (dir / "operators");
  Service service(dir, run, {"--set", "serve.operator_listen=" + operators});
  const auto ask = [&](const std::string& path) {
    const auto answer = http::Fetch(operators + ":" + path, "GET", "", kPatience);
    return answer ? answer->body : std::string();
  };
  const auto steps = [&](const char* learner) {
    const json::object privacy = service.Privacy();
    for (const json::value& one : privacy.at("learners").as_array())
      if (one.at("learner") == learner) return one.at("steps").to_number<uint64_t>();
    return uint64_t{0};
  };
  const std::string says =
      "the budget of all learners together has no room for a step of 'small' (budget.epsilon 10): "
      "still learning: 'ctr'";
  ASSERT_TRUE(service.WaitFor("/readyz"));
  ASSERT_TRUE(service.Until("small has been stopped", [&] {
    return ask("/readyz").find("no room for a step") != std::string::npos;
  }));
  EXPECT_THAT(ask("/readyz"), AllOf(HasSubstr(says), Not(HasSubstr("nothing more"))));
  ASSERT_TRUE(service.Until("ctr has learnt all", [&] { return steps("ctr") == 8; }));
  EXPECT_EQ(steps("small"), 0u);
  const json::object privacy = service.Privacy();
  EXPECT_TRUE(privacy.at("learners").at(0).at("stopped_by").is_null());
  EXPECT_EQ(privacy.at("learners").at(1).at("stopped_by"), "total");
  EXPECT_FALSE(privacy.at("learners").at(1).at("budget").at("exhausted").as_bool())
      << "its own has room";
  EXPECT_EQ(json::parse(ask("/v1/dashboard")).at("learners").at(1).at("stopped_by"), "total");
  const std::string metrics = service.Ask("GET", "/metrics")->body;
  for (const char* line : {"tacit_privacy_budget_exhausted{learner=\"ctr\"} 0",
                           "tacit_privacy_budget_exhausted{learner=\"small\"} 1",
                           "tacit_privacy_total_budget_exhausted{learner=\"ctr\"} 0",
                           "tacit_privacy_total_budget_exhausted{learner=\"small\"} 1"})
    EXPECT_THAT(metrics, HasSubstr(line));
  const auto expect_foretold = [](const Ended& forecast) {
    EXPECT_THAT(forecast.out, HasSubstr("ctr: epsilon 8 of 8 at delta 1e-06: does not run out"));
    EXPECT_THAT(forecast.out, HasSubstr("small: epsilon 0 of 8 at delta 1e-06: stands still: the "
                                        "budget of all together has no room for its next step"));
    EXPECT_THAT(forecast.out, ContainsRegex("all together: epsilon 8 of 10 at delta 1e-06: does "
                                            "not run out.*; it has no room for a step of small"));
  };
  expect_foretold(test::Run({TACIT, "ledger", "forecast", "--url", operators}));
  ASSERT_TRUE(service.Stop());
  expect_foretold(
      test::Run({TACIT, "ledger", "forecast", "--store", dir / "store", "--config", config}));
}

// Histories, keys and counts of users are in the store. Under every umask a
// daemon leaves nothing to others than owner and group.
TEST(DaemonEndTest, WhatIsWrittenIsForNobodyElse) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 500, 3);
  test::WriteFile(dir / "day-1.tsv", "no record\n");
  const std::string config = SmallRun().WriteConfig(dir);
  const mode_t before = umask(0);
  const Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
  umask(before);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  size_t looked_at = 0;
  const auto expect_closed = [&](const std::filesystem::path& path) {
    const auto others =
        std::filesystem::status(path).permissions() & std::filesystem::perms::others_all;
    EXPECT_EQ(others, std::filesystem::perms::none) << path;
    ++looked_at;
  };
  for (const char* name : {"store", "store.witness", "store.dead-letters.jsonl"})
    expect_closed(dir / name);
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir / "store"))
    expect_closed(file.path());
  EXPECT_GT(looked_at, 8u);
}

// A caller who asked for the whole stream has not got it; a service that is stopped has done its
// work.
TEST(DaemonEndTest, AStopBeforeTheEndFailsWhereTheEndWasAskedFor) {
  TempDir dir;
  SmallRun run;
  run.endless = true;
  Service service(dir, run, {"--until-end"});
  ASSERT_TRUE(service.WaitForSteps(5));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 1);
  EXPECT_THAT(ended->err, HasSubstr("stopped before the end of the source"));
}

TEST(DaemonEndTest, ACheckpointTellsWhatItHasSpent) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  run.more = "budget: {epsilon: 9, delta: 1.0e-6}\n";
  ASSERT_EQ(test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"}).exit_code, 0);
  Service service(dir, run, {"--serve-only", "--checkpoint", dir / "store"});
  ASSERT_TRUE(service.WaitFor("/readyz"));
  const auto seen = service.Ask("GET", "/metrics");
  ASSERT_TRUE(seen);
  for (const char* line :
       {"tacit_privacy_epsilon{learner=\"ctr\"} 7.99", "tacit_privacy_delta{learner=\"ctr\"} 1e-06",
        "tacit_privacy_epsilon_budget{learner=\"ctr\"} 8", "tacit_privacy_total_epsilon 7.99",
        "tacit_privacy_total_epsilon_budget 9", "tacit_steps_committed_total{learner=\"ctr\"} 8"})
    EXPECT_THAT(seen->body, HasSubstr(line));
  EXPECT_EQ(service.Privacy().at("total").at("budget").at("epsilon").to_number<double>(), 9);
}

// The disk stays full: training stops, the last commit is served, and every caller sees it.
TEST(DaemonEndTest, ADaemonThatCannotCommitSaysHowToGoOn) {
  TempDir dir;
  SmallRun run;
  run.hidden = "[256, 128]";
  run.endless = true;  // however many commits it takes to fill the disk
  run.listen = "unix:" + (dir / "socket");
  const std::string at_operator = "unix:" + (dir / "operator");
  const std::string config = run.WriteConfig(dir);
  test::Process daemon({"/bin/bash", "-c",
                        "ulimit -f 2048; exec " TACITD " --config " + config +
                            " --set serve.operator_listen=" + at_operator});
  const std::string metrics = at_operator + ":/metrics";
  ASSERT_TRUE(Eventually("training has failed", [&] {
    const auto seen = http::Fetch(metrics, "GET", "", kPatience);
    return seen && seen->body.find("\ntacit_training_failed 1\n") != std::string::npos;
  })) << daemon.Err();
  const auto ready = http::Fetch(run.listen + ":/readyz", "GET", "", kPatience);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->status, 503u);
  EXPECT_THAT(ready->body, Not(HasSubstr(dir / "store")));
  const auto cause = http::Fetch(at_operator + ":/readyz", "GET", "", kPatience);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->status, 503u);
  EXPECT_THAT(cause->body, AllOf(HasSubstr("training has failed: training ends: "),
                                 HasSubstr(dir / "store"), HasSubstr("File too large")));
  // The log has it a moment after the metric.
  EXPECT_TRUE(Eventually("the log says what to do", [&] {
    return daemon.Err().find("restart tacitd") != std::string::npos;
  })) << daemon.Err();
  daemon.Signal(SIGTERM);
  const auto ended = daemon.Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 1);
}

TEST(DaemonEndTest, ProgressTellsEveryLearner) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  run.second_learner = kSmallLearner;
  const Ended ended = test::Run(
      {TACITD, "--config", run.WriteConfig(dir), "--until-end", "--set", "log.level=info"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, ContainsRegex("ctr: AUC [0-9.]+ NE [0-9.]+  epsilon 8.000  small: AUC"));
}

TEST(DaemonEndTest, ErrorsAreSaidInTheProgramsName) {
  EXPECT_THAT(test::Run({TACITD, "--config", "/nowhere.yaml"}).err, HasSubstr("tacitd: /nowhere"));
  EXPECT_THAT(test::Run({TACIT, "ledger", "show", "--store", "/nowhere"}).err,
              HasSubstr("tacit: "));
}

}  // namespace
}  // namespace tacit
