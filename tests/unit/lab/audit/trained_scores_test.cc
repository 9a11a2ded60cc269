// Audits by the losses of trained models: a model without privacy is seen through, one that keeps
// its promise is not accused, and planted faults are.
#include "lab/audit/trained_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "lab/audit/audit_report.h"
#include "support/process.h"
#include "support/small_run.h"
#include "unit/lab/audit/kept_scores.h"

namespace tacit::lab {
namespace {

using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::infinity();

class TrainedScores : public testing::Test {
 protected:
  TrainedScores() {
    test::WriteSmallLog(dir_, 1, 2400, 5);
    SmallRun run;
    run.mechanism = "{kind: dp-sgd}";
    run.participation = "{mode: once, batch: 64, max_participations: 30}";
    run.passes = 30;
    path_ = run.WriteConfig(dir_);
  }
  TrainedAuditOptions Options(TrainedAudit kind, std::vector<double> epsilons) {
    TrainedAuditOptions options;
    options.kind = kind;
    options.epsilons = std::move(epsilons);
    options.canaries = 800;
    options.key = "this";
    options.state = dir_ / "scores.jsonl";
    options.load = [this](const std::vector<std::string>& overrides) {
      std::vector<std::string> all = overrides;
      all.push_back("learners.0.optimizer={kind: adam, learning_rate: 0.01}");
      return config::Load(path_, all);
    };
    return options;
  }
  AuditReport Run(const TrainedAuditOptions& options) {
    auto report = RunTrainedAudits(options);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return report ? *std::move(report) : AuditReport();
  }
  static std::string IdOf(const AuditReport& report) { return report.audited.at(0).id; }

  const TempDir dir_;
  std::string path_;
};

TEST_F(TrainedScores, PrivacyHidesWhoWasLearntFrom) {
  const AuditReport report = Run(Options(TrainedAudit::kMembership, {kNone, 8, 1}));
  ASSERT_EQ(report.audited.size(), 3u);
  const auto& none = report.audited[0].judged;
  EXPECT_GT(none.area, 0.6);
  EXPECT_EQ(none.allowed_accuracy, 1);
  EXPECT_GT(none.proved_epsilon, 0.5);
  for (const size_t i : {1, 2}) {
    const auto& judged = report.audited[i].judged;
    EXPECT_LT(judged.area, none.area - 0.05);
    EXPECT_FALSE(judged.exceeds);
    EXPECT_LE(judged.proved_epsilon, judged.charged_epsilon);
    EXPECT_LT(judged.allowed_area, 1);
    const auto& losses = *report.audited[i].losses;
    // The interval reaches .066 below the area, of which chance moves a half by .0144.
    EXPECT_LT(losses.area.lower, 0.53);
    EXPECT_GT(losses.area.upper, judged.area);
    // A third each, by the hash.
    EXPECT_NEAR(static_cast<double>(losses.members), 800, 120);
    EXPECT_NEAR(static_cast<double>(losses.others), 800, 120);
  }
  EXPECT_GT(report.audited[1].judged.allowed_area, report.audited[2].judged.allowed_area);
  EXPECT_FALSE(report.exceeds());
  EXPECT_THAT(ToText(report), HasSubstr("membership"));
}

// Planted: a learner that was charged for epsilon 1, and added no noise.
TEST_F(TrainedScores, NoiseThatIsMissingIsAccused) {
  for (const auto kind : {TrainedAudit::kMembership, TrainedAudit::kOneRun}) {
    std::ofstream(dir_ / "scores.jsonl");
    const std::string id = IdOf(Run(Options(kind, {kNone})));
    test_scores::Pretend(dir_ / "scores.jsonl", id, id.substr(0, id.find(" at")) + " at 0.5");
    const AuditReport report = Run(Options(kind, {0.5}));
    EXPECT_TRUE(report.exceeds()) << ToText(report);
    EXPECT_THAT(ToText(report), HasSubstr("EXCEEDS ITS CHARGE"));
  }
}

// Planted: a learner that was charged for epsilon .2 and had the noise of epsilon 20,000.
TEST_F(TrainedScores, MuchTooLittleNoiseIsAccused) {
  const std::string id = IdOf(Run(Options(TrainedAudit::kOneRun, {20000})));
  test_scores::Pretend(dir_ / "scores.jsonl", id, id.substr(0, id.find(" at")) + " at 0.2");
  EXPECT_TRUE(Run(Options(TrainedAudit::kOneRun, {0.2})).exceeds());
}

TEST_F(TrainedScores, CanariesGoInByFairCoinsAndNothingIsTrainedTwice) {
  const TrainedAuditOptions options = Options(TrainedAudit::kOneRun, {8});
  const AuditReport report = Run(options);
  ASSERT_EQ(report.audited.size(), 1u);
  const auto& losses = *report.audited[0].losses;
  EXPECT_EQ(losses.members + losses.others, 800u);
  EXPECT_NEAR(static_cast<double>(losses.members), 400, 6 * std::sqrt(200));
  EXPECT_EQ(losses.guesses.guesses, 80u);
  EXPECT_FALSE(report.exceeds());
  TrainedAuditOptions again = options;
  int asked = 0;
  again.stop = [&] { return ++asked > 0; };
  EXPECT_EQ(Run(again).audited.at(0).judged.area, report.audited[0].judged.area);
  EXPECT_EQ(asked, 0);
  again.key = "another";
  EXPECT_EQ(RunTrainedAudits(again).error().code, ErrorCode::kRefused);
  again = options;
  again.state = "";
  again.stop = [] { return true; };
  EXPECT_TRUE(Run(again).stopped);
}

}  // namespace
}  // namespace tacit::lab
