#include "wiring/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tacit::wiring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A day of a hundred records, half of them clicks: `entropy` is its NE.
train::DayRow ClickDay(double entropy) {
  train::DayRow day;
  day.events = 100;
  day.clicks = 50;
  day.loss_sum = entropy * 100 * std::log(2);
  day.auc = .6;
  day.auc_deviation = .01;
  return day;
}

train::DayRow ItemDay(double model, double popular) {
  train::DayRow day;
  day.events = 35'000;
  day.ranked = {.asked = 1000,
                .model = {.hits = 100, .gain = model},
                .popular = {.hits = 100, .gain = popular},
                .successor = {.hits = 50, .gain = 25}};
  return day;
}

LearnerDays Learner(std::vector<train::DayRow> days, bool recommends) {
  return {.id = "one",
          .days = std::move(days),
          .recommends = recommends,
          .promised = 8,
          .items = 11'000};
}

TEST(VerdictTest, JudgesHeldOutDaysElseAllSinceTheFirstRelease) {
  train::DayRow blind = ClickDay(5), first = ClickDay(3), held = ClickDay(.9);
  blind.blind = true;
  first.after_release = {{.events = 10, .clicks = 5, .loss_sum = 4}, .7, .1};
  held.held_out = true;
  EXPECT_FALSE(JudgedOf({blind}));
  const auto alone = JudgedOf({blind, first});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->events, 10u);
  EXPECT_EQ(alone->auc, .7);
  const auto both = JudgedOf({first, ClickDay(1)});
  EXPECT_EQ(both->events, 110u);
  EXPECT_EQ(both->loss_sum, 4 + 100 * std::log(2));
  EXPECT_TRUE(std::isnan(both->auc)) << "there is no AUC of two days";
  EXPECT_EQ(JudgedOf({first, held})->loss_sum, held.loss_sum);
}

TEST(VerdictTest, SaysHowAClickModelStandsBesideAConstant) {
  LearnerDays learner = Learner({ClickDay(.9)}, false);
  EXPECT_EQ(Verdict(learner),
            "At epsilon 8 learner 'one' does better than the best constant (NE 0.9000).\n");
  learner.plain = {ClickDay(.8)};
  EXPECT_THAT(Verdict(learner), HasSubstr("(NE 0.9000); without privacy NE 0.8000."));
  learner.days = {ClickDay(1.1)};
  EXPECT_THAT(Verdict(learner),
              HasSubstr("no better than the best constant (NE 1.1000); without privacy it does "
                        "better (NE 0.8000): 100 records are too few for its features"));
  learner.plain = {ClickDay(1.01)};
  EXPECT_THAT(Verdict(learner), HasSubstr(", and neither does it without privacy (NE 1.0100)."));
  learner.promised = INFINITY;
  EXPECT_THAT(Verdict(learner), HasSubstr("Without privacy learner 'one' does"));
}

TEST(VerdictTest, SaysHowARecommenderStandsBesidePopularity) {
  LearnerDays learner = Learner({ItemDay(50, 62)}, true);
  EXPECT_EQ(Verdict(learner),
            "At epsilon 8 learner 'one' does no better than the most popular items (NDCG@10 "
            "0.0500, theirs 0.0620).\n");
  learner.days = {ItemDay(60, 52)};
  EXPECT_THAT(Verdict(learner), HasSubstr("no better")) << "what chance gives";
  learner.plain = {ItemDay(90, 52)};
  EXPECT_THAT(Verdict(learner),
              HasSubstr("without privacy it does better (NDCG@10 0.0900): 35,000 records are too "
                        "few for the pairs of 11,000 items at this epsilon."));
  learner.days = {ItemDay(80, 52)};
  EXPECT_THAT(Verdict(learner), HasSubstr("does better than the most popular items"));
}

TEST(VerdictTest, SaysWhatTellsNothing) {
  train::DayRow blind = ClickDay(5), unasked = ItemDay(0, 0);
  blind.blind = true;
  unasked.ranked = {};
  EXPECT_THAT(Verdict(Learner({blind}, false)),
              AllOf(HasSubstr("Nothing tells yet how good learner 'one' is"),
                    HasSubstr("before its first release")));
  EXPECT_THAT(Verdict(Learner({unasked}, true)), HasSubstr("nobody was asked"));
  train::DayRow same = ClickDay(1);
  same.clicks = 0;
  EXPECT_THAT(Verdict(Learner({same}, false)), HasSubstr("all labels were the same"));
}

TEST(PlainTableTest, SetsTheLearnersAndTheirBaselinesSideBySide) {
  LearnerDays learner = Learner({ItemDay(50, 62)}, true);
  EXPECT_EQ(PlainTable(learner), "");
  learner.plain = {ItemDay(90, 62)};
  EXPECT_THAT(PlainTable(learner),
              AllOf(HasSubstr("as configured    0.1000  0.083-0.120   0.0500\n"),
                    HasSubstr("without privacy  0.1000  0.083-0.120   0.0900\n"),
                    HasSubstr("popularity       0.1000  0.083-0.120   0.0620\n"),
                    HasSubstr("successor        0.0500  0.038-0.065   0.0250\n")));
  learner = Learner({ClickDay(.9)}, false);
  learner.plain = {ClickDay(.8)};
  EXPECT_THAT(PlainTable(learner),
              AllOf(HasSubstr("as configured    0.9000  0.6000  0.580-0.620\n"),
                    HasSubstr("without privacy  0.8000  0.6000  0.580-0.620\n"),
                    HasSubstr("best constant    1.0000  0.5000            -\n"),
                    Not(HasSubstr("popularity"))));
}

}  // namespace
}  // namespace tacit::wiring
