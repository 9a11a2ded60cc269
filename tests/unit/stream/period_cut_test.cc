#include "stream/kafka/period_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tacit::stream {
namespace {

// The timestamps of a topic's records, by partition and offset.
struct Topic final : OffsetsByTime {
  std::vector<std::vector<int64_t>> times;
  int questions = 0;
  bool away = false;

  uint64_t First(size_t p, int64_t time_ms, uint64_t begin, uint64_t end) const {
    uint64_t offset = begin;
    while (offset < end && times[p][offset] < time_ms) ++offset;
    return offset;
  }
  Result<std::vector<uint64_t>> FirstFrom(int64_t time_ms,
                                          std::span<const OffsetRange> ranges) override {
    ++questions;
    if (away) return Fail(ErrorCode::kUnavailable, "no leader");
    std::vector<uint64_t> offsets;
    // As brokers do, it looks from the partition's beginning: the answer may be before the range.
    for (const OffsetRange& range : ranges) {
      const auto p = static_cast<size_t>(range.partition);
      const uint64_t first = First(p, time_ms, 0, times[p].size());
      offsets.push_back(first == times[p].size() ? range.end : first);
    }
    return offsets;
  }
  std::vector<OffsetRange> All() const {
    std::vector<OffsetRange> all;
    for (size_t p = 0; p < times.size(); ++p)
      all.push_back({static_cast<int32_t>(p), 0, times[p].size()});
    return all;
  }
};

uint64_t Size(const std::vector<OffsetRange>& ranges) {
  uint64_t size = 0;
  for (const OffsetRange& range : ranges) size += range.size();
  return size;
}

// The same cut, from its definition: every millisecond is tried, from the first on, and the missing
// offsets are dealt out one by one, each to the partition that lags most behind its part.
std::vector<OffsetRange> Naive(const Topic& topic, std::vector<OffsetRange> there, uint64_t offsets,
                               int64_t last_ms) {
  const auto first = [&](const OffsetRange& range, int64_t time_ms) {
    if (time_ms <= 0) return range.begin;
    if (time_ms > last_ms) return range.end;
    const auto p = static_cast<size_t>(range.partition);
    // The first record of the partition at that time or later, even if it is before the range.
    return std::clamp(topic.First(p, time_ms, 0, topic.times[p].size()), range.begin, range.end);
  };
  int64_t time = 1;
  const auto reached = [&] {
    uint64_t sum = 0;
    for (const OffsetRange& range : there) sum += first(range, time) - range.begin;
    return sum;
  };
  while (reached() < offsets) ++time;
  uint64_t below = 0, gaps = 0;
  std::vector<uint64_t> gap;
  for (OffsetRange& range : there) {
    const uint64_t begin = first(range, time - 1);
    gap.push_back(first(range, time) - begin);
    gaps += gap.back();
    below += begin - range.begin;
    range.end = begin;
  }
  const uint64_t missing = offsets - below;
  if (gaps == 0) return there;
  std::vector<uint64_t> given(gap.size());
  for (size_t p = 0; p < gap.size(); ++p) given[p] = missing * gap[p] / gaps;
  uint64_t left = missing;
  for (size_t p = 0; p < gap.size(); ++p) left -= given[p];
  std::vector<bool> had(gap.size());
  for (; left > 0; --left) {
    size_t best = gap.size();
    for (size_t p = 0; p < gap.size(); ++p)
      if (!had[p] && (best == gap.size() || missing * gap[p] % gaps > missing * gap[best] % gaps))
        best = p;
    had[best] = true;
    ++given[best];
  }
  for (size_t p = 0; p < gap.size(); ++p) there[p].end += given[p];
  return there;
}

// A topic whose clocks repeat, stand still or go back; or that has no timestamps at all.
Topic Draw(std::mt19937_64& random, int64_t* last_ms) {
  const auto below = [&](uint64_t n) { return random() % n; };
  Topic topic;
  const uint64_t law = below(4);
  *last_ms = 0;
  for (uint64_t p = 1 + below(6); p > 0; --p) {
    std::vector<int64_t>& times = topic.times.emplace_back();
    int64_t time = static_cast<int64_t>(below(30));
    for (uint64_t i = below(80); i > 0; --i) {
      if (law == 1) time += static_cast<int64_t>(below(3));
      if (law == 2) time = std::max<int64_t>(0, time + static_cast<int64_t>(below(9)) - 3);
      times.push_back(law == 3 ? -1 : time);
      *last_ms = std::max(*last_ms, time);
    }
  }
  return topic;
}

TEST(PeriodCutTest, IsTheNaiveOneOfAnyTopic) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    int64_t last_ms = 0;
    Topic topic = Draw(random, &last_ms);
    // Partitions are read up to different offsets, or are new.
    std::vector<OffsetRange> there = topic.All();
    for (OffsetRange& range : there)
      if (random() % 3 != 0) range.begin = random() % (range.end + 1);
    // The whole topic, period after period, until less than one is left.
    const uint64_t offsets = 1 + random() % 60;
    while (true) {
      topic.questions = 0;
      const auto cut = CutPeriod(there, offsets, /*closes=*/false, topic);
      ASSERT_TRUE(cut);
      ASSERT_EQ(cut->has_value(), Size(there) >= offsets);
      if (!*cut) break;
      ASSERT_LE(topic.questions, kPeriodQuestionsMost);
      ASSERT_EQ(Size(**cut), offsets);
      ASSERT_EQ(**cut, Naive(topic, there, offsets, last_ms));
      for (size_t p = 0; p < there.size(); ++p) there[p].begin = (**cut)[p].end;
    }
    const auto rest = CutPeriod(there, offsets, /*closes=*/true, topic);
    ASSERT_TRUE(rest && *rest);
    ASSERT_EQ(**rest, there);
  }
}

