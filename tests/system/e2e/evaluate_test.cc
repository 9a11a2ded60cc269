// tacit evaluate as an experimenter runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>

#include "support/json.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

class EvaluateTest : public testing::Test {
 protected:
  EvaluateTest() {
    test::WriteSmallLog(dir_, 3, 1500, 4);
    test::SmallRun run;
    run.participation =
        "{mode: poisson, batch: 150, sampling_rate: 0.1, steps_per_period: 10, period_files: 1}";
    config_ = run.WriteConfig(dir_);
  }

  Ended Evaluate(std::vector<std::string> more) {
    std::vector<std::string> command{TACIT, "evaluate", "ctr", "--config", config_, "--data"};
    for (int day = 0; day < 3; ++day)
      command.push_back(dir_ / ("day-" + std::to_string(day) + ".tsv"));
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  json::object Json(std::vector<std::string> more) {
    more.push_back("--json");
    return test::Json(Evaluate(std::move(more)));
  }

  TempDir dir_;
  std::string config_;
};

TEST_F(EvaluateTest, AGridHasARowForEachExperimentAndAReasonForEachRefusal) {
  const json::object result = Json({"--grid", "mechanism.kind=adafest,dp-sgd,fest", "--grid",
                                    "mechanism.threshold=1,inf", "--grid", "participation.epochs=1",
                                    "--set", "learners.0.optimizer.kind=sgd", "--jobs", "2"});
  const json::array& rows = result.at("rows").as_array();
  ASSERT_EQ(rows.size(), 3u);
  for (const json::value& row : rows) {
    // As much as is promised, by what was done; each day is a period of ten steps of a tenth.
    const double spent = row.at("epsilon_spent").to_number<double>();
    EXPECT_LE(spent, 8);
    EXPECT_GT(spent, 7.5);
    EXPECT_EQ(row.at("steps").to_number<int>(), 30);
    EXPECT_EQ(row.at("events_measured").to_number<int>(), 4500);
    EXPECT_EQ(row.at("settings").at("participation.steps_per_period"), "10");
  }
  EXPECT_GT(rows[0].at("gradient_size_reduction").to_number<double>(), 1);
  EXPECT_TRUE(rows[1].at("gradient_size_reduction").is_null()) << "no row was ever written";
  EXPECT_EQ(rows[1].at("rows_written_per_step").to_number<double>(), 0);
  EXPECT_EQ(rows[2].at("mechanism"), "dp-sgd");
  EXPECT_EQ(rows[2].at("gradient_size_reduction").to_number<double>(), 1);
  const json::array& refused = result.at("refused").as_array();
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_THAT(std::string(refused[0].at("reason").as_string()),
              HasSubstr("mechanism.vocabulary.source: required"));
}

TEST_F(EvaluateTest, RecordsOfWhichNoneCanBeReadAreRefusedWithTheReason) {
  for (int day = 0; day < 3; ++day)
    test::WriteFile(dir_ / ("day-" + std::to_string(day) + ".tsv"), "maybe\t1\nno\t2\n");
  const Ended ended = Evaluate({});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("0 usable events, 6 records could not be read: "));
  EXPECT_THAT(ended.err, HasSubstr("day-0.tsv:1: "));
}

TEST_F(EvaluateTest, WhatIsFinishedIsNotRunAgain) {
  const std::string results = dir_ / "runs.jsonl";
  const std::vector<std::string> first = {
      "--grid", "mechanism.threshold=1,3", "--seeds", "2", "--results", results};
  const json::object before = Json(first);
  const std::string kept = test::ReadFile(results);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 4);
  EXPECT_EQ(Json(first), before) << "noise is fresh in each run: these are the kept ones";
  EXPECT_EQ(test::ReadFile(results), kept);
  // A grid that has grown runs what is new.
  Json({"--grid", "mechanism.threshold=1,3,5", "--seeds", "2", "--results", results});
  const std::string grown = test::ReadFile(results);
  EXPECT_TRUE(grown.starts_with(kept));
  EXPECT_EQ(std::count(grown.begin(), grown.end(), '\n'), 6);
  // As if stopped while it wrote the third: that one and the fourth are run again.
  size_t third = 0;
  for (int line = 0; line < 2; ++line) third = kept.find('\n', third) + 1;
  test::WriteFile(results, kept.substr(0, third + 20));
  Json(first);
  const std::string again = test::ReadFile(results);
  EXPECT_TRUE(again.starts_with(kept.substr(0, third)));
  EXPECT_EQ(std::count(again.begin(), again.end(), '\n'), 4);
}

