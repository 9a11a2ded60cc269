#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>

#include "app/evaluate/sequence_report.h"
#include "support/process.h"

namespace tacit::app {
namespace {

using testing::HasSubstr;
using testing::Not;

SequenceRun MakeRun(const std::string& learner, double epsilon, uint64_t seed, double ndcg10) {
  return {.id = learner + std::to_string(epsilon) + std::to_string(seed),
          .learner = learner,
          .epsilon = epsilon,
          .delta = 1e-5,
          .seed = seed,
          .ndcg10 = ndcg10,
          .hit10 = 2 * ndcg10,
          .users = 100,
          .epsilon_spent = epsilon,
          .fit_seconds = 3,
          .score_seconds = 0.01};
}

std::vector<SequenceRow> SomeRows() {
  return {MakeSequenceRow({MakeRun("a", 1, 0, 0.10), MakeRun("a", 1, 1, 0.14)}),
          MakeSequenceRow({MakeRun("a", INFINITY, 0, 0.25)}),
          MakeSequenceRow({MakeRun("b", 1, 0, 0.05)})};
}

TEST(SequenceReport, ACellIsAMeanAndADeviation) {
  const std::string table = SequenceMarkdownTable(SomeRows());
  EXPECT_THAT(table,
              HasSubstr("| NDCG@10 / HIT@10, % | epsilon 1 | no privacy |\n|---|---:|---:|\n"));
  EXPECT_THAT(table, HasSubstr("| a | 12.00 ± 2.83 / 24.00 ± 5.66 | 25.00 / 50.00 |\n"));
  EXPECT_THAT(table, HasSubstr("| b | 5.00 / 10.00 |  |\n"));
  EXPECT_THAT(table, HasSubstr("100 users asked about"));
  EXPECT_THAT(SequenceTextTable(SomeRows()), HasSubstr("12.00 ± 2.83 / 24.00 ± 5.66"));
}

TEST(SequenceReport, JsonHasNullWhereNothingIsPromised) {
  const auto rows = SequenceJson(SomeRows()).at("rows").as_array();
  EXPECT_EQ(rows[0].at("model"), "a");
  EXPECT_EQ(rows[0].at("seeds"), 2);
  EXPECT_DOUBLE_EQ(rows[0].at("ndcg10").at("mean").as_double(), 0.12);
  EXPECT_DOUBLE_EQ(rows[0].at("microseconds_a_user").as_double(), 100);
  EXPECT_TRUE(rows[1].at("epsilon").is_null());
  EXPECT_TRUE(rows[1].at("ndcg10").at("std").is_null());
}

TEST(SequenceReport, TheFigureHasALineForEachLearner) {
  const std::string svg = DrawSequenceFigure(SomeRows());
  EXPECT_THAT(svg, HasSubstr("<svg xmlns"));
  EXPECT_THAT(svg, HasSubstr(">none</text>"));
  EXPECT_THAT(svg, HasSubstr(">b</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SequenceResults, AreThereAfterARestart) {
  test::TempDir dir;
  const SequenceRun a = MakeRun("a", 1, 0, 0.1), b = MakeRun("b", INFINITY, 1, 0.2);
  {
    SequenceResults results(dir / "runs.jsonl");
    ASSERT_TRUE(results.Load());
    EXPECT_FALSE(results.Find(a.id));
    ASSERT_TRUE(results.Add(a));
    ASSERT_TRUE(results.Add(b));
  }
  std::ofstream(dir / "runs.jsonl", std::ios::app) << "{\"id\": \"cut sh";
  SequenceResults results(dir / "runs.jsonl");
  ASSERT_TRUE(results.Load());
  EXPECT_EQ(results.Find(a.id), a);
  EXPECT_EQ(results.Find(b.id), b);
  EXPECT_THAT(test::ReadFile(dir / "runs.jsonl"), Not(HasSubstr("cut sh")));
}

TEST(SequenceResults, AnothersFileIsRefusedAndKept) {
  test::TempDir dir;
  std::ofstream(dir / "notes") << "one line that matters";
  const Status loaded = SequenceResults(dir / "notes").Load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("notes:1: not a finished run"));
  EXPECT_EQ(test::ReadFile(dir / "notes"), "one line that matters");
}

TEST(SequenceResults, ALineThatIsNoRunIsRefusedByItsNumber) {
  test::TempDir dir;
  std::ofstream(dir / "runs.jsonl") << ToJsonLine(MakeRun("a", 1, 0, 0.1)) << "\n{\"id\": 7}\n";
  const Status loaded = SequenceResults(dir / "runs.jsonl").Load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("runs.jsonl:2: not a finished run"));
}

}  // namespace
}  // namespace tacit::app
