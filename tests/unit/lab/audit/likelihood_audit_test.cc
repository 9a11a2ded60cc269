// The audit of configured learners: what is right stays under its charge and proves most of it;
// noise that is not what it says is accused.
#include "lab/audit/likelihood_audit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "lab/audit/audit_report.h"
#include "lab/audit/audit_run.h"
#include "noise/stream_noise.h"
#include "support/silent_noise.h"
#include "support/small_run.h"

namespace tacit::lab {
namespace {

using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

// A small click model: three numbers, two categories.
std::string ConfigOf(const std::string& learner) {
  return R"(source: {kind: log, format: json, files: ["none-*.jsonl"]}
schema:
  features:
    - {name: I1, kind: dense}
    - {name: I2, kind: dense}
    - {name: C1, kind: categorical, buckets: 40, dim: 3}
    - {name: C2, kind: categorical, buckets: 30, dim: 2}
learners:
)" + learner +
         R"(
store: {path: s, witness: w}
memory: {total_bytes: 2GiB}
)";
}
std::string Learner(const std::string& id, const std::string& mechanism,
                    const std::string& participation, const std::string& unit = "event",
                    const std::string& model = "{kind: pctr, hidden: [4]}") {
  return fmt::format(
      "  - id: {}\n    model: {}\n    mechanism: {}\n    participation: {}\n"
      "    privacy: {{unit: {}, epsilon: {}, delta: 1.0e-5}}\n    optimizer: {{kind: adam}}\n",
      id, model, mechanism, participation, unit, mechanism == "{kind: none}" ? ".inf" : "8");
}
constexpr double kFalseAlarm = 1e-8;
constexpr const char* kOnce = "{mode: once, batch: 64}";

config::Config Load(const std::string& learners) {
  const TempDir dir;
  const std::string path = dir / "audit.yaml";
  std::ofstream(path) << ConfigOf(learners);
  auto config = config::Load(path, {}, config::LogFiles::kUnread);
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return *std::move(config);
}

// Noise that is less than it says, or the same again and again.
class FaultyNoise final : public noise::SilentNoise {
 public:
  enum Fault { kLess, kTenthLess, kAgain };
  explicit FaultyNoise(Fault fault) : fault_(fault) {}
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    if (fault_ == kLess) return source_.AddGridGaussian(0.7 * stddev, values);
    if (fault_ == kTenthLess) return source_.AddGridGaussian(0.9 * stddev, values);
    std::vector<int64_t>& same = same_[values.size()];
    if (same.empty()) {
      same.resize(values.size());
      source_.AddGridGaussian(stddev, same);
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] += same[i];
  }

 private:
  const Fault fault_;
  noise::StreamNoise source_;
  std::map<size_t, std::vector<int64_t>> same_;
};

audit::JudgedRuns AuditOf(const std::string& learner, uint64_t runs,
                          LikelihoodAuditOptions options = {}) {
  auto made = LikelihoodAudit::Make(Load(learner), "a", std::move(options));
  EXPECT_TRUE(made.has_value()) << made.error().message;
  audit::RunStatistics statistics;
  const Status run = (*made)->Run(runs, &statistics);
  EXPECT_TRUE(run.has_value());
  EXPECT_GT((*made)->reach(), learner.find("linear") < learner.size() ? 0.95 : 0.9) << learner;
  EXPECT_LT((*made)->reach(), 1.0001) << learner;
  auto judged =
      audit::JudgeRuns(statistics, runs / 10, (*made)->events(), (*made)->delta(), kFalseAlarm);
  EXPECT_TRUE(judged.has_value()) << judged.error().message;
  return *judged;
}

