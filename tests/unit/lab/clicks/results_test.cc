#include "lab/clicks/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/process.h"

namespace tacit::lab {
namespace {

using test::TempDir;
using ::testing::HasSubstr;

RunRecord Record(const std::string& id) {
  return {.id = id,
          .learner = "ctr",
          .mechanism = "none",
          .settings = {{"mechanism.kind", "none"}},
          .seed = 3,
          .auc = 0.75,
          .log_loss = 0.5,
          .epsilon_spent = INFINITY,
          .rows_per_step = 2.5,
          .row_floats_per_step = 17,
          .steps = 9,
          .events = 100,
          .events_measured = 2,
          .seconds = 0.125};
}

TEST(RunRecord, IsWhatItWasAfterALineOfJson) {
  const RunRecord record = Record("a");
  const auto again = FromJsonLine<RunRecord>(ToJsonLine(record));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(ToJsonLine(*again), ToJsonLine(record));
  EXPECT_TRUE(std::isinf(again->epsilon_spent));
  EXPECT_EQ(again->settings, record.settings);
  EXPECT_FALSE(FromJsonLine<RunRecord>("{}"));
  EXPECT_FALSE(FromJsonLine<RunRecord>("[]"));
  EXPECT_FALSE(FromJsonLine<RunRecord>("{\"id\": 7}"));
}

TEST(Results, AreThereAfterARestart) {
  TempDir dir;
  {
    auto results = Results::Open(dir / "r.jsonl", true);
    ASSERT_TRUE(results);
    EXPECT_FALSE((*results)->Find("a"));
    ASSERT_TRUE((*results)->Add(Record("a"), {0.5f, -1.0f}));
    ASSERT_TRUE((*results)->Add(Record("b"), {1.0f, 2.0f}));
  }
  auto results = Results::Open(dir / "r.jsonl", true);
  ASSERT_TRUE(results);
  EXPECT_TRUE((*results)->Find("a"));
  EXPECT_EQ(*(*results)->Predictions("a"), (std::vector<float>{0.5f, -1.0f}));
  EXPECT_EQ(*(*results)->Predictions("b"), (std::vector<float>{1.0f, 2.0f}));
}

TEST(Results, ALineCutShortIsDroppedAndWrittenAnew) {
  TempDir dir;
  const std::string path = dir / "r.jsonl";
  const std::string whole = ToJsonLine(Record("a")) + "\n", cut = ToJsonLine(Record("b"));
  for (const size_t kept : {size_t{1}, cut.size() / 2, cut.size()}) {
    test::WriteFile(path, whole + cut.substr(0, kept));
    auto results = Results::Open(path, false);
    ASSERT_TRUE(results);
    EXPECT_TRUE((*results)->Find("a"));
    EXPECT_FALSE((*results)->Find("b"));
    ASSERT_TRUE((*results)->Add(Record("b"), {}));
    EXPECT_EQ(test::ReadFile(path), whole + cut + "\n");
  }
}

// A file of another program stays as it is, however it ends.
TEST(Results, AnothersFileIsRefusedAndKept) {
  TempDir dir;
  const std::string path = dir / "notes";
  for (const std::string& text : {std::string("one line that matters"), std::string("{\"a\": 1}"),
                                  ToJsonLine(Record("a")) + "\nnotes"}) {
    test::WriteFile(path, text);
    const auto results = Results::Open(path, false);
    ASSERT_FALSE(results);
    EXPECT_THAT(results.error().message, HasSubstr(path));
    EXPECT_EQ(test::ReadFile(path), text);
  }
}

TEST(Results, ABadLineIsNamed) {
  TempDir dir;
  test::WriteFile(dir / "r.jsonl", ToJsonLine(Record("a")) + "\nnonsense\n");
  const auto results = Results::Open(dir / "r.jsonl", false);
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().message, HasSubstr("r.jsonl:2: not a finished run"));
}

// Predictions that are asked for and not there: the run is made again.
TEST(Results, ARunWithoutItsPredictionsIsNotThere) {
  TempDir dir;
  auto without = Results::Open(dir / "r.jsonl", false);
  ASSERT_TRUE((*without)->Add(Record("a"), {}));
  auto with = Results::Open(dir / "r.jsonl", true);
  EXPECT_TRUE((*without)->Find("a"));
  EXPECT_FALSE((*with)->Find("a"));
  ASSERT_TRUE((*with)->Add(Record("a"), {0.5f, -1.0f}));
  EXPECT_TRUE((*with)->Find("a"));
}

TEST(RunId, IsOfEverythingThatDecidesTheRun) {
  GridPoint point;
  point.learner = "a";
  point.canonical = "x";
  const std::string id = RunId(point, "log", 10, 0, 20, 1);
  EXPECT_EQ(id, RunId(point, "log", 10, 0, 20, 1));
  EXPECT_NE(id, RunId(point, "gol", 10, 0, 20, 1));
  EXPECT_NE(id, RunId(point, "log", 11, 0, 20, 1));
  EXPECT_NE(id, RunId(point, "log", 10, 1, 20, 1));
  EXPECT_NE(id, RunId(point, "log", 10, 0, 21, 1));
  EXPECT_NE(id, RunId(point, "log", 10, 0, 20, 2));
  point.canonical = "y";
  EXPECT_NE(id, RunId(point, "log", 10, 0, 20, 1));
}

}  // namespace
}  // namespace tacit::lab
