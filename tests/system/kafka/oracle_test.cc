// The oracle itself: it counts right, and a record applied twice or lost does not escape it. On the
// log source, so that it is tested where there is no broker.
#include "system/kafka/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "privacy/gaussian.h"
#include "store/store.h"
#include "system/kafka/oracle_run.h"

namespace tacit {
namespace {

using test::Oracle;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Learns a log of these lines to its end; returns the configuration.
std::string Learn(const TempDir& dir, const std::vector<std::string>& lines,
                  const std::string& more = "") {
  std::string log;
  for (const std::string& line : lines) log += line + "\n";
  test::WriteFile(dir / "log.tsv", log);
  const std::string config = test::WriteOracleConfig(
      dir, "store",
      fmt::format("source: {{kind: log, files: [\"{}\"]{}}}\n", dir / "log.tsv", more), true);
  // Each pass is a participation, and has to be declared.
  if (!more.empty()) {
    std::string yaml = test::ReadFile(config);
    for (size_t at = 0; (at = yaml.find("mode: once", at)) != std::string::npos; at += 40)
      yaml.insert(at, "max_participations: 2, ");
    test::WriteFile(config, yaml);
  }
  const test::Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return config;
}

std::vector<int> Applied(const Oracle& oracle, const std::string& config, size_t learner = 0) {
  const auto applied = oracle.Applied(config, learner);
  EXPECT_TRUE(applied) << applied.error().message;
  return applied ? *applied : std::vector<int>();
}

double EpsilonOfPrivate(const TempDir& dir) {
  const auto opened = store::OpenReadOnly(dir / "store", dir / "store.witness", {});
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? opened->snapshot->learners().back().epsilon : NAN;
}

TEST(OracleTest, CountsWhatAnUndisturbedRunHasLearnt) {
  Oracle oracle(1);
  TempDir dir;
  std::vector<std::string> lines;
  std::vector<int> once, twice;
  for (int i = 0; i < 3000; ++i) {
    const bool bad = i % 100 == 50;
    lines.push_back(oracle.Line(oracle.Invent(bad)));
    once.push_back(bad ? 0 : 1);
    twice.push_back(bad ? 0 : 2);
  }
  const size_t never = oracle.Invent();
  once.push_back(0);
  twice.push_back(0);
  const std::string config = Learn(dir, lines);
  EXPECT_THAT(oracle.Differences(Applied(oracle, config), once), IsEmpty());
  EXPECT_THAT(oracle.Differences(Applied(oracle, config, 1), twice), IsEmpty());
  EXPECT_EQ(Applied(oracle, config)[never], 0);
  EXPECT_EQ(test::ReadDeadLetters(dir / "store.dead-letters.jsonl").size(), 30u);
  EXPECT_NEAR(EpsilonOfPrivate(dir), Oracle::kEpsilon, 0.01);
}

TEST(OracleTest, SeesARecordThatWasAppliedTwiceAndOneThatWasLost) {
  Oracle oracle(2);
  TempDir dir;
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back(oracle.Line(oracle.Invent()));
  lines.insert(lines.begin() + 18, oracle.Line(17));  // in the same step, or the next
  lines.push_back(oracle.Line(40));                   // in a much later one
  lines.push_back(oracle.Line(40));
  lines.erase(lines.begin() + 61);  // event 60
  const std::string config = Learn(dir, lines);
  EXPECT_THAT(
      oracle.Differences(Applied(oracle, config), std::vector<int>(500, 1)),
      ElementsAre(HasSubstr("event 17 (2-"), HasSubstr("event 40 (2-"), HasSubstr("event 60 (2-")));
  const std::vector<int> applied = Applied(oracle, config);
  EXPECT_EQ(applied[17], 2);
  EXPECT_EQ(applied[40], 3);
  EXPECT_EQ(applied[60], 0);
}

// A source that went back to where it has been would apply events twice, as two passes do.
TEST(OracleTest, SeesALogThatWasReadTwice) {
  Oracle oracle(3);
  TempDir dir;
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back(oracle.Line(oracle.Invent()));
  const std::string config = Learn(dir, lines, ", passes: 2");
  EXPECT_THAT(oracle.Differences(Applied(oracle, config), std::vector<int>(500, 2)), IsEmpty());
  EXPECT_EQ(oracle.Differences(Applied(oracle, config), std::vector<int>(500, 1)).size(), 21u);
}

TEST(OracleTest, FindsTheEventInAnyRecord) {
  Oracle oracle(4);
  const size_t first = oracle.Invent(), second = oracle.Invent(true);
  EXPECT_NE(oracle.Value(first), oracle.Value(second));
  EXPECT_EQ(oracle.EventIn(oracle.Line(first)), first);
  EXPECT_EQ(oracle.EventIn("{\"features\": {\"E\": \"" + oracle.Value(second) + "\"}}"), second);
  EXPECT_EQ(oracle.EventIn(Oracle::Filler()), std::nullopt);
  Oracle other(5);
  EXPECT_EQ(oracle.EventIn(other.Line(other.Invent())), std::nullopt);
}

}  // namespace
}  // namespace tacit
