#include "train/learner/position.h"

#include <gtest/gtest.h>

namespace tacit::train {
namespace {

TEST(PositionTest, ComesBackAsItWas) {
  const stream::Position position{.pass = 2,
                                  .period = 3,
                                  .period_start = {{0, 0, 0}, {7, 12, 12}},
                                  .next = {{0, 5'000'000'000, 5'000'000'000}, {7, 40, 40}},
                                  .step = 99,
                                  .period_step = 7,
                                  .period_cuts = 2,
                                  .longest_period = 40,
                                  .reading = 77,
                                  .reading_since = 8,
                                  .begun_anew = 5};
  const auto decoded = DecodePosition(EncodePosition(position));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->pass, 2u);
  EXPECT_EQ(decoded->period, 3u);
  EXPECT_EQ(decoded->period_step, 7u);
  EXPECT_EQ(decoded->period_cuts, 2u);
  EXPECT_EQ(decoded->step, 99u);
  EXPECT_EQ(decoded->longest_period, 40u);
  EXPECT_EQ(decoded->reading, 77u);
  EXPECT_EQ(decoded->reading_since, 8u);
  EXPECT_EQ(decoded->begun_anew, 5u);
  EXPECT_EQ(decoded->next, position.next);
  EXPECT_EQ(decoded->period_start, position.period_start);
}

// Positions are witnessed beside the input.
TEST(PositionTest, ThePeriodsKeyIsNotPartOfIt) {
  stream::Position position{.period_start = {}, .next = {{0, 1, 9}}, .step = 2, .period_step = 1};
  const std::string without = EncodePosition(position);
  position.allocation = {.key = {1, 2, 3}, .block_steps = 4, .period_steps = 8};
  EXPECT_EQ(EncodePosition(position), without);
  EXPECT_FALSE(DecodePosition(without)->allocation);
}

TEST(AllocationCodecTest, ComesBackForTheNoiseThatWasCharged) {
  const stream::PeriodAllocation allocation{.key = {1, 2, 3}, .block_steps = 4, .period_steps = 8};
  const std::string bytes = EncodeAllocation(allocation, 1.5);
  const auto same = DecodeAllocation(bytes, 1.5);
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, allocation);
  const auto other = DecodeAllocation(bytes, 1.25);
  ASSERT_TRUE(other);
  EXPECT_FALSE(*other) << "less noise than was charged";
  EXPECT_EQ(EncodeAllocation(std::nullopt, 1.5), "");
  EXPECT_FALSE(*DecodeAllocation("", 1.5));
  for (size_t length = 1; length < bytes.size(); ++length)
    EXPECT_FALSE(DecodeAllocation(bytes.substr(0, length), 1.5)) << length;
  EXPECT_FALSE(DecodeAllocation(bytes + "x", 1.5));
}

TEST(PositionTest, NoBytesAreTheBeginning) {
  const auto decoded = DecodePosition("");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->step, 0u);
  EXPECT_TRUE(decoded->next.empty());
}

TEST(PositionTest, CutOrLongerBytesAreRefused) {
  const std::string bytes =
      EncodePosition({.pass = 1, .period_start = {}, .next = {{0, 1, 1}}, .step = 2});
  for (size_t length = 1; length < bytes.size(); ++length)
    EXPECT_FALSE(DecodePosition(bytes.substr(0, length))) << length;
  EXPECT_FALSE(DecodePosition(bytes + "x"));
  std::string other_format = bytes;
  other_format[0] = 9;
  EXPECT_FALSE(DecodePosition(other_format));
}

}  // namespace
}  // namespace tacit::train
