#include "lab/clicks/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

namespace tacit::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReportRow Row(const std::string& learner, const std::string& mechanism, double epsilon,
              double auc) {
  ReportRow row;
  row.learner = learner;
  row.mechanism = mechanism;
  row.epsilon = epsilon;
  row.delta = 1e-7;
  row.auc = Moments::Of({auc});
  row.log_loss = Moments::Of({0.5});
  row.gradient_size_reduction = 4;
  return row;
}

std::vector<ReportRow> Rows() {
  std::vector<ReportRow> rows = {Row("dense", "dp-sgd", 8, 0.7), Row("numbers", "dp-sgd", 8, 0.72),
                                 Row("fest", "fest", 8, 0.71), Row("plain", "none", INFINITY, 0.8)};
  rows[1].embeddings = false;
  return rows;
}

TEST(Moments, OfOneValueHaveNoDeviation) {
  EXPECT_FALSE(Moments::Of({0.7}).std);
  const Moments two = Moments::Of({1, 2});
  EXPECT_DOUBLE_EQ(two.mean, 1.5);
  ASSERT_TRUE(two.std);
  EXPECT_DOUBLE_EQ(*two.std, std::sqrt(0.5));
}

// A model from the numbers alone may be better, and is still not the dense baseline.
TEST(ReferenceOf, IsTheDenseLearnerWithEmbeddings) {
  const std::vector<ReportRow> rows = Rows();
  EXPECT_EQ(ReferenceOf(rows, rows[2], ""), &rows[0]);
  EXPECT_EQ(ReferenceOf(rows, rows[1], ""), &rows[0]);
  EXPECT_EQ(ReferenceOf(rows, rows[0], ""), nullptr);
  EXPECT_EQ(ReferenceOf(rows, rows[2], "numbers"), &rows[1]);
}

TEST(ReferenceNames, AreOfTheLearnersReallyUsed) {
  std::vector<ReportRow> rows = Rows();
  EXPECT_EQ(ReferenceNames(rows, ""), "dense (dp-sgd)");
  EXPECT_EQ(ReferenceNames(rows, "fest"), "fest (fest)");
  // If it could not be had at an epsilon, another stands in for it.
  rows.push_back(Row("fest", "fest", 1, 0.6));
  EXPECT_EQ(ReferenceNames(rows, ""), "dense (dp-sgd) or fest (fest)");
}

TEST(TextTable, SaysWhatItsFiguresAre) {
  std::vector<ReportRow> rows = Rows();
  rows[2].settings = {{"mechanism.threshold", "5"}, {"optimizer.kind", "adam"}};
  for (const std::string& text : {TextTable(rows), MarkdownTable(rows)}) {
    EXPECT_THAT(text, HasSubstr("threshold=5 optimizer.kind=adam"));
    EXPECT_THAT(text, HasSubstr("smaller: gradient size reduction"));
    EXPECT_THAT(text, HasSubstr("epsilon is at delta 1e-07\n"));
    EXPECT_THAT(text, Not(HasSubstr("±")));
  }
  rows[0].delta = 1e-6;
  rows[0].auc = Moments::Of({0.7, 0.71});
  EXPECT_THAT(TextTable(rows), HasSubstr("epsilon of numbers, fest is at delta 1e-07\n"));
  EXPECT_THAT(TextTable(rows), HasSubstr("epsilon of dense is at delta 1e-06\n"));
  EXPECT_THAT(TextTable(rows), HasSubstr("0.7050 ± 0.0071"));
}

// Settings that all rows have in common are said once, below them.
TEST(TextTable, HasInItsRowsOnlySettingsThatDiffer) {
  std::vector<ReportRow> rows = Rows();
  for (ReportRow& row : rows) row.settings = {{"participation.batch", "2048"}};
  rows[2].settings["mechanism.threshold"] = "5";
  for (const std::string& text : {TextTable(rows), MarkdownTable(rows)}) {
    EXPECT_THAT(text, HasSubstr("\nall rows: batch=2048\n"));
    EXPECT_THAT(text, HasSubstr("threshold=5"));
    EXPECT_THAT(text, Not(HasSubstr("threshold=5 batch=2048")));
  }
  rows[0].settings.clear();
  EXPECT_THAT(TextTable(rows), Not(HasSubstr("all rows")));
  EXPECT_THAT(TextTable(rows), HasSubstr("threshold=5 batch=2048"));
}

TEST(TextTable, NamesAReferenceOnceForAllItsEpsilons) {
  std::vector<ReportRow> rows = {Row("dense", "dp-sgd", 1, 0.7), Row("fest", "fest", 1, 0.71),
                                 Row("dense", "dp-sgd", 3, 0.7), Row("fest", "fest", 3, 0.71)};
  for (const size_t i : {1, 3}) rows[i].difference = {.reference = "dense (dp-sgd)", .auc = {}};
  EXPECT_THAT(TextTable(rows), HasSubstr("difference to dense (dp-sgd) at epsilon 1, 3\n"));
}

TEST(ToJson, HasNoDeviationOfOneSeed) {
  std::vector<ReportRow> rows = Rows();
  EXPECT_TRUE(ToJson(rows, 1, 0).at("rows").at(0).at("auc").at("std").is_null());
  rows[0].auc = Moments::Of({0.7, 0.71});
  EXPECT_NEAR(ToJson(rows, 2, 0).at("rows").at(0).at("auc").at("std").as_double(), 0.00707, 1e-5);
}

}  // namespace
}  // namespace tacit::lab
