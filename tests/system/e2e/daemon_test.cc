// The daemon as a service: it learns, serves what is committed, keeps its budget and its word.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/text.h"
#include "privacy/gaussian.h"
#include "service.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Json;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

std::string ScoreBody(size_t rows) {
  std::string row = R"({"dense":[1,2,null,4,5,6,7,8,9,10,11,12,13],"categorical":[)";
  for (int i = 0; i < 26; ++i) row += (i == 0 ? "\"" : ",\"") + fmt::format("{:08x}\"", i * 77);
  row += "]}";
  std::string body = R"({"learner":"ctr","rows":[)";
  for (size_t i = 0; i < rows; ++i) body += (i == 0 ? "" : ",") + row;
  return body + "]}";
}

TEST(DaemonTest, ServesCommittedSnapshotsWhileItLearns) {
  TempDir dir;
  SmallRun run;
  run.hidden = "[256, 128]";
  run.endless = true;
  Service service(dir, run);
  ASSERT_TRUE(service.WaitFor("/readyz"));
  std::map<uint64_t, double> score_of_version;
  uint64_t last = 0;
  const auto ask = [&] {
    const auto answer = service.Ask("POST", "/v1/score", ScoreBody(3));
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_EQ(answer->status, 200u) << answer->body;
    const json::object body = test::ParseJson(answer->body);
    const auto version = body.at("model").at("version").to_number<uint64_t>();
    const double score = body.at("scores").at(0).to_number<double>();
    EXPECT_GT(score, 0);
    EXPECT_LT(score, 1);
    EXPECT_GE(version, last) << "a snapshot went back";
    last = version;
    // The same version gives the same answer: nothing uncommitted shines through.
    const auto [seen, first] = score_of_version.emplace(version, score);
    if (!first) {
      EXPECT_EQ(seen->second, score);
    }
    EXPECT_LE(body.at("model").at("epsilon").to_number<double>(), 8.0);
  };
  EXPECT_TRUE(service.Until("five commits are served while training runs", [&] {
    ask();
    return score_of_version.size() >= 5 || HasFatalFailure();
  }));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended) << "SIGTERM must drain";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

TEST(DaemonTest, GoesOnWhereItStoppedAndChargesNothingTwice) {
  TempDir dir;
  SmallRun run;
  run.endless = true;
  uint64_t steps = 0;
  for (int stops = 0; stops < 4; ++stops) {
    Service service(dir, run, {"--set", "log.level=info"});
    if (stops > 0) {
      // At the next record, then: every step is of `batch` records.
      ASSERT_TRUE(service.WaitForWord(fmt::format("'ctr' after step {}, {} records in", steps,
                                                  WithThousands(steps * run.batch))));
    }
    ASSERT_TRUE(service.WaitForSteps(steps + 20));
    const auto ended = service.Stop();
    ASSERT_TRUE(ended);
    ASSERT_EQ(ended->exit_code, 0) << ended->err;
    const json::object ledger =
        Json(test::Run({TACIT, "ledger", "show", "--store", dir / "store", "--json"}));
    const auto now = ledger.at("learners").at(0).at("steps").to_number<uint64_t>();
    EXPECT_GE(now, steps + 20);
    steps = now;
    // A record that was charged twice would cost more.
    EXPECT_NEAR(ledger.at("total").at("epsilon").to_number<double>(), 8, 1e-6);
  }
}

TEST(DaemonTest, WhenTheBudgetIsSpentLearningStopsAndServingGoesOn) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  const std::string config = run.WriteConfig(dir);
  ASSERT_EQ(test::Run({TACITD, "--config", config, "--until-end"}).exit_code, 0);
  // The first reading has spent 8. A second of the same records would fit into 8.2 only had the
  // first been made with the noise of two.
  run.passes = run.max_participations = 2;
  run.privacy = "{unit: event, epsilon: 8.2, delta: 1.0e-6}";
  Service service(dir, run);
  ASSERT_TRUE(service.WaitFor("/readyz"));
  json::object privacy;
  ASSERT_TRUE(service.Until("the budget is exhausted", [&] {
    privacy = service.Privacy();
    return privacy.at("learners").at(0).at("budget").at("exhausted").as_bool();
  }));
  EXPECT_LE(privacy.at("total").at("epsilon").to_number<double>(), 8.2);
  const auto answer = service.Ask("POST", "/v1/score", ScoreBody(1));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200u);
  ASSERT_TRUE(service.Stop());
  // The same with on_exhausted: exit ends with its own code.
  run.privacy = "{unit: event, epsilon: 8.2, delta: 1.0e-6, on_exhausted: exit}";
  EXPECT_EQ(test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"}).exit_code, 4);
}

TEST(DaemonTest, TrainerThreadsRunUnderSchedIdleAndServersDoNot) {
  TempDir dir;
  SmallRun run;
  run.hidden = "[512, 256]";
  run.idle_priority = true;
  run.endless = true;
  Service service(dir, run);
  // The trainer is at work, if it gets the processor only when nobody else wants it.
  ASSERT_TRUE(
      service.Until("the trainer and its one extra worker are idle threads, others are not", [&] {
        size_t idle = 0, normal = 0;
        const std::string tasks = fmt::format("/proc/{}/task", service.process().pid());
        for (const auto& task : std::filesystem::directory_iterator(tasks)) {
          const int policy = sched_getscheduler(std::stoi(task.path().filename()));
          ++(policy == SCHED_IDLE ? idle : normal);
        }
        return idle == 2 && normal >= 3;
      }));
}

