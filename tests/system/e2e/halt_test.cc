// A stream that can hardly be read halts training, where source.halt_above says so: nothing behind
// the window is learnt, what came before is served, and an operator decides how it goes on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "privacy/gaussian.h"
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

constexpr uint64_t kHaltWindow = 500;
constexpr double kHaltEpsilon = 1;

class HaltTest : public testing::Test {
 protected:
  HaltTest() {
    run_.source =
        fmt::format(", halt_above: {{share: 0.5, window: {}, epsilon: {}, delta: 1.0e-6}}",
                    kHaltWindow, kHaltEpsilon);
    run_.batch = 100;
  }
  // Lines [begin, end) of 4,000 have a label that is none.
  void WriteLog(uint64_t begin, uint64_t end) {
    test::WriteSmallLog(dir_, 1, 4000, 5);
    std::string text;
    uint64_t line = 0;
    for (const char c : test::ReadFile(dir_ / "day-0.tsv")) {
      const bool begins = text.empty() || text.back() == '\n';
      if (begins && line >= begin && line < end) text += "renamed";
      text += c;
      line += c == '\n' ? 1 : 0;
    }
    test::WriteFile(dir_ / "day-0.tsv", text);
  }
  Ended Learn(std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--until-end"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  boost::json::object Ledger() {
    const Ended shown = test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    return test::ParseJson(shown.out);
  }
  static boost::json::object Account(const boost::json::object& ledger) {
    for (const auto& learner : ledger.at("learners").as_array())
      if (learner.at("learner").as_string() == "source.halt_above") return learner.as_object();
    ADD_FAILURE() << "no account of the breaker: " << ledger;
    return {};
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(HaltTest, NothingBehindAHaltIsLearntUntilItsWindowIsNamed) {
  WriteLog(1000, 2000);
  const Ended halted = Learn();
  EXPECT_EQ(halted.exit_code, 5) << halted.err;
  EXPECT_THAT(halted.err, AllOf(HasSubstr("source.halt_above halted training at window 3"),
                                HasSubstr("more than 50 % of its 500 records"),
                                HasSubstr("start tacitd with --past-halt 3")));
  boost::json::object ledger = Ledger();
  const auto version = ledger.at("version").to_number<uint64_t>();
  // Three windows; the step that ends with the third one waits for a record behind it.
  EXPECT_EQ(Account(ledger).at("steps").to_number<int>(), 3);
  EXPECT_EQ(ledger.at("learners").at(0).at("steps").to_number<int>(), 14);
  EXPECT_NEAR(Account(ledger).at("epsilon").to_number<double>(), kHaltEpsilon, 1e-6);

  // A start alone does not go on, and neither does another window's number.
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--past-halt", "2"}, {"--past-halt", "4"}}) {
    const Ended again = Learn(more);
    EXPECT_EQ(again.exit_code, 5) << again.err;
    EXPECT_THAT(again.err, HasSubstr("--past-halt 3"));
    EXPECT_EQ(Ledger().at("version").to_number<uint64_t>(), version);
  }

  // The next window is as bad; behind that one all is well.
  const Ended next = Learn({"--past-halt", "3"});
  EXPECT_EQ(next.exit_code, 5) << next.err;
  EXPECT_THAT(next.err, HasSubstr("--past-halt 4"));
  const Ended whole = Learn({"--past-halt", "4"});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  ledger = Ledger();
  EXPECT_EQ(Account(ledger).at("steps").to_number<int>(), 8);
  EXPECT_EQ(ledger.at("learners").at(0).at("steps").to_number<int>(), 40);
  EXPECT_NEAR(Account(ledger).at("epsilon").to_number<double>(), kHaltEpsilon, 1e-6)
      << "no record is in two windows";
  // One record's whole cost: its step, and its window.
  const double mu = std::hypot(privacy::GaussianMu(Epsilon(8), Delta(1e-6)),
                               privacy::GaussianMu(Epsilon(kHaltEpsilon), Delta(1e-6)));
  EXPECT_NEAR(ledger.at("total").at("epsilon").to_number<double>(),
              privacy::GaussianEpsilon(mu, Delta(1e-6)).value, 1e-3);
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store", "--full"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const Ended exported = test::Run({TACIT, "ledger", "export", "--store", dir_ / "store"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(exported.out, AllOf(HasSubstr("source.halt_above"), HasSubstr("GaussianDpEvent")));
  const Ended forecast = test::Run(
      {TACIT, "ledger", "forecast", "--store", dir_ / "store", "--config", dir_ / "store.yaml"});
  EXPECT_EQ(forecast.exit_code, 0) << forecast.err;
  EXPECT_THAT(forecast.out, HasSubstr("source.halt_above: epsilon 1 of 1"));
}

// An older copy knows nothing of the windows that were decided since: they are charged by what the
// witness remembers, and are not counted again.
TEST_F(HaltTest, AnOlderCopyCountsNoWindowAgain) {
  WriteLog(1000, 2000);
  ASSERT_EQ(Learn().exit_code, 5);
  std::filesystem::copy(dir_ / "store", dir_ / "older", std::filesystem::copy_options::recursive);
  ASSERT_EQ(Learn({"--past-halt", "3"}).exit_code, 5);
  const boost::json::object newest = Ledger();
  std::filesystem::remove_all(dir_ / "store");
  std::filesystem::rename(dir_ / "older", dir_ / "store");
  EXPECT_EQ(Learn().exit_code, 3) << "the witness has seen a newer one";
  const Ended accepted = Learn({"--accept-older-copy"});
  EXPECT_EQ(accepted.exit_code, 5) << accepted.err;
  EXPECT_THAT(accepted.err,
              AllOf(HasSubstr("source.halt_above: 1 step charged"), HasSubstr("--past-halt 4")))
      << "the halt of the lost store holds";
  EXPECT_EQ(Account(Ledger()).at("steps"), Account(newest).at("steps"));
  const Ended whole = Learn({"--past-halt", "4"});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(Account(Ledger()).at("steps").to_number<int>(), 8);
  EXPECT_NEAR(Account(Ledger()).at("epsilon").to_number<double>(), kHaltEpsilon, 1e-6);
}

// Windows are the same for any use of their records by learners: two learners, one of which
// holds a period and draws steps from it.
TEST_F(HaltTest, LearnersThatHoldPeriodsHaltToo) {
  WriteLog(1000, 2000);
  run_.second_learner =
      "  - id: held\n"
      "    model: {kind: pctr, hidden: [8]}\n"
      "    mechanism: {kind: dp-sgd}\n"
      "    participation: {mode: poisson, batch: 50, sampling_rate: 0.1, steps_per_period: 5, "
      "period: 400}\n"
      "    privacy: {unit: event, epsilon: 4, delta: 1.0e-6}\n";
  const Ended halted = Learn();
  EXPECT_EQ(halted.exit_code, 5) << halted.err;
  EXPECT_THAT(halted.err, HasSubstr("--past-halt 3"));
  boost::json::object ledger = Ledger();
  EXPECT_EQ(ledger.at("learners").at(1).at("learner").as_string(), "held");
  EXPECT_EQ(ledger.at("learners").at(1).at("steps").to_number<int>(), 15)
      << "the periods that end before the window does";
  const auto version = ledger.at("version").to_number<uint64_t>();
  EXPECT_EQ(Learn().exit_code, 5);
  EXPECT_EQ(Ledger().at("version").to_number<uint64_t>(), version);
  EXPECT_EQ(Learn({"--past-halt", "3"}).exit_code, 5);
  EXPECT_EQ(Learn({"--past-halt", "4"}).exit_code, 0);
  ledger = Ledger();
  EXPECT_EQ(Account(ledger).at("steps").to_number<int>(), 8);
  EXPECT_EQ(ledger.at("learners").at(1).at("steps").to_number<int>(), 50);
  for (const auto& learner : ledger.at("learners").as_array())
    EXPECT_LE(learner.at("epsilon").to_number<double>(),
              learner.at("budget").at("epsilon").to_number<double>())
        << "nothing is charged twice: " << learner;
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store", "--full"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
}

TEST_F(HaltTest, AStreamThatIsReadHaltsNothing) {
  WriteLog(1000, 1200);
  EXPECT_EQ(Learn().exit_code, 0);
  EXPECT_EQ(Account(Ledger()).at("steps").to_number<int>(), 8);
}

TEST_F(HaltTest, EverybodyIsToldAndIsServedOn) {
  WriteLog(1000, 4000);
  Service service(dir_, run_, {"--set", "serve.operator_listen=unix:" + (dir_ / "operators")});
  ASSERT_TRUE(service.WaitForWord("halted training at window 3"));
  const auto ask = [&](const std::string& path) {
    const auto answer =
        http::Fetch("unix:" + (dir_ / "operators") + ":" + path, "GET", "", test::kPatience);
    return answer ? answer->body : answer.error().message;
  };
  EXPECT_THAT(ask("/readyz"), AllOf(HasSubstr("ready, degraded"), HasSubstr("--past-halt 3")));
  EXPECT_EQ(service.Ask("GET", "/readyz")->body, "ready, degraded: training is halted\n");
  EXPECT_THAT(service.Ask("GET", "/metrics")->body,
              AllOf(HasSubstr("tacit_training_halted 1"), HasSubstr("tacit_training_failed 0")));
  const boost::json::object privacy = service.Privacy();
  EXPECT_NEAR(Account(privacy).at("epsilon").to_number<double>(), kHaltEpsilon, 1e-6);
  EXPECT_EQ(Account(privacy).at("budget").at("epsilon").to_number<double>(), kHaltEpsilon);
  EXPECT_FALSE(privacy.contains("retired"));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << "a service that stops when asked has succeeded";
}

TEST_F(HaltTest, AServerOfTheStoreTellsTheAccountToo) {
  WriteLog(0, 0);
  ASSERT_EQ(Learn().exit_code, 0);
  Service server(dir_, run_, {"--serve-only", "--checkpoint", dir_ / "store"});
  ASSERT_TRUE(server.WaitFor("/readyz"));
  EXPECT_NEAR(Account(server.Privacy()).at("epsilon").to_number<double>(), kHaltEpsilon, 1e-6);
  EXPECT_EQ(server.Stop()->exit_code, 0);
}

TEST_F(HaltTest, WhatItCostsIsSaidBefore) {
  WriteLog(0, 0);
  const Ended plan = test::Run({TACIT, "privacy", "plan", "--config", run_.WriteConfig(dir_)});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("source.halt_above halts above 50 % of 500 records"));
  const double mu = std::hypot(privacy::GaussianMu(Epsilon(8), Delta(1e-6)),
                               privacy::GaussianMu(Epsilon(kHaltEpsilon), Delta(1e-6)));
  EXPECT_THAT(plan.out,
              HasSubstr(fmt::format("{:.2f}", privacy::GaussianEpsilon(mu, Delta(1e-6)).value)));
}

TEST_F(HaltTest, WhatCannotBePromisedIsRefused) {
  WriteLog(0, 0);
  const auto refusal = [&](const std::string& more) {
    const Ended ended =
        test::Run({TACITD, "--config", run_.WriteConfig(dir_), "--check-config", "--set", more});
    EXPECT_EQ(ended.exit_code, 2) << more;
    return ended.err;
  };
  EXPECT_THAT(refusal("source.halt_above.epsilon=0.01"),
              AllOf(HasSubstr("would decide by itself"), HasSubstr("window must be at least")));
  EXPECT_THAT(refusal("source.halt_above.share=1"), HasSubstr("source.halt_above.share"));
  run_.more = "budget: {epsilon: 8.0001, delta: 1.0e-6}\n";
  const Ended none = Learn();
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("not one window could be decided"));
}

}  // namespace
}  // namespace tacit