// A tick closes what is there; but a period that is full is cut first, and has its size exactly.
TEST(PeriodCutTest, ATickClosesLessThanAPeriodAndNeverMore) {
  Topic topic;
  topic.times = {{1, 2, 3}, {1, 2, 3}};
  auto cut = CutPeriod(topic.All(), 4, /*closes=*/true, topic);
  ASSERT_TRUE(cut && *cut);
  EXPECT_EQ(**cut, (std::vector<OffsetRange>{{0, 0, 2}, {1, 0, 2}}));
  topic.questions = 0;
  cut = CutPeriod(topic.All(), 7, /*closes=*/true, topic);
  ASSERT_TRUE(cut && *cut);
  EXPECT_EQ(**cut, topic.All());
  EXPECT_EQ(topic.questions, 0);
  cut = CutPeriod(topic.All(), 7, /*closes=*/false, topic);
  ASSERT_TRUE(cut);
  EXPECT_FALSE(*cut);
}

// Records of one millisecond come in proportion: 10 of 70, 20 and 10 are 7, 2 and 1.
TEST(PeriodCutTest, RecordsOfOneTimeComeInProportion) {
  Topic topic;
  for (const size_t size : {70, 20, 10}) topic.times.emplace_back(size, 5);
  const auto cut = CutPeriod(topic.All(), 10, /*closes=*/false, topic);
  ASSERT_TRUE(cut && *cut);
  EXPECT_EQ(**cut, (std::vector<OffsetRange>{{0, 0, 7}, {1, 0, 2}, {2, 0, 1}}));
}

// The largest numbers there can be: a product of two needs more than 64 bits.
TEST(PeriodCutTest, LargeTopicsDoNotOverflow) {
  struct Silent final : OffsetsByTime {
    Result<std::vector<uint64_t>> FirstFrom(int64_t, std::span<const OffsetRange> ranges) override {
      std::vector<uint64_t> ends;
      for (const OffsetRange& range : ranges) ends.push_back(range.end);
      return ends;
    }
  } silent;
  const uint64_t size = uint64_t{1} << 61;
  const auto cut = CutPeriod(std::vector<OffsetRange>{{0, 0, size}, {1, 5, size + 5}},
                             kPeriodOffsetsMost, /*closes=*/false, silent);
  ASSERT_TRUE(cut && *cut);
  EXPECT_EQ(**cut, (std::vector<OffsetRange>{{0, 0, kPeriodOffsetsMost / 2},
                                             {1, 5, kPeriodOffsetsMost / 2 + 5}}));
}

TEST(PeriodCutTest, AQuestionWithoutAnAnswerCutsNothing) {
  Topic topic;
  topic.times = {{1, 2, 3}, {1, 2, 3}};
  topic.away = true;
  const auto cut = CutPeriod(topic.All(), 4, /*closes=*/false, topic);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tacit::stream