// Right learners: the noise is the product's own and never seeded. All accusations together are
// wrong with a probability below 1e-6.
TEST(LikelihoodAudit, RightLearnersStayUnderTheirChargeAndProveMostOfIt) {
  for (const std::string& learner :
       {Learner("a", "{kind: dp-sgd}", kOnce),
        Learner("a", "{kind: adafest, threshold: 2, sigma_ratio: 2}", kOnce),
        Learner("a", "{kind: adafest, threshold: 2, sigma_ratio: 3}",
                "{mode: once, batch: 64, max_participations: 2}", "user"),
        Learner("a", "{kind: dp-sgd, clipping: per-layer}", kOnce),
        Learner("a", "{kind: sums}", kOnce, "event", "{kind: linear}")}) {
    const audit::JudgedRuns judged = AuditOf(learner, 6000);
    EXPECT_FALSE(judged.exceeds) << learner;
    EXPECT_GT(judged.proved_mu, 0.7 * judged.charged_mu) << learner;
  }
}

TEST(LikelihoodAudit, PeriodsThatDrawTheirStepsStayUnderTheirCharge) {
  for (const char* participation :
       {"{mode: poisson, batch: 16, sampling_rate: 0.25, steps_per_period: 4, period: 64}",
        "{mode: allocate, batch: 16, steps_per_period: 4, period: 64}"}) {
    const audit::JudgedRuns judged = AuditOf(Learner("a", "{kind: dp-sgd}", participation), 8000);
    EXPECT_FALSE(judged.exceeds) << participation;
    EXPECT_GT(judged.proved_epsilon, 0.4 * judged.charged_epsilon) << participation;
  }
}

TEST(LikelihoodAudit, NoiseThatIsNotWhatItSaysIsAccused) {
  for (const auto fault : {FaultyNoise::kLess, FaultyNoise::kAgain}) {
    const LikelihoodAuditOptions faulty{
        .workers = 1, .source = [&](size_t) { return std::make_unique<FaultyNoise>(fault); }};
    EXPECT_TRUE(AuditOf(Learner("a", "{kind: dp-sgd}", kOnce), 6000, faulty).exceeds) << fault;
    EXPECT_TRUE(
        AuditOf(Learner("a", "{kind: sums}", kOnce, "event", "{kind: linear}"), 6000, faulty)
            .exceeds)
        << fault;
    EXPECT_TRUE(AuditOf(Learner("a", "{kind: dp-sgd}",
                                "{mode: poisson, batch: 16, sampling_rate: 0.25, "
                                "steps_per_period: 4, period: 64}"),
                        8000, faulty)
                    .exceeds)
        << fault;
  }
}

// A canary that fills less of the charge than 95 % would hide such noise for good.
TEST(LikelihoodAudit, NoiseOfALinearModelThatIsATenthTooSmallIsAccused) {
  const std::string sums = Learner("a", "{kind: sums}", kOnce, "event", "{kind: linear}");
  constexpr uint64_t kRuns = 24'000;  // both are some seven deviations from where they would fail
  const audit::JudgedRuns right = AuditOf(sums, kRuns);
  EXPECT_FALSE(right.exceeds);
  EXPECT_GT(right.proved_mu, 0.9 * right.charged_mu);
  const LikelihoodAuditOptions faulty{
      .source = [](size_t) { return std::make_unique<FaultyNoise>(FaultyNoise::kTenthLess); }};
  const audit::JudgedRuns wrong = AuditOf(sums, kRuns, faulty);
  EXPECT_TRUE(wrong.exceeds) << wrong.proved_mu << " of " << wrong.charged_mu;
}

// With any columns: of large tables only rows of many records are released.
TEST(LikelihoodAudit, FillsTheChargeOfLinearModels) {
  for (const char* unit : {"event", "user"})
    for (const char* model : {"{kind: linear}", "{kind: linear, crosses: ['I1*C2', 'C3*I2']}"}) {
      const std::string once = fmt::format("{{mode: once, batch: 64{}}}",
                                           unit[0] == 'u' ? ", max_participations: 2" : "");
      const TempDir dir;
      std::string text = ConfigOf(Learner("a", "{kind: sums}", once, unit, model));
      const std::string before = "learners:\n";
      text.insert(text.find(before), "    - {name: C3, kind: categorical, buckets: 4000000}\n");
      std::ofstream(dir / "audit.yaml") << text;
      const auto config = config::Load(dir / "audit.yaml", {}, config::LogFiles::kUnread);
      ASSERT_TRUE(config.has_value()) << config.error().message;
      const auto made = LikelihoodAudit::Make(*config, "a");
      ASSERT_TRUE(made.has_value()) << made.error().message;
      EXPECT_GT((*made)->reach(), 0.95) << unit << " " << model;
      EXPECT_LT((*made)->reach(), 1.0001) << unit << " " << model;
    }
}

