// tacit privacy plan: its numbers are those of the accountants, and of what the daemon will spend.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>

#include "privacy/gaussian.h"
#include "support/json.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Json;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

json::object Plan(const std::string& config, std::vector<std::string> more = {}) {
  std::vector<std::string> command{TACIT, "privacy", "plan", "--config", config, "--json"};
  command.insert(command.end(), more.begin(), more.end());
  return Json(test::Run(command));
}

double Number(const json::value& value) { return value.to_number<double>(); }

// The epsilon that `tacit privacy epsilon` prints.
double PldEpsilon(double noise, double rate, uint64_t steps, const char* delta) {
  return Number(
      Json(test::Run({TACIT, "privacy", "epsilon", "--accountant", "pld", "--noise-multiplier",
                      fmt::format("{:.17g}", noise), "--sampling-rate", fmt::format("{}", rate),
                      "--steps", fmt::format("{}", steps), "--delta", delta, "--json"}))
          .at("epsilon"));
}

// DP-FP: the corrected charge, the paper's as an estimate, and what neither covers; the ledger of a
// run says the same.
TEST(PrivacyPlanTest, RepresentationsCostKnownCoinsAndLabelsAreNotCovered) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  SmallRun run;
  run.mechanism = "{kind: forward, representation_clip: 5}";
  run.participation =
      "{mode: poisson, batch: 40, sampling_rate: 0.02, steps_per_period: 50, period: 2000}";
  const std::string config = run.WriteConfig(dir);
  const json::object plan = Plan(config);
  const json::object& learner = plan.at("learners").at(0).as_object();
  const std::string noise =
      fmt::format("{:.17g}", Number(learner.at("step").at("noise_multiplier")));
  const json::object known =
      Json(test::Run({TACIT, "privacy", "epsilon", "--noise-multiplier", noise, "--sampling-rate",
                      "0.02", "--steps", "50", "--delta", "1e-6", "--known-coins", "--json"}));
  const double epsilon = Number(known.at("epsilon"));
  EXPECT_NEAR(Number(learner.at("epsilon").at("period")), epsilon, 0.01 * epsilon);
  EXPECT_LE(epsilon, 8);
  EXPECT_GT(epsilon, 7.8);
  EXPECT_NEAR(Number(learner.at("epsilon_period_estimate")),
              Number(known.at("epsilon_clt_estimate")), 1e-9);
  EXPECT_LT(Number(known.at("epsilon_clt_estimate")), epsilon / 2);
  EXPECT_TRUE(learner.at("not_covered").as_string().starts_with("labels are not covered"));
  const Ended words = test::Run({TACIT, "privacy", "plan", "--config", config});
  EXPECT_THAT(words.out, HasSubstr("NOT COVERED"));
  EXPECT_THAT(words.out, HasSubstr("an ESTIMATE, no bound"));

  const Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Ended shown = test::Run({TACIT, "ledger", "show", "--store", dir / "store"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("ctr: labels are not covered"));
  const json::object ledger =
      Json(test::Run({TACIT, "ledger", "show", "--store", dir / "store", "--json"}));
  EXPECT_NEAR(Number(ledger.at("total").at("epsilon")), epsilon, 0.01 * epsilon);
  EXPECT_TRUE(ledger.at("total").at("not_covered").as_string().starts_with("labels"));
  const json::object exported =
      Json(test::Run({TACIT, "ledger", "export", "--store", dir / "store"}));
  EXPECT_EQ(exported.at("learners").at(0).at("known_coins").at(0).at("count"), 50);
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir / "store"}).exit_code,
            0);
}

