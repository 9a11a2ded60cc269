// Promises that protect little are named; usual ones are not.
#include "privacy/weakness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tacit::privacy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(WeaknessTest, LargeNumbersAreNamedAndUsualOnesAreNot) {
  for (const double epsilon : {0.1, 1.0, 8.0, 20.0, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(WeaknessOf(epsilon, 1e-7).epsilon, IsEmpty()) << epsilon;
  for (const double delta : {0.0, 1e-9, 1e-5, 9e-4})
    EXPECT_THAT(WeaknessOf(8, delta).delta, IsEmpty()) << delta;
  EXPECT_THAT(WeaknessOf(100, 1e-7).epsilon, HasSubstr("100 hides next to nothing"));
  EXPECT_THAT(WeaknessOf(8, 0.5).delta, HasSubstr("where one unit in 2 is revealed whole"));
  EXPECT_THAT(WeaknessOf(100, 1e-7).delta, IsEmpty());
  EXPECT_THAT(WeaknessOf(8, 0.5).epsilon, IsEmpty());
}

TEST(WeaknessTest, ADeltaAboveOneOverTheUnitsIsNamed) {
  EXPECT_THAT(WeaknessAmong(1e-7, 9'999'999), IsEmpty());
  EXPECT_THAT(WeaknessAmong(1e-7, 0), IsEmpty());
  EXPECT_THAT(WeaknessAmong(0.5, 1), IsEmpty());
  EXPECT_THAT(WeaknessAmong(1e-6, 3'500'000), HasSubstr("3 of 3,500,000 units are revealed"));
}

}  // namespace
}  // namespace tacit::privacy