TEST_F(EvaluateTest, ARunIsOfTheRowsThatItsVocabularyHeld) {
  const std::string results = dir_ / "runs.jsonl", vocabulary = dir_ / "rows.tsv";
  const auto runs = [&](const std::string& rows) {
    test::WriteFile(vocabulary, rows);
    Json({"--results", results, "--set",
          "learners.0.mechanism={kind: fest, vocabulary: {source: file, file: " + vocabulary +
              "}}"});
    const std::string kept = test::ReadFile(results);
    return std::count(kept.begin(), kept.end(), '\n');
  };
  EXPECT_EQ(runs("C1\ta\nC1\tb\n"), 1);
  EXPECT_EQ(runs("# the same\nC1\ta\nC1\tb\n"), 1);
  EXPECT_EQ(runs("C1\ta\nC1\tc\n"), 2);
}

TEST_F(EvaluateTest, WhatLiesBehindTheTrainingFilesIsPredictedAlone) {
  const json::object result = Json({"--train-files", "2"});
  const json::object& row = result.at("rows").at(0).as_object();
  EXPECT_EQ(row.at("events").to_number<int>(), 3000);
  EXPECT_EQ(row.at("steps").to_number<int>(), 20);
  EXPECT_EQ(row.at("events_measured").to_number<int>(), 1500);
  const json::object same = Json({"--train-to", "3000", "--to", "4000"});
  EXPECT_EQ(same.at("rows").at(0).at("events_measured").to_number<int>(), 1000);
  EXPECT_EQ(Evaluate({"--train-files", "3"}).exit_code, 2);
  EXPECT_EQ(Evaluate({"--train-files", "4"}).exit_code, 2);
  EXPECT_EQ(Evaluate({"--train-files", "1", "--train-to", "5"}).exit_code, 2);
}

// The model is left as it is: without privacy, and so without noise, the order in which the rest is
// measured makes no difference; a model that kept learning would show it.
TEST_F(EvaluateTest, AFrozenModelDoesNotLearn) {
  const std::vector<std::string> plain = {
      "--set", "learners.0.mechanism={kind: none}",     "--set",  "learners.0.privacy.epsilon=.inf",
      "--set", "learners.0.participation={mode: once}", "--from", "4000"};
  std::vector<std::string> frozen = plain;
  frozen.insert(frozen.end(), {"--train-to", "200"});
  const json::object before = Json(frozen);
  // The records between are others, the last 500 the same.
  const std::string day = dir_ / "day-1.tsv";
  test::WriteFile(day, test::ReadFile(dir_ / "day-0.tsv"));
  EXPECT_EQ(Json(frozen).at("rows").at(0).at("auc"), before.at("rows").at(0).at("auc"));
  const json::object learnt = Json(plain);
  EXPECT_NE(learnt.at("rows").at(0).at("auc"), before.at("rows").at(0).at("auc"));
}

TEST_F(EvaluateTest, DifferencesFigureAndTableAreWritten) {
  const json::object result = Json({"--grid", "mechanism.threshold=1,4", "--bootstrap", "50",
                                    "--svg", dir_ / "f.svg", "--markdown", dir_ / "t.md"});
  int compared = 0;
  for (const json::value& row : result.at("rows").as_array()) {
    const json::value* difference = row.as_object().if_contains("auc_difference");
    if (difference == nullptr) continue;
    ++compared;
    EXPECT_LE(difference->at("low").to_number<double>(),
              difference->at("high").to_number<double>());
  }
  EXPECT_EQ(compared, 1) << "the better one is the reference";
  const std::string svg = test::ReadFile(dir_ / "f.svg");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("adafest"));
  EXPECT_THAT(test::ReadFile(dir_ / "t.md"), HasSubstr("| threshold=4 |"));
}

// Before any run: nothing is kept, and no file is left.
TEST_F(EvaluateTest, WhatCannotBeDoneIsRefusedBeforeTheRuns) {
  const std::string results = dir_ / "r.jsonl";
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--results", results});
    const Ended ended = Evaluate(std::move(more));
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_EQ(ended.out, "");
    EXPECT_FALSE(std::filesystem::exists(results));
    return ended.err;
  };
  EXPECT_THAT(refusal({"--reference", "dp-sdg", "--grid", "mechanism.kind=adafest,dp-sgd"}),
              AllOf(HasSubstr("--reference dp-sdg"), HasSubstr("did you mean 'dp-sgd'"),
                    HasSubstr("it has ctr, adafest, dp-sgd")));
  EXPECT_THAT(refusal({"--svg", dir_ / "none/f.svg"}), HasSubstr("--svg " + (dir_ / "none/f.svg")));
  EXPECT_THAT(refusal({"--markdown", dir_ / "none/t.md"}), HasSubstr("--markdown"));
  EXPECT_THAT(Evaluate({"--results", dir_ / "none/r.jsonl"}).err, HasSubstr("cannot be written"));
  EXPECT_THAT(refusal({"--grid", "privacy.epsilon=1", "--grid", "privacy.epsilon=3"}),
              HasSubstr("given twice"));
  EXPECT_THAT(refusal({"--grid", "optimizer.kind=sgd,adan"}), HasSubstr("optimizer.kind=adan"));
}

