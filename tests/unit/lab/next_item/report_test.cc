#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>

#include "lab/line_figure.h"
#include "lab/next_item/sequence_report.h"
#include "support/process.h"

namespace tacit::lab {
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

SequenceRun MakeStreamRun(uint32_t user_periods, double epsilon, uint64_t seed, double ndcg10) {
  SequenceRun run = MakeRun("a", epsilon, seed, ndcg10);
  run.user_periods = user_periods;
  // The first tenth was not asked about.
  run.tenths.push_back({});
  for (int t = 1; t < 10; ++t)
    run.tenths.push_back({.events = 11, .ndcg10 = ndcg10 + 0.01 * t, .hit10 = 0.5});
  run.cold = {{.events = 7, .ndcg10 = ndcg10 / 2, .hit10 = ndcg10}};
  return run;
}

std::vector<SequenceRow> SomeStreamRows() {
  return {MakeSequenceRow({MakeStreamRun(1, 2, 0, 0.10), MakeStreamRun(1, 2, 1, 0.14)}),
          MakeSequenceRow({MakeStreamRun(1, INFINITY, 0, 0.25)}),
          MakeSequenceRow({MakeStreamRun(4, 2, 0, 0.05)})};
}

TEST(StreamReport, SaysOfHowManyPeriodsAUserIsLearntFrom) {
  const std::string table = SequenceMarkdownTable(SomeStreamRows(), 5000);
  EXPECT_THAT(table, HasSubstr("| NDCG@10 / HIT@10, % | epsilon 2 | no privacy |\n"));
  EXPECT_THAT(table, HasSubstr("| a, 1 period a user | 12.00 ± 2.83 / 24.00 ± 5.66 | 25.00 / "));
  EXPECT_THAT(table, HasSubstr("| a, 4 periods a user | 5.00 / 10.00 |  |\n"));
  EXPECT_THAT(table, HasSubstr("| a, 1 period a user | epsilon 2 | - | 13.00 | 14.00 |"));
  EXPECT_THAT(table, HasSubstr("100 events asked about, each before its period of 5,000 records"));
  EXPECT_THAT(SequenceTextTable(SomeStreamRows(), 5000),
              HasSubstr("unit user over the whole stream"));
}

TEST(StreamReport, JsonHasTheTenths) {
  const auto rows = SequenceJson(SomeStreamRows()).at("rows").as_array();
  EXPECT_EQ(rows[2].at("user_periods"), 4);
  EXPECT_EQ(rows[0].at("events"), 100);
  EXPECT_FALSE(rows[0].as_object().contains("users"));
  const auto& tenths = rows[0].at("tenths").as_array();
  ASSERT_EQ(tenths.size(), 10u);
  EXPECT_EQ(tenths[0].at("events"), 0);
  EXPECT_DOUBLE_EQ(tenths[9].at("ndcg10").at("mean").as_double(), 0.21);
}

TEST(StreamReport, ColdItemsAreToldBesideAll) {
  const std::string table = SequenceMarkdownTable(SomeStreamRows(), 5000);
  EXPECT_THAT(table, HasSubstr("| cold items, NDCG@10 / HIT@10 |\n"));
  EXPECT_THAT(table, HasSubstr("| 6.00 ± 1.41 / 12.00 ± 2.83 |\n"));
  EXPECT_THAT(table, HasSubstr("and 7 of the events are of them"));
  const auto rows = SequenceJson(SomeStreamRows()).at("rows").as_array();
  EXPECT_EQ(rows[0].at("cold").at("events"), 7);
  EXPECT_DOUBLE_EQ(rows[1].at("cold").at("ndcg10").at("mean").as_double(), 0.125);
  // A run that an earlier program kept does not say, nor does a row with it.
  SequenceRun earlier = MakeStreamRun(1, 2, 0, 0.10);
  earlier.cold.clear();
  const std::vector<SequenceRow> some = {MakeSequenceRow({earlier, MakeStreamRun(1, 2, 1, 0.14)})};
  EXPECT_FALSE(SequenceJson(some).at("rows").at(0).as_object().contains("cold"));
  EXPECT_THAT(SequenceMarkdownTable(some, 5000), HasSubstr("| - |\n"));
}

TEST(StreamReport, TheFigureHasALineForEachRow) {
  const std::string svg = DrawSequenceFigure(SomeStreamRows());
  EXPECT_THAT(svg, HasSubstr("<svg xmlns"));
  EXPECT_THAT(svg, HasSubstr("a, 4 periods a user, epsilon 2</text>"));
  EXPECT_THAT(svg, HasSubstr("a, 1 period a user, no privacy</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SequenceResults, OfAStreamAreReadAsTheyWereWritten) {
  for (const double epsilon : {2.0, double{INFINITY}}) {
    const SequenceRun run = MakeStreamRun(3, epsilon, 1, 0.25);
    const auto again = FromJsonLine<SequenceRun>(ToJsonLine(run));
    ASSERT_TRUE(again) << again.error().message;
    for (size_t t = 0; t < run.tenths.size(); ++t)
      EXPECT_NEAR(again->tenths[t].ndcg10, run.tenths[t].ndcg10, 1e-15);
    EXPECT_EQ(again->user_periods, 3u);
    EXPECT_EQ(ToJsonLine(*again), ToJsonLine(*FromJsonLine<SequenceRun>(ToJsonLine(*again))));
  }
}

// Two learners, one of them looked at.
std::vector<SequenceRow> SomeCurves() {
  SequenceRun one = MakeRun("b", 8, 0, 0.04), other = MakeRun("b", 8, 1, 0.06);
  one.curve = {{5, 0.02, 0.06}, {10, 0.04, 0.08}};
  other.curve = {{5, 0.04, 0.10}, {10, 0.06, 0.12}};
  return {MakeSequenceRow({MakeRun("a", 1, 0, 0.10)}), MakeSequenceRow({one, other})};
}

TEST(SequenceReport, CurvesAreMeansOverSeeds) {
  const auto rows = SequenceJson(SomeCurves()).at("rows").as_array();
  EXPECT_FALSE(rows[0].as_object().contains("curve"));
  const auto& curve = rows[1].at("curve").as_array();
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[1].at("epochs").to_number<double>(), 10);
  EXPECT_DOUBLE_EQ(curve[1].at("ndcg10").at("mean").as_double(), 0.05);
  EXPECT_DOUBLE_EQ(curve[0].at("hit10").at("mean").as_double(), 0.08);
}

// Half way along and at the end, 3 % and 5 % of the 10 % at the top.
TEST(SequenceReport, CurvesAreDrawnWhereTheyAre) {
  const std::string svg = DrawLearningCurves(SomeCurves());
  EXPECT_THAT(svg, HasSubstr("<polyline points=\"344.0,252.0 624.0,188.0 \""));
  EXPECT_THAT(svg, HasSubstr("NDCG@10, b, epsilon 8</text>"));
  EXPECT_THAT(svg, HasSubstr("HIT@10, b, epsilon 8</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(", a, ")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineFigure, TicksAreAtRoundNumbers) {
  const auto ticks = [](double most) {
    std::string text;
    for (const auto& [x, label] : RoundTicks(most)) {
      EXPECT_NEAR(x, std::stod(label), 1e-9);
      text += label + " ";
    }
    return text;
  };
  EXPECT_EQ(ticks(10.04), "0 2 4 6 8 10 ");
  EXPECT_EQ(ticks(10), "0 2 4 6 8 10 ");
  EXPECT_EQ(ticks(1), "0 0.2 0.4 0.6 0.8 1 ");
  EXPECT_EQ(ticks(0.3), "0 0.1 0.2 0.3 ");
  EXPECT_EQ(ticks(7), "0 2 4 6 ");
  EXPECT_EQ(ticks(60), "0 20 40 60 ");
  for (double most = 1e-3; most < 1e6; most *= 1.07) {
    EXPECT_LE(RoundTicks(most).size(), 6u) << most;
    EXPECT_GE(RoundTicks(most).size(), 3u) << most;
    EXPECT_LE(RoundTicks(most).back().first, most * (1 + 1e-6));
  }
}

// Letters of 13 pixels are seven wide on average.
TEST(LineFigure, LabelsHaveRoom) {
  for (const size_t letters : {5u, 30u, 80u}) {
    LineFigure figure({.title = "t",
                       .x_axis = "x",
                       .y_axis = "y",
                       .x_most = 1,
                       .x_ticks = {},
                       .percent_most = 5});
    figure.Add(std::string(letters, 'a'), 0, 0, {{1, 2, ""}});
    for (int i = 0; i < 30; ++i) figure.Add("b", 0, 0, {});
    const std::string svg = std::move(figure).Take();
    const auto number = [&](const std::string& before, size_t from) {
      return std::stod(svg.substr(svg.find(before, from) + before.size()));
    };
    const size_t label = svg.rfind("<text", svg.find("aaaa"));
    const size_t last = svg.rfind("<text");
    EXPECT_GT(number("width=\"", 0), number("x=\"", label) + 7 * static_cast<double>(letters));
    EXPECT_LT(number("width=\"", 0), number("x=\"", label) + 8 * static_cast<double>(letters) + 20);
    EXPECT_GT(number("height=\"", 0), number("y=\"", last) + 5);
  }
}

TEST(SequenceResults, AreThereAfterARestart) {
  test::TempDir dir;
  const SequenceRun a = MakeRun("a", 1, 0, 0.1);
  SequenceRun b = MakeRun("b", INFINITY, 1, 0.2);
  b.curve = {{1, 0.125, 0.25}, {2.5, 0.25, 0.5}};
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
}  // namespace tacit::lab
