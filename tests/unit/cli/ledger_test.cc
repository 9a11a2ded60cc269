// `tacit ledger export` and `forecast` on a store that tacitd has written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "privacy/gaussian.h"
#include "privacy/tradeoff.h"
#include "system/e2e/service.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::TempDir;
using testing::HasSubstr;

class LedgerCommandsTest : public testing::Test {
 protected:
  void Train(const test::SmallRun& run) {
    test::WriteSmallLog(dir_, 1, 3000, 4);
    const Ended ended = test::Run({TACITD, "--config", run.WriteConfig(dir_), "--until-end"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }
  Ended Ledger(std::vector<std::string> arguments) {
    std::vector<std::string> command{TACIT, "ledger"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--store", dir_ / "store"});
    return test::Run(command);
  }
  json::object Json(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    return test::Json(Ledger(std::move(arguments)));
  }
  TempDir dir_;
};

TEST_F(LedgerCommandsTest, ExportHoldsWhatIsClaimedAndTheEventOfWhichItIs) {
  Train({});
  const json::object exported = Json({"export"});
  const json::object shown = Json({"show"});
  EXPECT_EQ(exported.at("head"), shown.at("head"));
  ASSERT_EQ(exported.at("learners").as_array().size(), 1u);
  const json::object& learner = exported.at("learners").at(0).as_object();
  for (const char* field : {"learner", "unit", "epsilon", "delta", "steps"})
    EXPECT_EQ(learner.at(field), shown.at("learners").at(0).at(field)) << field;
  // The relation that dp_accounting is to compose by, and the one that this bounds.
  EXPECT_EQ(learner.at("neighboring_relation"), "ADD_OR_REMOVE_ONE");
  EXPECT_EQ(learner.at("adjacency"), "zero-out");
  const json::object& event = learner.at("event").as_object();
  EXPECT_EQ(event.at("class_name"), "GaussianDpEvent");
  const double epsilon =
      privacy::GaussianEpsilon(1 / event.at("noise_multiplier").as_double(), Delta(1e-6)).value;
  EXPECT_NEAR(learner.at("epsilon").as_double(), epsilon, 1e-9 * epsilon);

  const std::string file = dir_ / "ledger.json";
  const Ended written = Ledger({"export", "--learner", "ctr", "--output", file});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(json::parse(test::ReadFile(file)), json::value(exported));
  const Ended unknown = Ledger({"export", "--learner", "nobody"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("the ledger has no learner 'nobody' (it has 'ctr')"));
  EXPECT_NE(Ledger({"export", "--output", dir_ / "no" + "/such"}).exit_code, 0);
}

TEST_F(LedgerCommandsTest, ExportOfASampledLearnerCountsItsSteps) {
  test::SmallRun run;
  run.participation =
      "{mode: poisson, batch: 150, sampling_rate: 0.05, steps_per_period: 20, period: 3000}";
  Train(run);
  const json::object exported = Json({"export"});
  const json::object& learner = exported.at("learners").at(0).as_object();
  const json::object& event = learner.at("event").as_object();
  EXPECT_EQ(event.at("class_name"), "SelfComposedDpEvent");
  EXPECT_EQ(event.at("count"), 20);
  EXPECT_EQ(event.at("event").at("class_name"), "PoissonSampledDpEvent");
  EXPECT_EQ(event.at("event").at("sampling_probability"), 0.05);
  EXPECT_EQ(event.at("event").at("event").at("class_name"), "GaussianDpEvent");

  // The daemon, the report and the ledger say the same of it, by the whole curve: less than the one
  // point of epsilon and delta leaves room for.
  test::Service server(dir_, run, {"--serve-only", "--checkpoint", dir_ / "store"});
  ASSERT_TRUE(server.WaitFor("/readyz"));
  const json::value served = server.Privacy().at("learners").at(0).at("at_most");
  const json::object report = test::Json(
      test::Run({TACIT, "privacy", "report", "--store", dir_ / "store", "--format", "json"}));
  const json::value& reported = report.at("learners").at(0).at("at_most");
  const json::object shown = Json({"show"});
  EXPECT_EQ(served, reported);
  EXPECT_EQ(shown.at("learners").at(0).at("at_most"), reported);
  const double point = privacy::AccuracyAtMost(
      privacy::AdvantageAt(learner.at("epsilon").as_double(), learner.at("delta").as_double()));
  EXPECT_LT(reported.at("accuracy").as_double(), point - 0.1);
}

TEST_F(LedgerCommandsTest, AFileOfEntriesIsReadWithoutStoreOrDaemon) {
  Train({});
  const std::string file = dir_ / "raw.json";
  ASSERT_EQ(Ledger({"export", "--raw", "--output", file}).exit_code, 0);
  const json::object verified = Json({"verify"});
  const auto ask = [&](std::vector<std::string> arguments) {
    std::vector<std::string> command{TACIT};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--file", file});
    return test::Run(command);
  };
  const json::object read = test::Json(ask({"ledger", "verify", "--full", "--json"}));
  EXPECT_EQ(read.at("head"), verified.at("head"));
  EXPECT_EQ(read.at("entries"), verified.at("entries"));
  EXPECT_EQ(read.if_contains("witness"), nullptr) << "a file has none";
  const Ended list = ask({"ledger", "list"});
  EXPECT_THAT(list.out, HasSubstr("ctr"));
  EXPECT_THAT(list.out, HasSubstr("noise multiplier"));
  EXPECT_EQ(test::Run({TACIT, "ledger", "list", "--store", dir_ / "store"}).out, list.out);

  // The report says what `ledger show` says.
  const json::object report = test::Json(ask({"privacy", "report", "--format", "json"}));
  const json::object shown = Json({"show"});
  EXPECT_NEAR(report.at("learners").at(0).at("epsilon").to_number<double>(),
              shown.at("learners").at(0).at("epsilon").to_number<double>(), 1e-9);
  EXPECT_EQ(report.at("learners").at(0).at("at_most").at("words"),
            shown.at("learners").at(0).at("at_most").at("words"));
  const Ended page = test::Run({TACIT, "privacy", "report", "--store", dir_ / "store", "--format",
                                "html", "--output", dir_ / "privacy.html"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(test::ReadFile(dir_ / "privacy.html"), HasSubstr("A statement of privacy"));

  // Each digit of an entry is bound by the chain: one is changed in the middle, and one at the end.
  const std::string whole = test::ReadFile(file);
  const size_t entry = whole.find("\"entries\":[\"");
  ASSERT_NE(entry, std::string::npos);
  for (const size_t at : {entry + 60, whole.rfind('"') - 1}) {
    std::string changed = whole;
    changed[at] = changed[at] == '0' ? '1' : '0';
    test::WriteFile(file, changed);
    EXPECT_NE(ask({"ledger", "verify"}).exit_code, 0) << at;
    const Ended refused = ask({"privacy", "report"});
    EXPECT_NE(refused.exit_code, 0) << at;
    EXPECT_EQ(refused.out, "");
  }
  // The answer says that no link holds the store's lineage and commit, and so of another lineage.
  const std::string lineage(json::parse(whole).at("lineage").as_string());
  for (const std::string& said : {lineage, std::string(32, lineage[0] == 'a' ? 'b' : 'a')}) {
    std::string file_of = whole;
    file_of.replace(file_of.find(lineage), 32, said);
    test::WriteFile(file, file_of);
    EXPECT_THAT(
        ask({"ledger", "verify"}).out,
        HasSubstr("lineage " + said + ", commit " +
                  json::serialize(json::parse(whole).at("version")) + ": as the ledger in " + file +
                  " says, because no link of the chain holds them"));
  }
  EXPECT_THAT(test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store"}).out,
              testing::Not(HasSubstr("no link")));
  std::string stranger = whole;
  stranger.replace(stranger.find(lineage), 32, "not a lineage");
  test::WriteFile(file, stranger);
  for (const char* command : {"verify", "list"})
    EXPECT_THAT(ask({"ledger", command}).err,
                HasSubstr(file + ": its lineage is \"not a lineage\", and must be 32"));
  test::WriteFile(file, "{}");
  EXPECT_THAT(ask({"ledger", "verify"}).err,
              HasSubstr("raw.json is no ledger that `tacit ledger export --raw` has written"));
}

TEST_F(LedgerCommandsTest, ForecastOfOnceNeverRunsOut) {
  Train({});
  const json::object forecast = Json({"forecast"});
  const json::object& learner = forecast.at("learners").at(0).as_object();
  EXPECT_EQ(learner.at("learner"), "ctr");
  EXPECT_EQ(learner.at("forecast"), "constant");
  EXPECT_EQ(learner.at("budget").to_number<double>(), 8);
  EXPECT_TRUE(learner.at("runs_out").is_null());
  EXPECT_EQ(forecast.at("total").at("forecast"), "no_budget");
  const json::object lower = Json({"forecast", "--epsilon", "7"});
  EXPECT_EQ(lower.at("learners").at(0).at("forecast"), "exhausted");
  EXPECT_EQ(lower.at("total").at("forecast"), "exhausted");
  const Ended said = Ledger({"forecast"});
  EXPECT_THAT(said.out, HasSubstr("ctr: epsilon 8 of 8 at delta 1e-06: does not run out"));
  EXPECT_THAT(Ledger({"forecast", "--epsilon", "7.99999"}).out,
              HasSubstr("of 7.99999 at delta 1e-06: has run out"))
      << "it is not 8 of 8";
}

TEST_F(LedgerCommandsTest, ForecastOfAFewStepsSaysItIsTooLittle) {
  test::SmallRun run;
  run.batch = 2048;  // two steps a pass
  run.passes = run.max_participations = 3;
  Train(run);
  EXPECT_EQ(Json({"forecast", "--epsilon", "20"}).at("learners").at(0).at("forecast"),
            "too_little_history");
}

// The configuration bounds what a record can come to; a sampled second pass is seen in the history.
TEST_F(LedgerCommandsTest, ForecastGoesByTheConfigurationsLimits) {
  test::SmallRun run;
  run.passes = 2;
  run.participation =
      "{mode: poisson, batch: 150, sampling_rate: 0.05, steps_per_period: 1, period: 1000}";
  Train(run);
  const json::object exported = Json({"export"});
  EXPECT_EQ(exported.at("learners").at(0).at("event").at("count"), 2);
  EXPECT_EQ(Json({"show"}).at("entries"), 2) << "an entry for each pass";
  EXPECT_EQ(Json({"forecast"}).at("learners").at(0).at("forecast"), "too_little_history");
  const json::object bounded = Json({"forecast", "--config", dir_ / "store.yaml"});
  const json::object& learner = bounded.at("learners").at(0).as_object();
  EXPECT_EQ(learner.at("forecast"), "bounded");
  EXPECT_NEAR(learner.at("most").to_number<double>(), learner.at("epsilon").to_number<double>(),
              0.01);
  // With a third pass there would be no room.
  run.passes = 3;
  run.privacy =
      "{unit: event, epsilon: " + json::serialize(learner.at("epsilon")) + ", delta: 1.0e-6}";
  run.WriteConfig(dir_);
  EXPECT_NE(Json({"forecast", "--config", dir_ / "store.yaml"}).at("learners").at(0).at("forecast"),
            "bounded");
}

TEST_F(LedgerCommandsTest, ARunningDaemonIsAskedAndNotBelieved) {
  test::WriteSmallLog(dir_, 1, 3000, 4);
  test::SmallRun run;
  run.more = "budget: {epsilon: 9, delta: 1.0e-6}\n";
  test::Service service(dir_, run, {"--set", "serve.operator_listen=unix:" + (dir_ / "operator")});
  ASSERT_TRUE(service.WaitForSteps(12));
  const std::string url = "unix:" + (dir_ / "operator");
  const auto ask = [&](std::vector<std::string> arguments) {
    std::vector<std::string> command{TACIT, "ledger"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test::Run(command);
  };
  const auto both = [&](const std::string& command) {
    const Ended there = ask({command, "--url", url, "--json"});
    EXPECT_EQ(there.exit_code, 0) << there.err;
    json::object here = Json({command});
    here.erase("witness");  // beside the store; a daemon has its own
    EXPECT_EQ(json::parse(there.out), json::value(here)) << command;
    return json::parse(there.out).as_object();
  };
  EXPECT_EQ(both("verify").at("valid"), true);
  EXPECT_EQ(both("export").at("learners").at(0).at("steps"), 12);
  EXPECT_EQ(both("forecast").at("total").at("budget").to_number<double>(), 9);
  const json::value shown = json::parse(ask({"show", "--url", url, "--json"}).out);
  const json::object stored = Json({"show"});
  for (const json::value& show : {shown, json::value(stored)}) {
    EXPECT_EQ(show.at("total").at("budget").at("epsilon").to_number<double>(), 9);
    EXPECT_EQ(show.at("learners").at(0).at("budget").at("epsilon").to_number<double>(), 8);
  }
  const Ended refused = ask({"verify", "--url", service.url()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("serve.operator_listen"));
  EXPECT_EQ(ask({"verify", "--url", url, "--witness", "x"}).exit_code, 2);
}

TEST_F(LedgerCommandsTest, TheirHelpHasExamples) {
  for (const char* command : {"export", "forecast"}) {
    const Ended ended = test::Run({TACIT, "ledger", command, "--help"});
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_THAT(ended.out, HasSubstr("Example"));
    EXPECT_THAT(ended.out, HasSubstr("--json"));
  }
}

}  // namespace
}  // namespace tacit