TEST(LikelihoodAudit, LearnersThatCannotBeAuditedAreRefusedByName) {
  const auto refusal = [](const std::string& learner) {
    auto made = LikelihoodAudit::Make(Load(learner), "a");
    EXPECT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, ErrorCode::kRefused);
    EXPECT_THAT(made.error().message, HasSubstr("learner 'a'"));
    return made.error().message;
  };
  EXPECT_THAT(refusal(Learner("a", "{kind: none}", kOnce)), HasSubstr("promises nothing"));
  EXPECT_THAT(refusal(Learner(
                  "a", "{kind: exponential, rows: 5, row_epsilon: 0.001, row_clip: 0.5}", kOnce)),
              HasSubstr("exponential noise"));
  auto missing = LikelihoodAudit::Make(Load(Learner("a", "{kind: dp-sgd}", kOnce)), "b");
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(AuditRun, GoesOnWhereItWasStopped) {
  const TempDir dir;
  const config::Config config =
      Load(Learner("a", "{kind: dp-sgd}", kOnce) + Learner("none", "{kind: none}", kOnce));
  AuditRunOptions options{.learners = {}, .runs = 2000};
  options.state = dir / "audit.jsonl";
  options.key = "this";
  int asked = 0;
  options.stop = [&] { return ++asked > 5; };
  const auto stopped = RunAudits(config, options);
  ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
  EXPECT_TRUE(stopped->stopped);
  EXPECT_TRUE(stopped->audited.empty());
  const auto kept = std::filesystem::file_size(options.state);
  // A line that was cut short is made again.
  std::filesystem::resize_file(options.state, kept - 10);
  options.stop = {};
  const auto report = RunAudits(config, options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_EQ(report->audited.size(), 1u);
  EXPECT_GT(std::filesystem::file_size(options.state), 20 * kept);
  EXPECT_FALSE(report->stopped);
  ASSERT_EQ(report->refused.size(), 1u);
  EXPECT_THAT(report->refused[0].reason, HasSubstr("learner 'none'"));
  EXPECT_THAT(ToText(*report), HasSubstr("with a confidence of 95 %"));
  // All is there now: nothing is run again, and the same is found.
  const auto again = RunAudits(config, options);
  EXPECT_EQ(again->audited[0].judged.proved_mu, report->audited[0].judged.proved_mu);
  options.key = "another";
  const auto refused = RunAudits(config, options);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("audit.jsonl:1"));
}

// The errors of all bounds add up to what is said: each of two has half of it.
TEST(AuditRun, SharesItsConfidence) {
  const config::Config both =
      Load(Learner("a", "{kind: dp-sgd}", kOnce) + Learner("b", "{kind: dp-sgd}", kOnce));
  const TempDir dir;
  AuditRunOptions options{.learners = {"a"}, .runs = 1000, .alpha = 0.05};
  options.state = dir / "audit.jsonl";
  const double alone = RunAudits(both, options)->audited[0].judged.proved_mu;
  options.learners = {"a", "b"};
  const double beside = RunAudits(both, options)->audited[0].judged.proved_mu;
  EXPECT_LT(beside, alone);
  options.learners = {"a"};
  options.alpha = 0.025;
  EXPECT_EQ(RunAudits(both, options)->audited[0].judged.proved_mu, beside);
}

}  // namespace
}  // namespace tacit::lab
