#include "base/row_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tacit {
namespace {

RowSpace ThreeTables() {
  RowSpace space;
  space.AddTable("city", 10, 4);
  space.AddTable("device", 1, 16);
  space.AddTable("item", uint64_t{1} << 40, 8);
  return space;
}

TEST(RowSpace, LaysTablesEndToEnd) {
  const RowSpace space = ThreeTables();
  EXPECT_EQ(space.rows(), (uint64_t{1} << 40) + 11);
  EXPECT_EQ(space.max_dim(), 16u);
  ASSERT_EQ(space.tables().size(), 3u);
  EXPECT_EQ(space.tables()[1].first, 10u);
  EXPECT_EQ(space.tables()[2].first, 11u);
}

TEST(RowSpace, FindsTheTableOfEveryEdge) {
  const RowSpace space = ThreeTables();
  EXPECT_EQ(space.TableOf(0), 0u);
  EXPECT_EQ(space.TableOf(9), 0u);
  EXPECT_EQ(space.TableOf(10), 1u);
  EXPECT_EQ(space.TableOf(11), 2u);
  EXPECT_EQ(space.TableOf(space.rows() - 1), 2u);
  EXPECT_DEATH(space.TableOf(space.rows()), "row outside the id space");
}

TEST(RowSpace, FindTableNamesTheNearest) {
  const RowSpace space = ThreeTables();
  EXPECT_EQ(space.FindTable("device").value(), 1u);
  const auto missing = space.FindTable("devise");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "no table 'devise' (did you mean 'device'?)");
}

TEST(RowSpace, RefusesAnEmptyTable) {
  RowSpace space;
  EXPECT_DEATH(space.AddTable("x", 0, 4), "an empty table");
  EXPECT_DEATH(space.AddTable("x", 4, 0), "an empty table");
}

}  // namespace
}  // namespace tacit
