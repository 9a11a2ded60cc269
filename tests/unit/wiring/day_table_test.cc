
#include "wiring/day_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

namespace tacit::wiring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TableOf(privacy::Unit unit, double epsilon) {
  privacy::Promise promise;
  promise.unit = unit;
  promise.delta = 1e-7;
  promise.bounds.allowance = 5;
  train::DayRow day;
  day.name = "day-00";
  day.events = 1234;
  day.steps = 7;
  day.epsilon = epsilon;
  return DayTable({.epsilon = epsilon, .days = {day}}, {}, promise);
}

TEST(DayTableTest, TellsWhatTheLearnersUnitIsCharged) {
  EXPECT_THAT(TableOf(privacy::Unit::kEvent, 8),
              AllOf(HasSubstr("1,234"), HasSubstr("epsilon 8.0000 at delta 1e-07"),
                    HasSubstr("every event took part in its steps only"), Not(HasSubstr("user"))));
  EXPECT_THAT(TableOf(privacy::Unit::kUser, 8),
              AllOf(HasSubstr("no user is ever in more than 5 steps"),
                    HasSubstr("costs no user more"), Not(HasSubstr("every event"))));
}

TEST(DayTableTest, SaysSoWhereNothingIsPrivate) {
  EXPECT_THAT(TableOf(privacy::Unit::kUser, std::numeric_limits<double>::infinity()),
              AllOf(HasSubstr("was not private"), Not(HasSubstr("delta"))));
}

TEST(DayTableTest, SaysWhereAConstantWouldHaveDoneBetter) {
  privacy::Promise promise;
  train::DayRow day;
  day.name = "day-00";
  day.events = 4;
  day.clicks = 1;
  day.predicted = 2;
  day.loss_sum = 4 * std::log(2);
  day.auc = .75;
  day.auc_deviation = .1;
  train::DayRow good = day;
  good.loss_sum = 1;
  EXPECT_THAT(DayTable({.epsilon = 1, .days = {day, good}}, {}, promise),
              AllOf(HasSubstr("1.2326"), HasSubstr("2.0000"), HasSubstr("0.7500 0.554-0.946"),
                    HasSubstr("On 1 of 2 days the best constant")));
  EXPECT_THAT(DayTable({.epsilon = 1, .days = {good}}, {}, promise),
              Not(HasSubstr("constant would")));
}

// A model that has learnt nothing yet is compared with no baseline.
TEST(DayTableTest, TheDayOfTheFirstReleaseHasARowForWhatCameAfterIt) {
  train::DayRow day;
  day.name = "day-00";
  day.steps = 2;
  day.events = 8;
  day.clicks = 2;
  day.loss_sum = 80;
  const std::string whole = DayTable({.epsilon = 1, .days = {day}}, {}, {});
  EXPECT_THAT(whole, AllOf(Not(HasSubstr("since release 1")), HasSubstr("On 1 of 1 day ")));
  day.after_release = {{.events = 4, .clicks = 1, .loss_sum = 1}, .75, .1};
  EXPECT_THAT(DayTable({.epsilon = 1, .days = {day}}, {}, {}),
              AllOf(HasSubstr("day-00                     8       2  10.0000"),
                    HasSubstr("  since release 1          4           0.2500"),
                    Not(HasSubstr("best constant would"))));
  day.after_release.reset();
  day.blind = true;
  EXPECT_THAT(DayTable({.epsilon = 1, .days = {day}}, {}, {}),
              Not(HasSubstr("best constant would")));
}

// The verdict's figures stand in a row, also where a step does not end at the end of a file.
TEST(DayTableTest, AllThatIsJudgedHasARowWhereItIsOfSeveral) {
  train::DayRow file, rest, held;
  file.name = "day-01";
  file.events = rest.events = held.events = 4;
  held.held_out = true;
  train::PredictedFigures judged;
  judged.events = 8;
  judged.auc = .75;
  EXPECT_THAT(DayTable({.days = {file, rest}, .judged = judged}, {}, {}),
              AllOf(HasSubstr("\nday-01                     4"),
                    HasSubstr("\nafter day-01               4"),
                    HasSubstr("\nsince release 1            8")));
  EXPECT_THAT(DayTable({.days = {rest, held, held}, .judged = judged}, {}, {}),
              AllOf(HasSubstr("\n-                          4"),
                    HasSubstr("\nall held out               8"), HasSubstr("0.7500")));
  EXPECT_THAT(DayTable({.days = {file, held}, .judged = held}, {}, {}),
              Not(HasSubstr("all held out")));
  file.blind = true;
  EXPECT_THAT(DayTable({.days = {file, rest}, .judged = rest}, {}, {}),
              Not(HasSubstr("since release 1")));
}

TEST(DayTableTest, SaysWhatIsLeftOutForUsedUpAllowances) {
  LearnerDays learner{.days = {train::DayRow{}}};
  learner.came = {.users = 200, .users_left_out = 30, .records = 20'000, .records_left_out = 3'674};
  for (const std::string& table : {DayTable(learner, {}, {}), RankedDayTable(learner, {})})
    EXPECT_THAT(table, HasSubstr("\n15.0 % of users and 18.4 % of records (3,674 of 20,000) were "
                                 "left out: allowances"));
  learner.came.users_left_out = learner.came.records_left_out = 0;
  EXPECT_THAT(DayTable(learner, {}, {}), Not(HasSubstr("left out")));
}