TEST(PrivacyPlanTest, OnceCostsADayWhatAStepCosts) {
  TempDir dir;  // holds no log: a plan reads the configuration alone
  SmallRun run;
  run.passes = 2;
  run.max_participations = 3;
  const json::object plan = Plan(run.WriteConfig(dir), {"--events-per-day", "2560"});
  const json::object& learner = plan.at("learners").at(0).as_object();
  const json::object& step = learner.at("step").as_object();
  const double noise = Number(step.at("noise_multiplier"));
  EXPECT_NEAR(Number(step.at("sigma_selection")) / Number(step.at("sigma_gradient")), 5, 1e-9);
  EXPECT_NEAR(noise, privacy::CalibrateGaussian(Epsilon(8), Delta(1e-6), 3).value, 1e-6);
  const json::object& epsilon = learner.at("epsilon").as_object();
  EXPECT_NEAR(Number(epsilon.at("period")), PldEpsilon(noise, 1, 1, "1e-6"), 1e-9);
  EXPECT_EQ(epsilon.at("day"), epsilon.at("period"));
  EXPECT_EQ(epsilon.at("days_30"), epsilon.at("period"));
  EXPECT_NEAR(Number(epsilon.at("all_passes")), PldEpsilon(noise, 1, 2, "1e-6"), 1e-9);
  EXPECT_NEAR(Number(epsilon.at("allowed")), PldEpsilon(noise, 1, 3, "1e-6"), 1e-9);
  EXPECT_LE(Number(epsilon.at("allowed")), 8);
  // In plain words, of all three participations: Phi(mu / 2), and Phi(mu - Phi^-1(.99)).
  const double mu = std::sqrt(3.0) / noise;
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  for (const json::object* told : {&learner, &plan.at("total").as_object()}) {
    const json::object& at_most = told->at("at_most").as_object();
    EXPECT_NEAR(Number(at_most.at("accuracy")), phi(mu / 2), 1e-9);
    EXPECT_NEAR(Number(at_most.at("bayes_risk")), 1 - phi(mu / 2), 1e-9);
    EXPECT_NEAR(Number(at_most.at("found_at_1_false_in_100")), phi(mu - 2.3263478740408408), 1e-5);
    EXPECT_THAT(
        std::string(at_most.at("words").as_string()),
        HasSubstr(fmt::format("at most {:.1f} times of 100", std::ceil(1000 * phi(mu / 2)) / 10)));
  }
  EXPECT_EQ(learner.at("steps_per_day"), 10);
  EXPECT_GT(Number(learner.at("untouched_rows_per_step")), 0);
  EXPECT_TRUE(learner.at("touched_rows_per_step").is_null()) << "nobody knows without the data";
  EXPECT_EQ(plan.at("total").at("epsilon"), learner.at("epsilon")) << "one learner is all there is";
}

TEST(PrivacyPlanTest, WhatIsHeldIsSaid) {
  const std::string demo = std::string(TACIT_SOURCE_DIR) + "/config/demo.yaml";
  const Ended plan = test::Run({TACIT, "privacy", "plan", "--config", demo});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("every event in 1 period of 150,000, in the order it came; a "
                                  "period is held until it is full"));
  EXPECT_THAT(plan.out, HasSubstr("every event in 1 step of 2,048, in the order it came; nothing "
                                  "is held"));
}

TEST(PrivacyPlanTest, OtherParticipationsHaveTheirNoise) {
  TempDir dir;
  SmallRun run;
  const json::object plan = Plan(run.WriteConfig(dir), {"--events-per-day", "25600"});
  const json::array& others = plan.at("learners").at(0).at("others").as_array();
  ASSERT_EQ(others.size(), 3u);
  EXPECT_EQ(others[0].at("mode"), "poisson");
  EXPECT_EQ(others[0].at("steps"), 100);
  EXPECT_EQ(Number(others[0].at("sampling_rate")), 0.01);
  const double noise = Number(others[0].at("noise_multiplier"));
  const double epsilon = PldEpsilon(noise, 0.01, 100, "1e-6");
  EXPECT_LE(epsilon, 8);
  EXPECT_GT(epsilon, 8 * 0.99);
  // In exactly one of as many steps an event is better hidden, so that less noise does.
  EXPECT_EQ(others[1].at("mode"), "allocate");
  EXPECT_EQ(others[1].at("steps"), 100);
  EXPECT_EQ(others[1].at("block_steps"), 100);
  EXPECT_LT(Number(others[1].at("noise_multiplier")), noise);
  EXPECT_GT(Number(others[1].at("noise_multiplier")), 0.5 * noise);
  EXPECT_EQ(others[2].at("mode"), "correlated");
  EXPECT_TRUE(others[2].at("noise_multiplier").is_null());
  EXPECT_EQ(others[2].at("note"), "refused: no accountant");
  // Without a day's length there is no number, and that is said.
  const json::object unknown = Plan(run.WriteConfig(dir));
  const json::value& learner = unknown.at("learners").at(0);
  EXPECT_TRUE(unknown.at("events_per_day").is_null());
  EXPECT_TRUE(learner.at("steps_per_day").is_null());
  EXPECT_TRUE(learner.at("others").at(0).at("noise_multiplier").is_null());
  EXPECT_THAT(std::string(learner.at("others").at(0).at("note").as_string()),
              HasSubstr("not known"));
}

