#include "privacy/allowance_forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tacit::privacy {
namespace {

// Users one by one, each with what is used of the allowance: the oracle's form of a count.
std::vector<uint32_t> DrawUsers(std::mt19937* random, uint32_t most) {
  std::vector<uint32_t> used(1 + (*random)() % 400);
  const uint32_t top = 1 + (*random)() % (most + 1);
  for (uint32_t& one : used) one = (*random)() % top;
  return used;
}

UsersByUses Counted(const std::vector<uint32_t>& used) {
  UsersByUses counted;
  for (const uint32_t one : used) ++counted[one];
  return counted;
}

bool MayGoOn(double used, const Bounds& bounds) {
  const auto next = static_cast<double>(bounds.period_steps == 0 ? 1 : bounds.period_steps);
  return used + next <= static_cast<double>(bounds.allowance);
}

Bounds DrawBounds(std::mt19937* random) {
  Bounds bounds{.allowance = 1 + (*random)() % 50};
  if ((*random)() % 2 == 0) bounds.period_steps = 1 + (*random)() % 10;
  return bounds;
}

TEST(AllowanceForecast, EveryUserIsInOnePart) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Bounds bounds = DrawBounds(&random);
    const std::vector<uint32_t> users = DrawUsers(&random, static_cast<uint32_t>(bounds.allowance));
    AllowancesLeft expected{.users = users.size()};
    for (const uint32_t used : users) {
      const double left = 1 - static_cast<double>(used) / static_cast<double>(bounds.allowance);
      if (!MayGoOn(used, bounds))
        ++expected.none;
      else if (left > .75)
        ++expected.quarters[3];
      else if (left > .5)
        ++expected.quarters[2];
      else if (left > .25)
        ++expected.quarters[1];
      else
        ++expected.quarters[0];
    }
    const AllowancesLeft left = CountLeft(Counted(users), bounds);
    EXPECT_EQ(left.users, expected.users);
    EXPECT_EQ(left.none, expected.none) << i;
    EXPECT_EQ(left.quarters, expected.quarters) << i;
  }
}

// The oracle lets every user go on at his own pace, and looks just before and at the foretold time.
TEST(AllowanceForecast, UsersGoneAtTheirPaceAreThoseForetold) {
  std::mt19937 random(2);
  constexpr int64_t kBegin = 1'000'000, kEnd = kBegin + 90'000'000;
  int seen = 0;
  for (int i = 0; i < 300; ++i) {
    const Bounds bounds = DrawBounds(&random);
    const std::vector<uint32_t> users = DrawUsers(&random, static_cast<uint32_t>(bounds.allowance));
    const auto without = [&](double time_ms) {
      double gone = 0;
      for (const uint32_t used : users) {
        const double then = used * (time_ms - kBegin) / (kEnd - kBegin);
        // A step is whole: what is used at the end of the history, then one more at each pace.
        const double whole = time_ms <= kEnd ? used : std::floor(then + 1e-9);
        gone += MayGoOn(whole, bounds) ? 0 : 1;
      }
      return gone / static_cast<double>(users.size());
    };
    double before = without(kEnd);
    for (const UsersGone& gone : ForetellGone(Counted(users), bounds, kBegin, kEnd)) {
      ++seen;
      EXPECT_GT(gone.share, before) << "what is past is not foretold";
      EXPECT_GE(without(static_cast<double>(gone.at_ms) + 2), gone.share);
      EXPECT_LT(without(static_cast<double>(gone.at_ms) - 2), gone.share);
    }
  }
  EXPECT_GT(seen, 100);
}

TEST(AllowanceForecast, NobodyAndNoTimeForetellNothing) {
  const Bounds bounds{.allowance = 10};
  EXPECT_TRUE(ForetellGone({}, bounds, 0, 1000).empty());
  EXPECT_TRUE(ForetellGone({{5, 10}}, bounds, 1000, 1000).empty());
  EXPECT_TRUE(ForetellGone({{0, 10}}, bounds, 0, 1000).empty());
  EXPECT_TRUE(ForetellGone({{10, 10}}, bounds, 0, 1000).empty()) << "all are past";
  EXPECT_EQ(ForetellGone({{5, 10}}, bounds, 0, 1000).size(), 4u);
  EXPECT_EQ(CountLeft({}, bounds).share_without(), 0);
}

}  // namespace
}  // namespace tacit::privacy
