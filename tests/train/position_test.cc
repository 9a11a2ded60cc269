#include "train/position.h"

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
                                  .period_marks = 2};
  const auto decoded = DecodePosition(EncodePosition(position));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->pass, 2u);
  EXPECT_EQ(decoded->period, 3u);
  EXPECT_EQ(decoded->period_step, 7u);
  EXPECT_EQ(decoded->period_marks, 2u);
  EXPECT_EQ(decoded->step, 99u);
  EXPECT_EQ(decoded->next, position.next);
  EXPECT_EQ(decoded->period_start, position.period_start);
}

// A store from before there were users continues.
TEST(PositionTest, FormatOneIsRead) {
  std::string bytes =
      EncodePosition({.pass = 1, .period_start = {{0, 3, 3}}, .next = {{0, 9, 9}}, .step = 2});
  bytes.erase(1 + 4 * 8, 8);
  bytes[0] = 1;
  const auto decoded = DecodePosition(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->step, 2u);
  EXPECT_EQ(decoded->period_marks, 0u);
  EXPECT_EQ(decoded->next, (std::vector<OffsetRange>{{0, 9, 9}}));
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