// The figures of a plan are what the daemon then spends.
TEST(PrivacyPlanTest, PoissonCostsADayWhatAPeriodCostsAndTheDaemonAgrees) {
  TempDir dir;
  test::WriteSmallLog(dir, 2, 2000, 3);
  SmallRun run;
  run.participation =
      "{mode: poisson, batch: 200, sampling_rate: 0.1, steps_per_period: 30, period: 1000}";
  const std::string config = run.WriteConfig(dir);
  const json::object plan = Plan(config, {"--events-per-day", "2000"});
  const json::object& learner = plan.at("learners").at(0).as_object();
  const double noise = Number(learner.at("step").at("noise_multiplier"));
  const json::object& epsilon = learner.at("epsilon").as_object();
  EXPECT_NEAR(Number(epsilon.at("period")), PldEpsilon(noise, 0.1, 30, "1e-6"), 1e-9);
  EXPECT_EQ(epsilon.at("days_30"), epsilon.at("period"));
  EXPECT_EQ(learner.at("steps_per_day"), 60);
  const json::array& others = learner.at("others").as_array();
  EXPECT_EQ(others[0].at("mode"), "once");
  EXPECT_NEAR(Number(others[0].at("noise_multiplier")),
              privacy::CalibrateGaussian(Epsilon(8), Delta(1e-6), 1).value, 1e-6);
  ASSERT_EQ(test::Run({TACITD, "--config", config, "--until-end"}).exit_code, 0);
  const json::object ledger =
      Json(test::Run({TACIT, "ledger", "show", "--store", dir / "store", "--json"}));
  EXPECT_NEAR(Number(ledger.at("total").at("epsilon")), Number(epsilon.at("all_passes")), 2e-3);
}

// A delta that is warned of would have the accountant search for minutes: one point of the curve
// is stated.
TEST(PrivacyPlanTest, AWeakDeltaIsAnsweredFromItsPoint) {
  TempDir dir;
  SmallRun run;
  run.privacy = "{unit: event, epsilon: 3, delta: 0.5}";
  run.participation =
      "{mode: poisson, batch: 200, sampling_rate: 0.1, steps_per_period: 30, period: 1000}";
  const json::object plan = Plan(run.WriteConfig(dir), {"--events-per-day", "2000"});
  const json::object& learner = plan.at("learners").at(0).as_object();
  const double epsilon = Number(learner.at("epsilon").at("allowed"));
  EXPECT_NEAR(Number(learner.at("at_most").at("accuracy")),
              0.5 + (std::tanh(epsilon / 2) + 1 / (1 + std::exp(epsilon))) / 2, 1e-9);
  EXPECT_NEAR(Number(learner.at("at_most").at("found_at_1_false_in_100")),
              1 - std::max(0.5 - std::exp(epsilon) * 0.01, std::exp(-epsilon) * 0.49), 1e-9);
  const json::array& others = learner.at("others").as_array();
  EXPECT_TRUE(others[0].at("noise_multiplier").is_number());  // once: in closed form
  EXPECT_TRUE(others[1].at("noise_multiplier").is_null());
  EXPECT_THAT(std::string(others[1].at("note").as_string()),
              HasSubstr("a delta of 0.5 is warned of"));
  EXPECT_THAT(json::serialize(plan.at("warnings")), HasSubstr("privacy.delta: with 0.5"));
}

TEST(PrivacyPlanTest, ATotalBudgetThatComesFirstIsWarnedOf) {
  TempDir dir;
  SmallRun run;
  run.second_learner =
      "  - id: small\n"
      "    model: {kind: pctr, hidden: [8]}\n"
      "    mechanism: {kind: adafest, threshold: 2.0}\n"
      "    participation: {mode: once, batch: 1000}\n"
      "    privacy: {unit: event, epsilon: 2, delta: 1.0e-6}\n";
  run.more = "budget: {epsilon: 8.1, delta: 1.0e-6}\n";
  const std::string config = run.WriteConfig(dir);
  const json::object plan = Plan(config);
  const double mu_ctr = privacy::GaussianMu(Epsilon(8), Delta(1e-6));
  const double mu_small = privacy::GaussianMu(Epsilon(2), Delta(1e-6));
  const double both = privacy::GaussianEpsilon(std::hypot(mu_ctr, mu_small), Delta(1e-6)).value;
  EXPECT_EQ(Number(plan.at("total").at("epsilon").at("allowed")), 8.1) << "no step crosses it";
  EXPECT_EQ(Number(plan.at("total").at("budget").at("epsilon")), 8.1);
  ASSERT_EQ(plan.at("warnings").as_array().size(), 1u);
  EXPECT_THAT(std::string(plan.at("warnings").at(0).as_string()),
              HasSubstr(fmt::format("come to {:.4g} together", both)));
  const Ended table = test::Run({TACIT, "privacy", "plan", "--config", config});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("WARNING: the total budget of 8.1 is reached before"));
  EXPECT_THAT(table.out, HasSubstr("refused: no accountant"));
  EXPECT_TRUE(Plan(config, {"--set", "budget.epsilon=9"}).at("warnings").as_array().empty());
}

