#include "lab/next_item/lent_noise.h"

#include <gtest/gtest.h>

#include "support/silent_noise.h"

namespace tacit::lab {
namespace {

TEST(LentNoise, IsTakenBack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LentNoise lent;
  noise::SilentNoise lender;
  {
    const LentNoise::Loan loan(lent, lender);
    EXPECT_EQ(lent.Uniform(), 0.5);
  }
  EXPECT_DEATH(lent.Uniform(), "no noise is lent");
}

}  // namespace
}  // namespace tacit::lab
