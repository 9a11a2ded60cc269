// Private quality, as a caller and an operator see it: off by default, its figures close to the raw
// ones, paid for in an account of its own, and the same after a restart.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>

#include "privacy/gaussian.h"
#include "service.h"
#include "support/metrics_page.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

constexpr double kQualityEpsilon = 2;

class QualityTest : public testing::Test {
 protected:
  QualityTest() {
    test::WriteSmallLog(dir_, 1, 8000, 5);
    run_.batch = 250;
    // Behind the learner's other keys.
    run_.second_learner = fmt::format(
        "    quality: {{steps: 8, bins: 16, epsilon: {}, delta: 1.0e-6}}\n", kQualityEpsilon);
  }
  json::object Quality(Service& service) {
    const auto answer = service.Ask("GET", "/v1/quality");
    return answer ? test::ParseJson(answer->body) : json::object{};
  }
  json::object Ledger() {
    return test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(QualityTest, EverybodySeesNoisedFiguresThatWerePaidFor) {
  json::object released;
  {
    Service service(dir_, run_, {"--set", "serve.operator_listen=unix:" + (dir_ / "operators")});
    ASSERT_TRUE(service.WaitForSteps(32));
    released = Quality(service);
    const json::object one = released.at("learners").at(0).as_object();
    EXPECT_EQ(one.at("learner"), "ctr");
    EXPECT_EQ(one.at("account"), "ctr.quality");
    EXPECT_EQ(one.at("steps"), (json::array{24, 32}));
    EXPECT_EQ(one.at("all").at("windows").to_number<int>(), 4);
    const double sigma = privacy::CalibrateGaussian(Epsilon(kQualityEpsilon), Delta(1e-6), 1).value;
    EXPECT_NEAR(one.at("last").at("noise_deviation").to_number<double>(), sigma, 1e-9);
    EXPECT_NEAR(one.at("all").at("noise_deviation").to_number<double>(), 2 * sigma, 1e-9);
    EXPECT_NEAR(one.at("all").at("events").to_number<double>(), 8000,
                6 * 2 * sigma * std::sqrt(32.0));
    EXPECT_NE(one.at("all").at("events").to_number<double>(), 8000) << "never without noise";
    // Close to the raw figure, which is the operator's.
    const auto raw =
        http::Fetch("unix:" + (dir_ / "operators") + ":/metrics", "GET", "", test::kPatience);
    ASSERT_TRUE(raw);
    const std::string name = "\ntacit_auc{learner=\"ctr\"} ";
    const size_t at = raw->body.find(name);
    ASSERT_NE(at, std::string::npos);
    const double auc = std::strtod(&raw->body[at + name.size()], nullptr);
    const double deviation = one.at("all").at("auc_deviation").to_number<double>();
    EXPECT_NEAR(one.at("all").at("auc").to_number<double>(), auc, 6 * deviation + .02);
    const std::string page = service.Ask("GET", "/metrics")->body;
    EXPECT_THAT(page, HasSubstr("tacit_private_auc{learner=\"ctr\"} 0."));
    EXPECT_THAT(page, HasSubstr("tacit_private_quality_windows{learner=\"ctr\"} 4"));
    EXPECT_THAT(page, HasSubstr("tacit_privacy_epsilon{learner=\"ctr.quality\"} "));
    EXPECT_THAT(test::Differences(test::DocumentedMetrics(), test::ShapesOf(raw->body),
                                  test::ShapesOf(page), false),
                testing::IsEmpty());
    ASSERT_TRUE(service.Stop());
  }
  const json::object ledger = Ledger();
  const json::object account = ledger.at("learners").at(1).as_object();
  EXPECT_EQ(account.at("learner"), "ctr.quality");
  EXPECT_EQ(account.at("steps").to_number<int>(), 4);
  EXPECT_NEAR(account.at("epsilon").to_number<double>(), kQualityEpsilon, 1e-6)
      << "each record is in one window";
  const double mu = std::hypot(privacy::GaussianMu(Epsilon(8), Delta(1e-6)),
                               privacy::GaussianMu(Epsilon(kQualityEpsilon), Delta(1e-6)));
  EXPECT_NEAR(ledger.at("total").at("epsilon").to_number<double>(),
              privacy::GaussianEpsilon(mu, Delta(1e-6)).value, 1e-3);
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store", "--full"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const Ended exported = test::Run({TACIT, "ledger", "export", "--store", dir_ / "store"});
  EXPECT_THAT(exported.out, HasSubstr("ctr.quality"));
  const Ended forecast = test::Run(
      {TACIT, "ledger", "forecast", "--store", dir_ / "store", "--config", dir_ / "store.yaml"});
  EXPECT_THAT(forecast.out, HasSubstr("ctr.quality: epsilon 2 of 2"));

  // The next life shows the same, draws nothing anew and charges nothing; so does a reader.
  for (const bool reads : {false, true}) {
    Service service(dir_, run_,
                    reads ? std::vector<std::string>{"--serve-only", "--checkpoint", dir_ / "store"}
                          : std::vector<std::string>{});
    ASSERT_TRUE(service.WaitFor("/readyz"));
    EXPECT_EQ(Quality(service).at("learners"), released.at("learners")) << reads;
    ASSERT_TRUE(service.Stop());
  }
  EXPECT_EQ(Ledger().at("learners"), ledger.at("learners"));
}

// An older copy knows nothing of the windows that were released since: they are charged by what the
// witness remembers, and their records are not counted again.
TEST_F(QualityTest, AnOlderCopyReleasesNoWindowAgain) {
  const auto learn = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--until-end"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  };
  ASSERT_EQ(learn().exit_code, 0);
  std::filesystem::copy(dir_ / "store", dir_ / "older", std::filesystem::copy_options::recursive);
  test::WriteSmallLog(dir_, 2, 8000, 5);
  ASSERT_EQ(learn().exit_code, 0);
  const json::object newest = Ledger();
  EXPECT_EQ(newest.at("learners").at(1).at("steps").to_number<int>(), 8);
  std::filesystem::remove_all(dir_ / "store");
  std::filesystem::rename(dir_ / "older", dir_ / "store");
  EXPECT_EQ(learn().exit_code, 3) << "the witness has seen a newer one";
  const Ended accepted = learn({"--accept-older-copy"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_THAT(accepted.err, HasSubstr("ctr.quality: 4 steps charged"));
  const json::object ledger = Ledger();
  for (const size_t account : {0, 1}) {
    EXPECT_EQ(ledger.at("learners").at(account).at("steps"),
              newest.at("learners").at(account).at("steps"));
    EXPECT_NEAR(ledger.at("learners").at(account).at("epsilon").to_number<double>(),
                newest.at("learners").at(account).at("epsilon").to_number<double>(), 1e-6);
  }
  // New records are counted in windows of their own.
  test::WriteSmallLog(dir_, 3, 8000, 5);
  const Ended more = learn();
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(Ledger().at("learners").at(1).at("steps").to_number<int>(), 12);
  EXPECT_NEAR(Ledger().at("learners").at(1).at("epsilon").to_number<double>(), kQualityEpsilon,
              1e-6);
}

TEST_F(QualityTest, ItIsOffByDefault) {
  run_.second_learner = "";
  Service service(dir_, run_);
  ASSERT_TRUE(service.WaitForSteps(32));
  EXPECT_EQ(Quality(service).at("learners"), json::array{});
  EXPECT_THAT(service.Ask("GET", "/metrics")->body, Not(HasSubstr("tacit_private_")));
  EXPECT_EQ(service.Privacy().at("learners").as_array().size(), 1u);
}

TEST_F(QualityTest, WhatItCostsIsSaidBefore) {
  const Ended plan = test::Run({TACIT, "privacy", "plan", "--config", run_.WriteConfig(dir_)});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("quality shows how well 'ctr' predicts, every 8 steps"));
  const double mu = std::hypot(privacy::GaussianMu(Epsilon(8), Delta(1e-6)),
                               privacy::GaussianMu(Epsilon(kQualityEpsilon), Delta(1e-6)));
  EXPECT_THAT(plan.out,
              HasSubstr(fmt::format("{:.3f}", privacy::GaussianEpsilon(mu, Delta(1e-6)).value)));
}

TEST_F(QualityTest, WhatItsNoiseDoesNotCoverIsRefused) {
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--check-config"};
    for (const std::string& one : more) command.insert(command.end(), {"--set", one});
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    return ended.err;
  };
  EXPECT_THAT(refusal({"learners.0.mechanism.kind=none", "learners.0.privacy.epsilon=.inf"}),
              HasSubstr("no noise would cover that"));
  run_.second_learner = "    quality: {steps: 8}\n";
  EXPECT_THAT(refusal({}), HasSubstr("required where quality is shown"));
  run_.second_learner = "    quality: {steps: 8, epsilon: 1, delta: 1.0e-6}\n";
  run_.participation =
      "{mode: poisson, batch: 50, sampling_rate: 0.1, steps_per_period: 5, period: 400}";
  EXPECT_THAT(refusal({}), HasSubstr("is for participation once"));
}

}  // namespace
}  // namespace tacit