TEST(PrivacyPlanTest, WhatTheDaemonWouldRefuseIsRefused) {
  TempDir dir;
  SmallRun run;
  run.mechanism = "{kind: adafest, threshold: 1.0, noise_multiplier: 0.1}";
  const Ended ended =
      test::Run({TACIT, "privacy", "plan", "--config", run.WriteConfig(dir), "--json"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("at least"));
}

TEST(PrivacyPlanTest, OneRefusedLearnerDoesNotHideTheOthers) {
  TempDir dir;
  SmallRun run;
  run.second_learner =
      "  - id: small\n"
      "    model: {kind: pctr, hidden: [8]}\n"
      "    mechanism: {kind: fest, vocabulary: {source: file, file: /nowhere/v}}\n"
      "    participation: {mode: once, batch: 1000}\n"
      "    privacy: {unit: event, epsilon: 2, delta: 1.0e-6}\n";
  const Ended ended = test::Run({TACIT, "privacy", "plan", "--config", run.WriteConfig(dir)});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, HasSubstr("learner ctr: epsilon 8"));
  EXPECT_THAT(ended.out, HasSubstr("learner small: REFUSED: learner 'small': "
                                   "mechanism.vocabulary.file: /nowhere/v"));
}

// A linear model of 39 columns: an event is bounded by 5.22 and adds 0.4 of its column's scale to a
// value's count, which is near 1 (docs/internals/model.md, linear).
TEST(PrivacyPlanTest, NoiseStandsBesideTheRecordsOfAPeriodAndFilesChangeNoCharge) {
  TempDir dir;
  SmallRun run;
  const std::string config = run.WriteConfig(dir);
  const auto plan = [&](int step_files, const std::string& epsilon) {
    return Plan(
        config,
        {"--events-per-day", "180", "--set", "learners.0.model={kind: linear}", "--set",
         "learners.0.mechanism={kind: sums}", "--set",
         fmt::format("learners.0.participation={{mode: once, batch: 20000, step_files: {}}}",
                     step_files),
         "--set", "learners.0.privacy.epsilon=" + epsilon});
  };
  for (const char* epsilon : {"1", "8"}) {
    const json::object short_periods = plan(1, epsilon), long_periods = plan(56, epsilon);
    const json::object& learner = short_periods.at("learners").at(0).as_object();
    const json::object& other = long_periods.at("learners").at(0).as_object();
    for (const char* key : {"step", "promise", "at_most"})
      EXPECT_EQ(learner.at(key), other.at(key));
    EXPECT_EQ(learner.at("epsilon").at("allowed"), other.at("epsilon").at("allowed"));

    const std::string text(learner.at("noise_text").as_string());
    const double noise = Number(learner.at("step").at("noise_multiplier"));
    EXPECT_NEAR(std::stod(text), noise * 5.22 / 0.4, 0.25 * noise * 5.22 / 0.4);
    EXPECT_THAT(text, HasSubstr("times what a record adds to a number; a period has at most 180 "));
    EXPECT_THAT(std::string(other.at("noise_text").as_string()), HasSubstr("at most 10,080 "));
    EXPECT_THAT(json::serialize(short_periods.at("warnings")),
                HasSubstr("participation.step_files: 56 makes periods longer"));
    EXPECT_TRUE(long_periods.at("warnings").as_array().empty());
  }
  test::WriteSmallLog(dir, 1, 300, 1);
  const Ended checked = test::Run({TACITD, "--config", config, "--check-config"});
  EXPECT_THAT(checked.out, HasSubstr("a step has at most 256 records")) << checked.err;
}

TEST(PrivacyPlanTest, ABatchAndADeltaThatDoNotFitTheEventsAreWarnedOf) {
  TempDir dir;
  SmallRun run;
  run.participation =
      "{mode: poisson, batch: 200, sampling_rate: 0.1, steps_per_period: 3, period_files: 1}";
  const std::string config = run.WriteConfig(dir);
  const auto warnings = [&](const std::string& events, const std::string& delta) {
    std::vector<std::string> more{"--set", "learners.0.privacy.delta=" + delta};
    if (!events.empty()) more.insert(more.end(), {"--events-per-day", events});
    std::string all;
    const json::object plan = Plan(config, more);
    for (const json::value& warning : plan.at("warnings").as_array())
      all += std::string(warning.as_string()) + "\n";
    return all;
  };
  EXPECT_EQ(warnings("2000", "1e-6"), "");
  EXPECT_EQ(warnings("", "1e-6"), "");
  EXPECT_THAT(warnings("2500", "1e-6"), HasSubstr("participation.batch is 200"));
  EXPECT_THAT(warnings("2000", "5e-4"), HasSubstr("not below 1 / 2,000"));
  EXPECT_THAT(warnings("", "1e-4"), HasSubstr("privacy.delta 0.0001 is large"));
  EXPECT_THAT(warnings("", "1e-3"), HasSubstr("where one unit in 1000 is revealed whole"));
}

}  // namespace
}  // namespace tacit
