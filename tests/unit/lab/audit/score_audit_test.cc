#include "lab/audit/score_audit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "support/process.h"

namespace tacit::lab {
namespace {

using ::testing::HasSubstr;

privacy::LedgerTotal Charged(double epsilon) {
  return {.learner = "a", .epsilon = epsilon, .delta = 1e-5, .steps = 1};
}

// Coins, and scores of records that cost `mu`.
std::vector<audit::Score> Coins(double mu, uint64_t n) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  std::vector<audit::Score> scores;
  for (uint64_t i = 0; i < n; ++i) {
    const bool in = random() & 1;
    scores.push_back({i, normal(random) + (in ? mu : 0), in});
  }
  return scores;
}

TEST(ScoreAudit, AccusesALeakAndNoOther) {
  // mu 1 is epsilon 4.38 at delta 1e-5.
  const auto right = AuditScores(Coins(1, 1000), 200, Charged(4.4), 0.05);
  EXPECT_FALSE(right->exceeds());
  EXPECT_GT(right->one_run->epsilon_curve, 0.5);
  EXPECT_GT(right->split.mu, 0.3);
  const auto leak = AuditScores(Coins(5, 1000), 0, Charged(4.4), 0.05);
  EXPECT_TRUE(leak->exceeds());
  EXPECT_GT(*leak->one_run->xiang_mu, 2);
  EXPECT_THAT(ToText(*leak), HasSubstr("EXCEEDS ITS CHARGE"));
  EXPECT_FALSE(AuditScores(Coins(0, 1000), 0, Charged(0.1), 0.05)->exceeds());
}

// Planted: members that were chosen by no coin prove nothing in one run.
TEST(ScoreAudit, WithoutCoinsNothingIsProvedInOneRun) {
  std::vector<audit::Score> scores = Coins(5, 1000);
  std::erase_if(scores,
                [](const audit::Score& score) { return score.member && score.id % 3 != 0; });
  const auto found = AuditScores(scores, 0, Charged(1), 0.05);
  EXPECT_FALSE(found->one_run.has_value());
  EXPECT_FALSE(found->exceeds());
}

TEST(ScoreAudit, ReadsScoresLessTheirReferenceAndNamesWhatIsWrong) {
  const test::TempDir dir;
  const auto read = [&](const std::string& text) {
    std::ofstream(dir / "s.jsonl") << text;
    return ReadScores(dir / "s.jsonl");
  };
  const std::string one = R"({"id":1,"member":true,"score":2,"reference":0.5})";
  const auto scores = read(one + "\n" + R"({"id":2,"member":false,"score":1,"reference":3})");
  ASSERT_TRUE(scores.has_value()) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 1.5);
  EXPECT_EQ((*scores)[1].value, -2);
  EXPECT_THAT(read(one + "\nnope").error().message, HasSubstr("s.jsonl:2"));
  EXPECT_THAT(read(one + "\n" + one).error().message, HasSubstr("record 1"));
  EXPECT_THAT(read(one + "\n" + R"({"id":2,"member":false,"score":1})").error().message,
              HasSubstr("on some lines"));
  EXPECT_THAT(AuditScores(*read(one), 0, Charged(1), 0.05).error().message,
              HasSubstr("1 members and 0 others"));
}

}  // namespace
}  // namespace tacit::lab
