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
using ::testing::Not;

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
  // All 150 users have been in five steps.
  const Ended forecast = ledger({"forecast"});
  EXPECT_EQ(forecast.exit_code, 0) << forecast.err;
  EXPECT_THAT(forecast.out, HasSubstr("of 150 users, 150 cannot be learnt from again"));
  const Ended more = ledger({"forecast", "--json"});
  EXPECT_EQ(json::parse(more.out).at("learners").at(0).at("users"),
            (json::value{{"users", 150},
                         {"with_nothing_left", 150},
                         {"by_quarter_left", json::array{0, 0, 0, 0}},
                         {"will_have_nothing_left", json::array{}}}));
  // Daemons say the same to operators, and to nobody else.
  const std::string operators = "unix:" + (dir / "operator");
  Service service(dir, run, {"--set", "serve.operator_listen=" + operators});
  const std::string counted = "tacit_users_by_allowance_left{learner=\"ctr\",left=\"nothing\"} 150";
  EXPECT_TRUE(service.Until("operators see the count", [&] {
    const auto metrics = http::Fetch(operators + ":/metrics", "GET", "", test::kPatience);
    return metrics && metrics->body.find(counted) != std::string::npos;
  }));
  const auto open = service.Ask("GET", "/metrics");
  ASSERT_TRUE(open);
  EXPECT_THAT(open->body, Not(HasSubstr("tacit_users_by_allowance_left")));
}

TEST(UserUnitTest, PoissonCountsAPeriodForAllOfItsSteps) {
  TempDir dir;
  WriteLog(dir, 3000, 100);
  const SmallRun run = UserRun(
      "{mode: poisson, batch: 20, sampling_rate: 0.2, steps_per_period: 10, period: 500, "
      "max_participations: 30}");
  const Ended ended = test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("100 % of the last 100 users and 100 % of their 500 "
                                   "records could not be learnt from: allowances"));
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

// Paced by the year, a user's cost of a year is below that of his life, and is known without the
// length of a day.
TEST(UserUnitTest, ThePlanHasTheClaimOfAYearBesideThatOfALife) {
  TempDir dir;
  const SmallRun run =
      UserRun("{mode: once, batch: 10, max_participations: 40, per_period: 4, period_files: 365}");
  const Ended plan =
      test::Run({TACIT, "privacy", "plan", "--json", "--config", run.WriteConfig(dir)});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json::object learner = json::parse(plan.out).at("learners").at(0).as_object();
  const double sigma = learner.at("step").at("noise_multiplier").to_number<double>();
  const json::object& epsilon = learner.at("epsilon").as_object();
  const auto of_steps = [&](double steps) {
    return privacy::GaussianEpsilon(std::sqrt(steps) / sigma, Delta(1e-6)).value;
  };
  EXPECT_NEAR(epsilon.at("step").to_number<double>(), of_steps(1), 0.01);
  EXPECT_NEAR(epsilon.at("year").to_number<double>(), of_steps(4), 0.01);
  EXPECT_NEAR(epsilon.at("allowed").to_number<double>(), 8, 0.02);
  // Periods of 100 days: a year that begins inside of one has parts of five of them.
  const SmallRun unaligned =
      UserRun("{mode: once, batch: 10, max_participations: 40, per_period: 4, period_files: 100}");
  const Ended other =
      test::Run({TACIT, "privacy", "plan", "--json", "--config", unaligned.WriteConfig(dir)});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  const json::value years = json::parse(other.out).at("learners").at(0).at("epsilon");
  EXPECT_NEAR(years.at("year").to_number<double>(), of_steps(20), 0.02);
  EXPECT_NEAR(years.at("days_30").to_number<double>(), of_steps(4), 0.01);
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