TEST(DaemonTest, PublicMetricsTellNothingOfRecords) {
  TempDir dir;
  test::WriteSmallLog(dir, 2, 5000, 3);
  SmallRun run;
  Service service(dir, run, {"--set", "serve.operator_listen=unix:" + (dir / "operator")});
  ASSERT_TRUE(service.WaitForSteps(40));
  const auto seen = service.Ask("GET", "/metrics");
  ASSERT_TRUE(seen);
  EXPECT_THAT(seen->body, HasSubstr("tacit_privacy_epsilon{learner=\"ctr\"}"));
  EXPECT_THAT(seen->body, HasSubstr("tacit_steps_committed_total"));
  for (const char* name : {"tacit_events_learnt_total", "tacit_training_loss",
                           "tacit_units_clipped_total", "tacit_rows_touched_total"}) {
    EXPECT_THAT(seen->body, Not(HasSubstr(name)));
    const auto operators =
        http::Fetch("unix:" + (dir / "operator") + ":/metrics", "GET", "", test::kPatience);
    ASSERT_TRUE(operators);
    EXPECT_THAT(operators->body, HasSubstr(name));
  }
}

TEST(DaemonTest, ARestartedDaemonTellsWhatIsSpentBeforeItLearns) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  ASSERT_EQ(test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"}).exit_code, 0);
  Service service(dir, run);
  ASSERT_TRUE(service.WaitFor("/readyz"));
  const auto seen = service.Ask("GET", "/metrics");
  ASSERT_TRUE(seen);
  EXPECT_THAT(seen->body, HasSubstr("tacit_privacy_epsilon{learner=\"ctr\"} 7.99"));
  EXPECT_THAT(seen->body, HasSubstr("tacit_steps_committed_total{learner=\"ctr\"} 8"));
}

TEST(DaemonTest, AJsonLogIsJsonInEveryLine) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 600, 3);
  const Ended ended = test::Run({TACITD, "--config", SmallRun().WriteConfig(dir), "--until-end",
                                 "--set", "log.format=json", "--set", "log.level=info"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("600 events"));
  std::istringstream lines(ended.err);
  for (std::string line; std::getline(lines, line);) {
    json::error_code error;
    EXPECT_TRUE(json::parse(line, error).is_object()) << line;
  }
}

TEST(DaemonTest, TwoLearnersShareOneStreamOneStoreAndOneLedger) {
  TempDir dir;
  test::WriteSmallLog(dir, 2, 3000, 3);
  SmallRun run;
  run.second_learner =
      "  - id: small\n"
      "    model: {kind: pctr, hidden: [8]}\n"
      "    mechanism: {kind: adafest, threshold: 2.0}\n"
      "    participation: {mode: once, batch: 1000}\n"
      "    privacy: {unit: event, epsilon: 2, delta: 1.0e-6}\n";
  ASSERT_EQ(test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"}).exit_code, 0);
  const json::object ledger =
      Json(test::Run({TACIT, "ledger", "show", "--store", dir / "store", "--json"}));
  const json::array& learners = ledger.at("learners").as_array();
  ASSERT_EQ(learners.size(), 2u);
  std::map<std::string, uint64_t> steps;
  for (const json::value& learner : learners)
    steps[std::string(learner.at("learner").as_string())] =
        learner.at("steps").to_number<uint64_t>();
  EXPECT_EQ(steps["ctr"], 2u * 12);
  EXPECT_EQ(steps["small"], 2u * 3);
  // Every record was in a step of both: the total is that of one Gaussian of both costs.
  const double mu_ctr = privacy::GaussianMu(Epsilon(8), Delta(1e-6));
  const double mu_small = privacy::GaussianMu(Epsilon(2), Delta(1e-6));
  const double both = privacy::GaussianEpsilon(std::hypot(mu_ctr, mu_small), Delta(1e-6)).value;
  EXPECT_NEAR(ledger.at("total").at("epsilon").to_number<double>(), both, 1e-6);
  for (const char* learner : {"ctr", "small"}) {
    const Ended scored =
        test::Run({TACIT, "query", "score", "--checkpoint", dir / "store", "--config",
                   dir / "store.yaml", "--learner", learner, "--tsv", dir / "day-0.tsv"});
    EXPECT_EQ(scored.exit_code, 0) << scored.err;
  }
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--store", dir / "store"}).exit_code, 0);
}

// A program that can only read sees committed state, while the daemon writes and after it has gone.
TEST(DaemonTest, ReadersNeedNoLock) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 100, 3);
  SmallRun run;
  run.hidden = "[256, 128]";
  run.endless = true;
  // A reader tries again when the daemon folds while it reads. Commits every 15 ms, on a busy
  // machine, can keep it out for as long as it tries; a daemon's usual second never does.
  run.commit_interval_ms = 200;
  Service service(dir, run);
  ASSERT_TRUE(service.WaitFor("/readyz"));
  uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    const json::object ledger =
        Json(test::Run({TACIT, "ledger", "show", "--store", dir / "store", "--json"}));
    ASSERT_FALSE(HasFailure());
    const auto steps = ledger.at("learners").at(0).at("steps").to_number<uint64_t>();
    EXPECT_GE(steps, last);
    last = steps;
  }
  const Ended scored =
      test::Run({TACIT, "query", "score", "--checkpoint", dir / "store", "--config",
                 dir / "store.yaml", "--learner", "ctr", "--tsv", dir / "day-0.tsv", "--json"});
  EXPECT_EQ(Json(scored).at("scores").as_array().size(), 3u);
}

}  // namespace
}  // namespace tacit
