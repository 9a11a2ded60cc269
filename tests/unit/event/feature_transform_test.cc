#include "event/feature_transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "base/distinct_rows.h"

namespace tacit::event {
namespace {

FeatureTransform OneOfEach(DenseTransform dense) {
  FeatureSchema schema;
  schema.dense.push_back({"x", dense});
  CategoricalFeature set;
  set.name = "genres";
  set.buckets = 1000;
  set.dim = 4;
  set.multi_hot = true;
  set.max_values = 3;
  schema.categorical.push_back(set);
  return FeatureTransform(schema);
}

std::vector<std::vector<std::string>> ReadGolden(const std::string& name) {
  std::ifstream file(TACIT_SOURCE_DIR "/tests/golden/" + name);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::vector<std::string>& row = rows.emplace_back();
    std::stringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
  }
  return rows;
}

TEST(FeatureTransformTest, SignedLog1pIsTheNearestFloat) {
  const FeatureTransform transform = OneOfEach(DenseTransform::kSignedLog1p);
  const auto rows = ReadGolden("signed_log1p.csv");
  ASSERT_GT(rows.size(), 40u);
  for (const auto& row : rows) {
    const int64_t x = std::stoll(row[0]);
    const auto expected = static_cast<uint32_t>(std::stoul(row[1], nullptr, 16));
    EXPECT_EQ(std::bit_cast<uint32_t>(transform.DenseInteger(0, x)), expected) << x;
    EXPECT_EQ(std::bit_cast<uint32_t>(transform.Dense(0, static_cast<double>(x))), expected) << x;
  }
}

// Beyond both ends of the tables too.
TEST(FeatureTransformTest, TabulatedIntegersEqualComputedOnes) {
  const FeatureTransform logarithm = OneOfEach(DenseTransform::kSignedLog1p);
  const FeatureTransform plain = OneOfEach(DenseTransform::kIdentity);
  for (int64_t x = -8300; x <= 8300; ++x) {
    const auto number = static_cast<double>(x);
    const auto of = static_cast<float>(x < 0 ? -std::log1p(-number) : std::log1p(number));
    for (const float read : {logarithm.DenseInteger(0, x), logarithm.Dense(0, number)})
      EXPECT_EQ(std::bit_cast<uint32_t>(read), std::bit_cast<uint32_t>(of)) << x;
    for (const float read : {plain.DenseInteger(0, x), plain.Dense(0, number)})
      EXPECT_EQ(std::bit_cast<uint32_t>(read), std::bit_cast<uint32_t>(static_cast<float>(x)));
  }
}

TEST(FeatureTransformTest, NothingAndWhatIsNotFiniteIsZero) {
  for (const auto kind : {DenseTransform::kIdentity, DenseTransform::kSignedLog1p}) {
    const FeatureTransform transform = OneOfEach(kind);
    EXPECT_EQ(transform.Dense(0, std::nullopt), 0);
    EXPECT_EQ(transform.Dense(0, std::nan("")), 0);
    EXPECT_EQ(transform.Dense(0, -std::numeric_limits<double>::infinity()), 0);
    EXPECT_TRUE(std::isfinite(transform.Dense(0, 1e300)));
    EXPECT_TRUE(std::isfinite(transform.Dense(0, -1e300)));
  }
}

// A network reads a missing number as 0; a model that sets missing numbers apart reads its sign.
TEST(FeatureTransformTest, TheSignOfZeroTellsAMissingNumberFromAZero) {
  EXPECT_EQ(kMissingNumber, 0.0f);
  for (const auto kind : {DenseTransform::kIdentity, DenseTransform::kSignedLog1p}) {
    const FeatureTransform transform = OneOfEach(kind);
    EXPECT_TRUE(std::signbit(transform.Dense(0, std::nullopt)));
    EXPECT_TRUE(std::signbit(transform.Dense(0, std::nan(""))));
    EXPECT_FALSE(std::signbit(transform.Dense(0, 0.0)));
    EXPECT_FALSE(std::signbit(transform.Dense(0, -0.0)));
    EXPECT_FALSE(std::signbit(transform.DenseInteger(0, 0)));
    EXPECT_FALSE(std::signbit(transform.Dense(0, -1e-300))) << "it underflows";
  }
}

TEST(FeatureTransformTest, IdentityKeepsTheNumber) {
  const FeatureTransform transform = OneOfEach(DenseTransform::kIdentity);
  EXPECT_EQ(transform.Dense(0, -2.5), -2.5f);
  EXPECT_EQ(transform.DenseInteger(0, -7), -7.0f);
}

TEST(FeatureTransformTest, RowsFollowTheGoldenBuckets) {
  const auto rows = ReadGolden("feature_rows.csv");
  ASSERT_GT(rows.size(), 10u);
  for (const auto& row : rows) {
    FeatureSchema schema;
    CategoricalFeature before, feature;
    before.name = "before";
    before.buckets = 77;
    before.dim = feature.dim = 1;
    feature.name = row[0];
    feature.buckets = std::stoull(row[1]);
    schema.categorical = {before, feature};
    EXPECT_EQ(FeatureTransform(schema).Row(1, row[2]), 77 + std::stoull(row[3])) << row[2];
  }
}

TEST(FeatureTransformTest, SetsDropEmptyRepeatedAndSurplusValues) {
  const FeatureTransform transform = OneOfEach(DenseTransform::kIdentity);
  const auto rows_of = [&](std::vector<std::string_view> values) {
    std::vector<uint64_t> rows{999};  // of an earlier slot
    transform.AppendRows(0, values, &rows);
    return std::vector<uint64_t>(rows.begin() + 1, rows.end());
  };
  const uint64_t a = transform.Row(0, "a"), b = transform.Row(0, "b"), c = transform.Row(0, "c");
  EXPECT_EQ(rows_of({"a", "", "b", "a"}), (std::vector<uint64_t>{a, b}));
  EXPECT_EQ(rows_of({"c", "b", "c", "a", "d"}), (std::vector<uint64_t>{c, b, a}));
  EXPECT_EQ(rows_of({"", ""}), std::vector<uint64_t>{0});
  EXPECT_EQ(rows_of({}), std::vector<uint64_t>{0});
}

// The same as the plainest of loops, for small sets and for the largest.
TEST(DistinctRows, KeepTheFirstOfEachRow) {
  std::mt19937_64 random(3);
  DistinctRows distinct;
  for (int round = 0; round < 200; ++round) {
    const size_t most = 1 + random() % (round % 2 == 0 ? 200 : 4096);
    const uint64_t values = 1 + random() % (2 * most);
    std::vector<uint64_t> rows(random() % 3, 7), expected = rows;
    const auto begin = static_cast<ptrdiff_t>(rows.size());
    distinct.Begin(rows.size(), most);
    for (size_t i = 0; i < 2 * most; ++i) {
      const uint64_t row = random() % values;
      distinct.Add(row, &rows);
      if (expected.size() - static_cast<size_t>(begin) < most &&
          std::find(expected.begin() + begin, expected.end(), row) == expected.end())
        expected.push_back(row);
    }
    ASSERT_EQ(rows, expected) << "round " << round;
    ASSERT_EQ(distinct.IsFull(rows), rows.size() - static_cast<size_t>(begin) == most);
  }
}

}  // namespace
}  // namespace tacit::event
