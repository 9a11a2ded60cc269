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
  day.entropy_deviation = .01;
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

LearnerDays Learner(const train::DayRow& day, bool recommends) {
  return {.id = "one",
          .days = {day},
          .judged = day,
          .recommends = recommends,
          .promised = 8,
          .items = 11'000};
}

TEST(VerdictTest, SaysHowAClickModelStandsBesideAConstant) {
  LearnerDays learner = Learner(ClickDay(.9), false);
  EXPECT_EQ(Verdict(learner),
            "At epsilon 8 learner 'one' does better than the best constant (NE 0.9000, 95 % "
            "0.880-0.920).\n");
  learner.plain_judged = ClickDay(.8);
  EXPECT_THAT(Verdict(learner), HasSubstr("; without privacy NE 0.8000, 95 % 0.780-0.820.\n"));
  learner.judged = ClickDay(1.1);
  EXPECT_THAT(Verdict(learner),
              HasSubstr("no better than the best constant (NE 1.1000, 95 % 1.080-1.120); without "
                        "privacy it does better (NE 0.8000, 95 % 0.780-0.820): 100 records are "
                        "too few for its features at this epsilon.\n"));
  learner.plain_judged = ClickDay(1.01);
  EXPECT_THAT(Verdict(learner),
              HasSubstr(", and neither does it without privacy (NE 1.0100, 95 % 0.990-1.030).\n"));
  learner.promised = INFINITY;
  EXPECT_THAT(Verdict(learner), HasSubstr("Without privacy learner 'one' does"));
}

TEST(VerdictTest, BlamesAShortLastPeriodBeforeHeldOutRecords) {
  LearnerDays learner = Learner(ClickDay(1.1), false);
  train::DayRow held_out = ClickDay(1.1);
  held_out.held_out = true;
  learner.days.push_back(held_out);
  learner.plain_judged = ClickDay(.8);
  learner.longest_period = 4000;
  learner.last_period = 1999;
  EXPECT_THAT(Verdict(learner),
              AllOf(HasSubstr("): the last period before the held-out records is short (1,999 "
                              "records, the longest 4,000), so noise counts more in it: try "
                              "another --held-out.\n"),
                    Not(HasSubstr("too few"))));
  learner.last_period = 2000;
  EXPECT_THAT(Verdict(learner), HasSubstr("): 100 records are too few for its features"));
  // All periods are as short.
  learner.last_period = learner.longest_period = 10;
  EXPECT_THAT(Verdict(learner), HasSubstr("): 100 records are too few for its features"));
  // The last period of a stream is learnt from after its predictions were judged.
  learner.longest_period = 4000;
  learner.days.pop_back();
  EXPECT_THAT(Verdict(learner), HasSubstr("): 100 records are too few for its features"));
}

// Labels that are coin tosses: NE is on either side of 1 by chance alone.
TEST(VerdictTest, BlamesNeitherNoiseNorRecordsWhereNothingIsThereToLearn) {
  LearnerDays learner = Learner(ClickDay(.99), false);
  EXPECT_THAT(Verdict(learner), HasSubstr("does no better than the best constant (NE 0.9900, "));
  learner.plain_judged = ClickDay(.9999);
  learner.plain_judged->auc = .501;
  // An interval of .481 to .521 leaves no room for a good model, one of .306 to .696 does.
  EXPECT_THAT(Verdict(learner),
              AllOf(HasSubstr(", and neither does it without privacy (NE 0.9999, 95 % 0.980-1.019"
                              "): its features tell nothing of this label in 100 records.\n"),
                    Not(HasSubstr("too few"))));
  learner.plain_judged->auc_deviation = .1;
  EXPECT_THAT(Verdict(learner),
              AllOf(HasSubstr("): 50 labels of the rarer kind are too few to tell.\n"),
                    Not(HasSubstr("tell nothing"))));
  learner.plain_judged->auc_deviation = .01;
  learner.plain_judged->auc = .6;
  EXPECT_THAT(Verdict(learner), AllOf(Not(HasSubstr("tell nothing")), Not(HasSubstr("too few"))));
}

// A model by constants for noise that hides most values knows nothing, with noise or without.
TEST(VerdictTest, BlamesTheNoiseThatConstantsExpect) {
  LearnerDays learner = Learner(ClickDay(1.1), false);
  learner.plain_judged = ClickDay(1);
  learner.longest_period = 30'000;
  for (const double auc : {.5, .7}) {
    learner.plain_judged->auc = auc;
    learner.noise_in_units = 1700;
    EXPECT_THAT(Verdict(learner),
                AllOf(HasSubstr(", whose constants are those of this epsilon: they take values of "
                                "fewer than some 3,400 of a period's 30,000 records for noise. A "
                                "larger epsilon or longer periods"),
                      Not(HasSubstr("tell nothing"))));
    learner.noise_in_units = 150;  // 300 of 30,000
    EXPECT_THAT(Verdict(learner), Not(HasSubstr("whose constants")));
  }
  learner.plain_judged->auc = .5;
  EXPECT_THAT(Verdict(learner), HasSubstr("its features tell nothing of this label"));
}

TEST(VerdictTest, DoubtsAnAucThatNoHonestFeatureGives) {
  train::DayRow day = ClickDay(.1);
  day.auc = .995;
  EXPECT_THAT(Verdict(Learner(day, false)),
              HasSubstr(".\nIts AUC is 0.9950: does a feature hold what is known only after"));
  day.clicks = 19;
  EXPECT_THAT(Verdict(Learner(day, false)), Not(HasSubstr("AUC"))) << "too few labels to tell";
  EXPECT_THAT(Verdict(Learner(ClickDay(.9), false)), Not(HasSubstr("AUC")));
}

TEST(VerdictTest, SaysHowARecommenderStandsBesidePopularity) {
  LearnerDays learner = Learner(ItemDay(50, 62), true);
  EXPECT_EQ(Verdict(learner),
            "At epsilon 8 learner 'one' does no better than the most popular items (NDCG@10 "
            "0.0500, theirs 0.0620).\n");
  learner.judged = ItemDay(60, 52);
  EXPECT_THAT(Verdict(learner), HasSubstr("no better")) << "what chance gives";
  learner.plain_judged = ItemDay(90, 52);
  EXPECT_THAT(Verdict(learner),
              HasSubstr("without privacy it does better (NDCG@10 0.0900): 35,000 records are too "
                        "few for the pairs of 11,000 items at this epsilon."));
  learner.judged = ItemDay(80, 52);
  EXPECT_THAT(Verdict(learner), HasSubstr("does better than the most popular items"));
}

TEST(VerdictTest, SaysWhatTellsNothing) {
  LearnerDays blind = Learner(ClickDay(5), false);
  blind.judged.reset();
  train::DayRow unasked = ItemDay(0, 0);
  unasked.ranked = {};
  EXPECT_THAT(Verdict(blind), AllOf(HasSubstr("Nothing tells yet how good learner 'one' is"),
                                    HasSubstr("before its first release")));
  EXPECT_THAT(Verdict(Learner(unasked, true)), HasSubstr("nobody was asked"));
  train::DayRow same = ClickDay(1);
  same.clicks = 0;
  EXPECT_THAT(Verdict(Learner(same, false)), HasSubstr("all labels were the same"));
}

TEST(PlainTableTest, SetsTheLearnersAndTheirBaselinesSideBySide) {
  LearnerDays learner = Learner(ItemDay(50, 62), true);
  EXPECT_EQ(PlainTable(learner), "");
  learner.plain_judged = ItemDay(90, 62);
  EXPECT_THAT(PlainTable(learner),
              AllOf(HasSubstr("as configured    0.1000  0.083-0.120   0.0500\n"),
                    HasSubstr("without privacy  0.1000  0.083-0.120   0.0900\n"),
                    HasSubstr("popularity       0.1000  0.083-0.120   0.0620\n"),
                    HasSubstr("successor        0.0500  0.038-0.065   0.0250\n")));
  learner = Learner(ClickDay(.9), false);
  learner.plain_judged = ClickDay(.8);
  EXPECT_THAT(PlainTable(learner),
              AllOf(HasSubstr("as configured    0.9000  0.880-0.920  0.6000  0.580-0.620\n"),
                    HasSubstr("without privacy  0.8000  0.780-0.820  0.6000  0.580-0.620\n"),
                    HasSubstr("best constant    1.0000            -  0.5000            -\n"),
                    Not(HasSubstr("popularity"))));
}

}  // namespace
}  // namespace tacit::wiring
