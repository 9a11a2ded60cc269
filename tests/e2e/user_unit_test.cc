// Unit user, as a user who runs the programs sees it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "privacy/gaussian.h"
#include "service.h"
#include "support/process.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using ::testing::HasSubstr;

void WriteLog(const TempDir& dir, int records, int users) {
  std::string text;
  for (int i = 0; i < records; ++i)
    text += fmt::format(
        R"({{"label":{},"user":"u{}","event_id":"e{}","features":{{"I1":{},"C1":"{}"}}}}{})", i % 2,
        i * 7 % users, i, i % 50, i % 60, '\n');
  test::WriteFile(dir / "day-0.jsonl", text);
}

SmallRun UserRun(const std::string& participation) {
  SmallRun run;
  run.files = "day-*.jsonl";
  run.source = ", format: json, dedupe: {window: 300}";
  run.privacy = "{unit: user, epsilon: 8, delta: 1.0e-6}";
  run.participation = participation;
  return run;
}

TEST(UserUnitTest, LedgerAndDaemonTellTheUnitAndItsBounds) {
  TempDir dir;
  WriteLog(dir, 6000, 150);
  const SmallRun run =
      UserRun("{mode: once, batch: 100, max_participations: 5, per_period: 2, period: 1000}");
  {
    Service service(dir, run);
    ASSERT_TRUE(service.WaitForSteps(60));
    const json::object learner = service.Privacy().at("learners").at(0).as_object();
    EXPECT_EQ(learner.at("unit"), "user");
    EXPECT_EQ(learner.at("adjacency"), "zero-out");
    EXPECT_EQ(
        learner.at("bounds"),
        (json::value{
            {"allowance", 5}, {"per_period", 2}, {"period_steps", 0}, {"dedupe_window", 300}}));
    EXPECT_FALSE(learner.at("budget").at("exhausted").as_bool());
  }
  const auto ledger = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {TACIT, "ledger"});
    words.insert(words.end(), {"--store", dir / "store"});
    return test::Run(words);
  };
  const json::object shown = json::parse(ledger({"show", "--json"}).out).as_object();
  EXPECT_EQ(shown.at("total").at("unit"), "user");
  EXPECT_EQ(shown.at("learners").at(0).at("steps"), 60);
  EXPECT_EQ(shown.at("learners").at(0).at("bounds").at("allowance"), 5);
  // Sixty steps; a user is in five, and pays for five.
  const double epsilon = shown.at("total").at("epsilon").to_number<double>();
  EXPECT_LE(epsilon, 8);
  EXPECT_GT(epsilon, 7.99);
  EXPECT_THAT(ledger({"show"}).out,
              HasSubstr("a user is in at most 5 steps, ever, 2 of a period; an "
                        "event id counts once in 300 offsets"));
  const Ended verified = ledger({"verify", "--full"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const Ended forecast = ledger({"forecast"});
  EXPECT_EQ(forecast.exit_code, 0) << forecast.err;
}

TEST(UserUnitTest, PoissonCountsAPeriodForAllOfItsSteps) {
  TempDir dir;
  WriteLog(dir, 3000, 100);
  const SmallRun run = UserRun(
      "{mode: poisson, batch: 20, sampling_rate: 0.2, steps_per_period: 10, period: 500, "
      "max_participations: 30}");
  const Ended ended = test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Ended shown = test::Run({TACIT, "ledger", "show", "--json", "--store", dir / "store"});
  const json::object ledger = json::parse(shown.out).as_object();
  // All hundred users are in each of the six periods, and in three of them count: thirty steps of
  // sixty.
  EXPECT_EQ(ledger.at("learners").at(0).at("steps"), 60);
  const double epsilon = ledger.at("total").at("epsilon").to_number<double>();
  EXPECT_LE(epsilon, 8);
  EXPECT_GT(epsilon, 7.9);
  const Ended verified = test::Run({TACIT, "ledger", "verify", "--full", "--store", dir / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
}

TEST(UserUnitTest, ThePlanIsOfTheAllowance) {
  TempDir dir;
  WriteLog(dir, 100, 10);
  const SmallRun run = UserRun("{mode: once, batch: 10, max_participations: 4}");
  const Ended plan =
      test::Run({TACIT, "privacy", "plan", "--json", "--config", run.WriteConfig(dir)});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json::object learner = json::parse(plan.out).at("learners").at(0).as_object();
  EXPECT_EQ(learner.at("unit"), "user");
  EXPECT_THAT(plan.out, HasSubstr("a user is in 4 steps ever"));
  EXPECT_EQ(json::parse(plan.out).at("total").at("unit"), "user");
}

// A user is in one of the first steps, and in as many of a day as the day has; not at once in all
// that the allowance lets.
TEST(UserUnitTest, ThePlanOfAStepIsOfOneStep) {
  TempDir dir;
  const SmallRun run = UserRun("{mode: once, batch: 10, max_participations: 40}");
  const Ended plan = test::Run({TACIT, "privacy", "plan", "--json", "--events-per-day", "40",
                                "--config", run.WriteConfig(dir)});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json::object learner = json::parse(plan.out).at("learners").at(0).as_object();
  const double sigma = learner.at("step").at("noise_multiplier").to_number<double>();
  const auto epsilon = [&](const char* after) {
    return learner.at("epsilon").at(after).to_number<double>();
  };
  const auto of_steps = [&](double steps) {
    return privacy::GaussianEpsilon(std::sqrt(steps) / sigma, Delta(1e-6)).value;
  };
  EXPECT_NEAR(epsilon("period"), of_steps(1), 0.01);
  EXPECT_NEAR(epsilon("day"), of_steps(4), 0.01);
  EXPECT_NEAR(epsilon("days_30"), of_steps(40), 0.02);
  EXPECT_NEAR(epsilon("allowed"), 8, 0.02);
  const Ended words = test::Run({TACIT, "privacy", "plan", "--config", run.WriteConfig(dir)});
  EXPECT_THAT(words.out, HasSubstr("all learners together, on one user"));
}

TEST(UserUnitTest, RecordsOfNobodyAreDeadLetters) {
  TempDir dir;
  test::WriteFile(dir / "day-0.jsonl",
                  "{\"label\":1,\"features\":{\"I1\":1},\"user\":\"u\"}\n"
                  "{\"label\":1,\"features\":{\"I1\":1}}\n"
                  "{\"label\":1,\"features\":{\"I1\":1},\"user\":\"\"}\n");
  const SmallRun run = UserRun("{mode: once, batch: 10, max_participations: 4}");
  const Ended ended = test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::string letters = test::ReadFile(dir / "store.dead-letters.jsonl");
  EXPECT_EQ(std::count(letters.begin(), letters.end(), '\n'), 2);
  EXPECT_THAT(letters, HasSubstr("user: is missing"));
}

}  // namespace
}  // namespace tacit
