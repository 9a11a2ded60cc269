// The columns of the linear model: values out of inputs, and predictions out of values.
#include "model/linear/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "model/linear/predict.h"

namespace tacit::model::linear {
namespace {

using ::testing::ElementsAre;

float Z(double x) { return static_cast<float>(std::copysign(std::log1p(std::abs(x)), x)); }

TEST(LinearBins, AMissingNumberIsNoZero) {
  const Bins bins;
  EXPECT_EQ(bins.Of(-0.0f), 0u);
  EXPECT_EQ(bins.Of(std::nanf("")), 0u);
  EXPECT_EQ(bins.Of(0.0f), 1u + 3);  // bins begin at -3
}

TEST(LinearBins, EdgesAreReadable) {
  const Bins bins;
  EXPECT_EQ(bins.values(), 40u);
  EXPECT_EQ(bins.LeastOf(1), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(bins.LeastOf(bins.Of(0.0f)), 0);
  // Edges of width .45 on the logarithmic scale: e^.45 - 1 = .568, e^.9 - 1 = 1.460.
  EXPECT_NEAR(bins.LeastOf(bins.Of(Z(1))), 0.568312, 1e-6);
  EXPECT_NEAR(bins.LeastOf(bins.Of(Z(2))), 1.459603, 1e-6);
  EXPECT_NEAR(bins.LeastOf(2), -1.459603, 1e-6);
}

// Every number lies between its bin's edge and the next, for any size.
TEST(LinearBins, ANumberLiesBetweenItsEdges) {
  const Bins bins;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double size = std::exp(std::uniform_real_distribution<>(-5, 40)(random));
    const double x = random() % 2 ? size : -size;
    const uint32_t value = bins.Of(Z(x));
    ASSERT_GT(value, 0u);
    ASSERT_LT(value, bins.values());
    const double slack = 1e-5 * std::abs(x);  // z is a float
    ASSERT_GE(x + slack, bins.LeastOf(value));
    if (value + 1 < bins.values()) {
      ASSERT_LT(x - slack, bins.LeastOf(value + 1));
    }
  }
  EXPECT_EQ(bins.Of(1e30f), bins.values() - 1);
  EXPECT_EQ(bins.Of(std::numeric_limits<float>::infinity()), bins.values() - 1);
  EXPECT_EQ(bins.Of(-std::numeric_limits<float>::infinity()), 1u);
}

// Two categories, one of them a set, and two numbers.
Columns SomeColumns() {
  return Columns({{.name = "c", .rows = 10}, {.name = "s", .rows = 20, .set = true}},
                 {{.name = "n"}, {.name = "raw", .take_logarithm = true}},
                 {.width = 0.5, .lowest = -1, .highest = 2});
}

TEST(LinearColumns, CategoriesKeepTheNetworksRowsAndNumbersFollow) {
  const Columns columns = SomeColumns();
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_EQ(columns.space().rows(), 10u + 20 + 5 + 5);
  EXPECT_EQ(columns.space().max_dim(), 1u);
  EXPECT_FALSE(columns.IsSet(0));
  EXPECT_TRUE(columns.IsSet(1));
  EXPECT_FALSE(columns.IsSet(2));

  const std::vector<float> numbers = {0.6f, 7, -0.0f, -0.0f};
  const std::vector<uint32_t> slot_end = {1, 3, 4, 5};
  const std::vector<uint64_t> row = {4, 12, 17, 5, 10};
  ValueRuns runs;
  columns.Read({.examples = 2, .numbers = numbers, .slot_end = slot_end, .row = row}, &runs);
  // .6 lies in bin 1, ln 8 = 2.08 beyond the last one.
  EXPECT_THAT(runs.row, ElementsAre(4, 12, 17, 30 + 3, 35 + 4, 5, 10, 30, 35));
  EXPECT_THAT(runs.end, ElementsAre(1, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_FALSE(runs.one_each);

  const std::vector<uint32_t> single_end = {1, 2};
  columns.Read({.examples = 1,
                .numbers = std::span(numbers).first(2),
                .slot_end = single_end,
                .row = std::span(row).first(2)},
               &runs);
  EXPECT_TRUE(runs.one_each);
  EXPECT_THAT(runs.row, ElementsAre(4, 12, 33, 39));
}

// The pair of two values is a value, with any sets between them.
TEST(LinearColumns, CrossesArePairsOfValues) {
  const Columns columns(
      {{.name = "c", .rows = 10}, {.name = "s", .rows = 20, .set = true}, {.name = "d", .rows = 7}},
      {{.name = "n"}}, {.width = 0.5, .lowest = -1, .highest = 2}, {{"d*c", 2, 0}, {"c*n", 0, 3}});
  ASSERT_EQ(columns.size(), 6u);
  EXPECT_EQ(columns.numbers(), 1u);
  EXPECT_EQ(columns.space().rows(), 10u + 20 + 7 + 5 + 7 * 10 + 10 * 5);
  EXPECT_EQ(columns.CrossOf(3), nullptr);
  ASSERT_NE(columns.CrossOf(4), nullptr);
  EXPECT_EQ(columns.CrossOf(4)->first, 2u);
  const std::vector<float> numbers = {0.6f, -0.0f, 0.6f};
  // Sets of two values, of none and of one.
  const std::vector<uint32_t> slot_end = {1, 3, 4, 5, 5, 6, 7, 8, 9};
  const std::vector<uint64_t> row = {4, 12, 17, 35, 9, 36, 0, 11, 30};
  ValueRuns runs;
  columns.Read({.examples = 3, .numbers = numbers, .slot_end = slot_end, .row = row}, &runs);
  EXPECT_THAT(runs.row, ElementsAre(4, 12, 17, 35, 37 + 3, 42 + 5 * 10 + 4, 112 + 4 * 5 + 3,  //
                                    9, 36, 37, 42 + 6 * 10 + 9, 112 + 9 * 5,                  //
                                    0, 11, 30, 37 + 3, 42, 112 + 3));
  EXPECT_THAT(runs.end, ElementsAre(1, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18));
  EXPECT_FALSE(runs.one_each);
}

// A set of two beside an empty one has as many entries as runs.
TEST(LinearColumns, AsManyValuesAsColumnsAreNotOneEach) {
  const Columns columns(
      {{.name = "s", .rows = 4, .set = true}, {.name = "t", .rows = 4, .set = true}}, {});
  const std::vector<uint32_t> slot_end = {2, 2};
  const std::vector<uint64_t> row = {0, 1};
  ValueRuns runs;
  columns.Read({.examples = 1, .numbers = {}, .slot_end = slot_end, .row = row}, &runs);
  EXPECT_FALSE(runs.one_each);
}

// Against a loop in double, for one value a column and for sets.
TEST(LinearPrediction, IsTheSumOfTheValuesWeights) {
  std::mt19937_64 random(2);
  std::vector<float> weight(300);
  for (float& w : weight) w = static_cast<float>(std::normal_distribution<>()(random));
  for (const bool sets : {false, true}) {
    constexpr size_t kExamples = 200, kColumns = 13;
    std::vector<uint32_t> place, end;
    std::vector<double> expected(kExamples);
    for (size_t i = 0; i < kExamples; ++i)
      for (size_t j = 0; j < kColumns; ++j) {
        const size_t m = sets ? random() % 5 : 1;
        for (size_t k = 0; k < m; ++k) {
          place.push_back(static_cast<uint32_t>(random() % weight.size()));
          expected[i] += weight[place.back()] / std::sqrt(static_cast<double>(m));
        }
        end.push_back(static_cast<uint32_t>(place.size()));
      }
    const Places places{.columns = kColumns, .place = place, .end = end, .one_each = !sets};
    std::vector<float> out(kExamples - 7);
    AddUp(places, 7, kExamples, weight, out);
    for (size_t i = 7; i < kExamples; ++i) EXPECT_NEAR(out[i - 7], expected[i], 1e-4);
  }
}

// An example of one value a column has the same sum beside examples with sets and without them.
TEST(AddUpTest, AnExampleDoesNotDependOnThoseBesideIt) {
  std::mt19937 random(8);
  std::vector<float> weight(500);
  for (float& one : weight) one = static_cast<float>(random()) / 1e9f - 2;
  for (uint32_t columns = 1; columns < 14; ++columns) {
    std::vector<uint32_t> place, end;
    for (uint32_t j = 0; j < 2 * columns; ++j) {  // the first example's, and the second one's
      place.push_back(random() % 500);
      if (j == 0) place.push_back(random() % 500);
      end.push_back(static_cast<uint32_t>(place.size()));
    }
    float beside = 0, alone = 0;
    AddUp({.columns = columns, .place = place, .end = end}, 1, 2, weight, {&beside, 1});
    const auto own = std::span(place).last(columns);
    const auto ends = std::span(end).first(columns);
    std::iota(ends.begin(), ends.end(), 1u);
    AddUp({.columns = columns, .place = own, .end = ends, .one_each = true}, 0, 1, weight,
          {&alone, 1});
    EXPECT_EQ(beside, alone) << columns << " columns";
  }
}

}  // namespace
}  // namespace tacit::model::linear
