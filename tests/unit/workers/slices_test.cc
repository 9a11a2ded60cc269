#include "workers/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <utility>

namespace tacit::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Offset = std::pair<int32_t, uint64_t>;  // of a partition

std::vector<Offset> Each(const Ranges& ranges) {
  std::vector<Offset> each;
  for (const OffsetRange& range : ranges)
    for (uint64_t offset = range.begin; offset < range.end; ++offset)
      each.emplace_back(range.partition, offset);
  return each;
}

void ExpectWellFormed(const Ranges& ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_LT(ranges[i].begin, ranges[i].end);
    EXPECT_TRUE(i == 0 || InOrder(ranges[i - 1], ranges[i]));
  }
}

// Ranges over a few partitions; some of them meet.
Ranges SomeRanges(std::mt19937_64& random, int partitions) {
  Ranges ranges;
  for (int32_t partition = 0; partition < partitions; ++partition) {
    uint64_t at = random() % 4;
    for (uint64_t left = random() % 4; left > 0; --left) {
      const uint64_t begin = at + random() % 3, end = begin + 1 + random() % 7;
      ranges.push_back({partition, begin, end});
      at = end;
    }
  }
  return ranges;
}

TEST(SlicesTest, AreCutInProportion) {
  const Ranges period = {{0, 10, 20}, {2, 0, 30}};
  EXPECT_THAT(CutSlices(period, std::vector<double>{1, 2, 1}),
              ElementsAre(Ranges{{0, 10, 20}}, Ranges{{2, 0, 20}}, Ranges{{2, 20, 30}}));
  EXPECT_THAT(CutSlices(period, std::vector<double>{1e-9, 1e9}),
              ElementsAre(IsEmpty(), Ranges{{0, 10, 20}, {2, 0, 30}}));
  EXPECT_THAT(CutSlices({}, std::vector<double>{1, 1}), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(CutSlices(period, {}), IsEmpty());
}

// The naive loop deals offset after offset: the n-th goes to the slice that n + 1/2 lies in.
TEST(SlicesTest, AreThoseOfANaiveLoop) {
  std::mt19937_64 random(20261129);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const Ranges period = SomeRanges(random, 4);
    std::vector<double> rates;
    std::vector<uint64_t> parts(1 + random() % 5);
    uint64_t all = 0;
    for (uint64_t& part : parts) {
      part = 1 + random() % 9;
      all += part;
      rates.push_back(static_cast<double>(part));
    }
    const std::vector<Offset> offsets = Each(period);
    std::vector<std::vector<Offset>> naive(parts.size());
    for (size_t n = 0; n < offsets.size(); ++n) {
      size_t slice = 0;
      uint64_t share = parts[0];
      while ((2 * n + 1) * all > 2 * offsets.size() * share) share += parts[++slice];
      naive[slice].push_back(offsets[n]);
    }
    const std::vector<Ranges> slices = CutSlices(period, rates);
    ASSERT_EQ(slices.size(), naive.size());
    for (size_t i = 0; i < slices.size(); ++i) {
      ExpectWellFormed(slices[i]);
      EXPECT_EQ(Each(slices[i]), naive[i]) << i;
    }
  }
}

TEST(SlicesTest, AGreatPeriodIsCutExactly) {
  const Ranges period = {{0, 0, uint64_t{1} << 30}};
  uint64_t next = 0;
  for (const Ranges& slice : CutSlices(period, std::vector<double>(100, 0.1))) {
    ASSERT_EQ(slice.size(), 1u);
    EXPECT_EQ(slice[0].begin, next);
    EXPECT_NEAR(static_cast<double>(slice[0].size()), 0x1p30 / 100, 2);
    next = slice[0].end;
  }
  EXPECT_EQ(next, uint64_t{1} << 30);
}

TEST(SlicesTest, WhatIsTakenIsLeftOut) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE(round);
    const Ranges ranges = SomeRanges(random, 3), taken = SomeRanges(random, 4);
    const std::vector<Offset> out = Each(taken);
    const std::set<Offset> gone(out.begin(), out.end());
    std::vector<Offset> left;
    for (const Offset& offset : Each(ranges))
      if (!gone.contains(offset)) left.push_back(offset);
    const Ranges result = Without(ranges, taken);
    ExpectWellFormed(result);
    EXPECT_EQ(Each(result), left);
    EXPECT_EQ(CountOffsets(result), left.size());
  }
}

}  // namespace
}  // namespace tacit::workers