TEST_F(EvaluateTest, TheTableIsPrintedThoughAFileFails) {
  const Ended ended = Evaluate({"--markdown", "/dev/full"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("epsilon is at delta 1e-06"));
  EXPECT_THAT(ended.err, HasSubstr("/dev/full: cannot be written"));
}

// AdaFEST within a vocabulary of 40 rows writes many of them where they are the frequent ones, and
// hardly any where noise has chosen them of 1664. What lies before the measured stretch is not
// predicted, but it is counted.
TEST_F(EvaluateTest, AVocabularyIsOfWhatIsNotMeasuredToo) {
  const auto written = [&](const std::string& noise_multiplier, std::vector<std::string> more) {
    more.insert(more.end(), {"--set",
                             "learners.0.mechanism={kind: adafest+, threshold: 12, vocabulary: "
                             "{source: running, keep: 40, noise_multiplier: " +
                                 noise_multiplier + "}}"});
    const json::object result = Json(std::move(more));
    return result.at("rows").at(0).at("rows_written_per_step").to_number<double>();
  };
  const double measured = written("9", {});
  const double before = written("9", {"--train-files", "2"});
  const double by_noise = written("1e6", {"--train-files", "2"});
  EXPECT_GT(before, 2 * by_noise);
  EXPECT_NEAR(before, measured, 0.5 * measured);
}

TEST_F(EvaluateTest, WarnsWhereBatchIsNotWhatAStepHolds) {
  const Ended ended = Evaluate({"--set", "learners.0.participation.batch=100"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("warning: learner 'ctr': a step holds 150 events"));
  EXPECT_THAT(Evaluate({}).err, Not(HasSubstr("warning")));
}

// Every kind of mechanism and of clip, from the command line to a ledger's figure.
TEST_F(EvaluateTest, EveryMechanismLearnsWithinItsEpsilon) {
  const json::object result =
      Json({"--grid",
            "mechanism={kind: fest, vocabulary: {source: running, keep: 99, noise_multiplier: "
            "9}},{kind: "
            "fest, vocabulary: {source: first-period, keep: 99, noise_multiplier: 9, query: "
            "gumbel}},{kind: adafest+, threshold: 1, vocabulary: {source: first-period, keep: 99, "
            "noise_multiplier: 9}},{kind: exponential, rows: 40, row_epsilon: 0.05},{kind: dp-sgd, "
            "clipping: quantile, quantile: {noise_multiplier: 9}},{kind: adafest, threshold: 1, "
            "clipping: "
            "automatic},{kind: adafest, threshold: 1, clipping: per-layer}",
            "--grid", "model.categorical=true,false", "--jobs", "2"});
  const json::array& rows = result.at("rows").as_array();
  EXPECT_GE(rows.size(), 7u);
  for (const json::value& row : rows) {
    SCOPED_TRACE(json::serialize(row));
    EXPECT_LE(row.at("epsilon_spent").to_number<double>(), 8);
    EXPECT_GT(row.at("epsilon_spent").to_number<double>(), 7.5);
    EXPECT_TRUE(std::isfinite(row.at("log_loss").at("mean").to_number<double>()));
    const bool numbers = row.at("settings").at("model.categorical") == "false";
    if (numbers) {
      EXPECT_EQ(row.at("rows_written_per_step").to_number<double>(), 0);
    }
  }
  // Without tables there are no rows to choose from, by three vocabularies and a number of rows.
  const json::array& refused = result.at("refused").as_array();
  ASSERT_EQ(refused.size(), 4u);
  EXPECT_THAT(std::string(refused[0].at("reason").as_string()), HasSubstr("without tables"));
  EXPECT_THAT(std::string(refused[3].at("reason").as_string()), HasSubstr("mechanism.rows: 40"));
}

}  // namespace
}  // namespace tacit