// A day of dead letters alone has no figures.
TEST(DayTableTest, ADayWithoutEventsHasNoFigures) {
  train::DayRow day;
  day.name = "day-00";
  day.steps = 7;
  EXPECT_THAT(DayTable({.epsilon = 1, .days = {day}}, {}, {}),
              AllOf(HasSubstr("-       -       -        -           -"), Not(HasSubstr("0.5000"))));
}

TEST(RankedDayTableTest, SetsBaselinesBesideTheModel) {
  train::DayRow day;
  day.name = "day-00";
  day.ranked = {.asked = 400,
                .model = {.hits = 40, .gain = 20},
                .popular = {.hits = 80, .gain = 50},
                .successor = {.hits = 120, .gain = 60}};
  train::DayRow good = day;
  good.ranked.model = {.hits = 100, .gain = 60};
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {day, good}}, {}),
              AllOf(HasSubstr("   0.1000 0.074-0.133  0.0500    0.2000  0.1250    0.3000  0.1500"),
                    HasSubstr("On 1 of 2 days the most popular items were the better answer")));
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {good}}, {}),
              Not(HasSubstr("the better answer")));
  good.ranked.model.gain = 30;
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {good}}, {}), HasSubstr("On 1 of 1 day "))
      << "as many hits, in worse places";
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {train::DayRow{}}}, {}),
              HasSubstr("        -           -       -         -       -         -       -"));
}

TEST(RankedDayTableTest, SaysWhyNobodyWasAsked) {
  train::DayRow first, second, asked;
  first.ranked = {.without_model = 30};
  second.ranked = {.without_history = 1200, .without_news = 4};
  asked.ranked = {.asked = 5, .without_history = 7};
  privacy::Promise promise;
  promise.unit = privacy::Unit::kUser;
  promise.bounds.allowance = 2;
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {first, second, asked}}, promise),
              AllOf(HasSubstr("On 2 of 3 days nobody was asked for a next item: 30 users came "
                              "before anything had been learnt,\n1,200 had no history, 4 took"),
                    Not(HasSubstr("max_participations"))));
  promise.bounds.allowance = 1;
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {second}}, promise),
              HasSubstr("max_participations 1"));
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {first}}, promise),
              Not(HasSubstr("max_participations 1")));
  EXPECT_THAT(RankedDayTable({.epsilon = 1, .days = {asked}}, promise),
              Not(HasSubstr("nobody was asked")));
}

train::DayRow DayOf(const std::string& name, train::DayEnd end, double auc) {
  train::DayRow day;
  day.name = name;
  day.end = end;
  day.auc = auc;
  return day;
}

// A learner that came later has no figure for the days before.
TEST(SideBySideTest, HasALineADay) {
  const train::DayRow a = DayOf("a", {10, 1}, 1), b = DayOf("b", {30, 1}, 1);
  EXPECT_EQ(SideBySide({{.id = "one", .epsilon = 1, .days = {a}}}, {}), "");
  const std::string table =
      SideBySide({{.id = "one", .epsilon = 1, .days = {a, b}},
                  {.id = "other", .epsilon = INFINITY, .days = {DayOf("b", {30, 1}, 0)}}},
                 {{"b", 0.75}});
  EXPECT_EQ(table,
            "AUC         one   other    best\n"
            "epsilon  1.0000       -        \n"
            "a        1.0000       -       -\n"
            "b        1.0000  0.0000  0.7500\n");
}

// Files of several folders have one name, a step may hold several files, and a learner may end
// sooner than the other: only what is of the same records stands in one line.
TEST(SideBySideTest, ComparesTheSameRecordsAlone) {
  train::DayRow held = DayOf("a", {10, 1}, .9);
  held.held_out = true;
  EXPECT_EQ(
      SideBySide(
          {{.id = "one",
            .epsilon = 1,
            .days = {DayOf("a", {10, 1}, .1), DayOf("a", {20, 1}, .2), DayOf("b", {30, 1}, .3),
                     DayOf("", {}, .4), held}},
           {.id = "two",
            .epsilon = 1,
            .days = {DayOf("a", {10, 1}, .5), DayOf("a..b", {30, 2}, .6), DayOf("", {}, .7), held}},
           {.id = "short", .epsilon = 1, .days = {DayOf("a", {10, 1}, .8), DayOf("", {}, 1)}}},
          {}),
      "AUC                 one     two   short\n"
      "epsilon          1.0000  1.0000  1.0000\n"
      "a, to offset 10  0.1000  0.5000  0.8000\n"
      "after a               -       -  1.0000\n"
      "a, to offset 20  0.2000       -       -\n"
      "b                0.3000       -       -\n"
      "a..b                  -  0.6000       -\n"
      "after b          0.4000  0.7000       -\n"
      "a, held out      0.9000  0.9000       -\n");
}

TEST(DayTableTest, LongNamesHaveTheirRoom) {
  const train::DayRow day = DayOf("a-file-of-a-long-name.csv", {10, 1}, 1);
  std::istringstream lines(DayTable({.epsilon = 1, .days = {day}}, {}, {}));
  std::string head, row;
  std::getline(lines, head);
  std::getline(lines, row);
  EXPECT_EQ(head.size(), row.size()) << head << '\n' << row;
}

}  // namespace
}  // namespace tacit::wiring
