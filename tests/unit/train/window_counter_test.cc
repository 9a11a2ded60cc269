// Windows lie side by side, each record in one of them, however the records come and wherever
// reading begins again; a record more or less moves one count by one.
#include "train/quality/window_counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace tacit::train {
namespace {

constexpr uint64_t kWindow = 100;

event::DeadLetter LetterAt(uint64_t offset) {
  event::DeadLetter letter;
  letter.offset = offset;
  return letter;
}

std::vector<event::DeadLetter> LettersOf(const std::set<uint64_t>& dead, uint64_t from,
                                         uint64_t to) {
  std::vector<event::DeadLetter> letters;
  for (const uint64_t offset : dead)
    if (offset >= from && offset < to) letters.push_back(LetterAt(offset));
  std::ranges::reverse(letters);
  return letters;
}

// Reads a partition from `begin` to `end` in runs of any length, and returns its windows.
std::vector<WindowEnd> Windows(WindowCounter* counter, const std::set<uint64_t>& dead,
                               uint64_t begin, uint64_t end, std::mt19937_64& random,
                               int32_t partition = 0) {
  std::vector<WindowEnd> windows;
  for (uint64_t from = begin; from < end;) {
    const uint64_t run = std::min(end, from + 1 + random() % 250);
    const auto letters = LettersOf(dead, from, run);
    while (from < run) {
      uint64_t to = run;
      if (const auto ended = counter->Take(partition, from, &to, letters))
        windows.push_back(*ended);
      EXPECT_GT(to, from);
      EXPECT_LE(to, run);
      from = to;
    }
  }
  return windows;
}

std::set<uint64_t> SomeDead(std::mt19937_64& random, uint64_t records) {
  std::set<uint64_t> dead;
  for (uint64_t offset = 0; offset < records; ++offset)
    if (random() % 3 == 0) dead.insert(offset);
  return dead;
}

TEST(WindowCounterTest, EachRecordIsCountedInOneWindow) {
  std::mt19937_64 random(1);
  const std::set<uint64_t> dead = SomeDead(random, 1050);
  WindowCounter counter(kWindow, {});
  const auto windows = Windows(&counter, dead, 0, 1050, random);
  ASSERT_EQ(windows.size(), 10u) << "the last one has not ended";
  for (uint64_t i = 0; i < windows.size(); ++i) {
    EXPECT_EQ(windows[i].ranges.at(0), (OffsetRange{0, i * kWindow, (i + 1) * kWindow}));
    EXPECT_EQ(windows[i].unreadable, LettersOf(dead, i * kWindow, (i + 1) * kWindow).size());
  }
}

// The sensitivity that is charged: the windows are the same, and one count differs, by one.
TEST(WindowCounterTest, ARecordMovesOneCountByOne) {
  std::mt19937_64 random(2);
  const std::set<uint64_t> with = SomeDead(random, 1000);
  for (const uint64_t record : {uint64_t{0}, uint64_t{99}, uint64_t{100}, uint64_t{517}}) {
    std::set<uint64_t> without = with, dead = with;
    dead.insert(record);
    without.erase(record);
    WindowCounter a(kWindow, {}), b(kWindow, {});
    const auto one = Windows(&a, dead, 0, 1000, random);
    const auto other = Windows(&b, without, 0, 1000, random);
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].ranges.at(0), other[i].ranges.at(0));
      EXPECT_EQ(one[i].unreadable - other[i].unreadable, i == record / kWindow ? 1u : 0u);
    }
  }
}

TEST(WindowCounterTest, ARecordOfTwoLettersCountsOnce) {
  WindowCounter counter(kWindow, {});
  uint64_t to = kWindow;
  const std::vector<event::DeadLetter> letters{LetterAt(7), LetterAt(9), LetterAt(7)};
  EXPECT_EQ(counter.Take(0, 0, &to, letters)->unreadable, 2u);
}

// After a start the records before the open window come again, for a learner that is further back.
TEST(WindowCounterTest, WhatWasDecidedIsNotCountedAgain) {
  std::mt19937_64 random(3);
  const std::set<uint64_t> dead = SomeDead(random, 1000);
  const std::vector<OffsetRange> next{{0, 430, 430}};
  WindowCounter counter(kWindow, next);
  const auto windows = Windows(&counter, dead, 100, 1000, random);
  ASSERT_EQ(windows.size(), 5u);
  EXPECT_EQ(windows[0].ranges.at(0), (OffsetRange{0, 430, 530}));
  EXPECT_EQ(windows[0].unreadable, LettersOf(dead, 430, 530).size());
}

TEST(WindowCounterTest, PartitionsHaveWindowsOfTheirOwn) {
  std::mt19937_64 random(4);
  const std::set<uint64_t> dead = SomeDead(random, 1000);
  WindowCounter counter(kWindow, std::vector<OffsetRange>{{5, 40, 40}});
  EXPECT_EQ(Windows(&counter, dead, 20, 90, random, 5).size(), 0u);
  EXPECT_EQ(Windows(&counter, dead, 17, 117, random, 2).size(), 1u) << "begins where it is read";
  const auto windows = Windows(&counter, dead, 90, 150, random, 5);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].ranges.at(0), (OffsetRange{5, 40, 140}));
}

// A window whose records are gone is never decided: it would be of fewer records than it says.
TEST(WindowCounterTest, AWindowThatEndsInAGapIsPassedOver) {
  WindowCounter counter(kWindow, {});
  uint64_t to = 50;
  EXPECT_FALSE(counter.Take(0, 0, &to, {}));
  to = 1000;
  const auto ended = counter.Take(0, 700, &to, {});
  EXPECT_EQ(to, 800u);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->ranges.at(0), (OffsetRange{0, 700, 800}));
}

// Takes a period of these ranges, each read in runs of any length, and returns its window.
std::optional<WindowEnd> TakePeriod(PeriodCounter* counter, const std::vector<OffsetRange>& period,
                                    const std::map<int32_t, std::set<uint64_t>>& dead,
                                    std::mt19937_64& random) {
  for (const OffsetRange& range : period)
    for (uint64_t from = range.begin; from < range.end;) {
      event::RawRecords run;
      run.partition = range.partition;
      run.first_offset = from;
      run.end.resize(std::min<uint64_t>(range.end - from, 1 + random() % 40));
      from = run.end_offset();
      std::vector<event::DeadLetter> letters =
          LettersOf(dead.at(range.partition), run.first_offset, from);
      if (!letters.empty()) letters.push_back(letters[random() % letters.size()]);
      counter->Take(run, letters);
    }
  return counter->End(period);
}

// The oracle has the set of records that were counted. A start begins a period anew, and may cut it
// elsewhere.
TEST(PeriodCounterTest, EachRecordIsCountedOnceHoweverPeriodsAreReadAgain) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::map<int32_t, std::set<uint64_t>> dead;
    for (int32_t p = 0; p < 3; ++p) dead[p] = SomeDead(random, 5000);
    PeriodCounter counter({});
    std::map<int32_t, uint64_t> learnt, decided;
    std::set<std::pair<int32_t, uint64_t>> counted;
    size_t nothing = 0;
    for (int i = 0; i < 60; ++i) {
      std::vector<OffsetRange> period;
      for (int32_t p = 0; p < 3; ++p)
        if (const uint64_t size = random() % 80; size > 0)
          period.push_back({p, learnt[p], learnt[p] + size});
      uint64_t unreadable = 0, offsets = 0;
      for (const OffsetRange& range : period)
        for (uint64_t o = range.begin; o < range.end; ++o) {
          if (!counted.emplace(range.partition, o).second) continue;
          ++offsets;
          unreadable += dead[range.partition].count(o);
          decided[range.partition] = o + 1;
        }
      const auto window = TakePeriod(&counter, period, dead, random);
      ASSERT_EQ(window.has_value(), offsets > 0);
      nothing += window ? 0 : 1;
      if (window) {
        EXPECT_EQ(window->offsets(), offsets);
        EXPECT_EQ(window->unreadable, unreadable);
      }
      if (random() % 3 > 0) {
        for (const OffsetRange& range : period) learnt[range.partition] = range.end;
        continue;
      }
      // A kill: the period was decided, and is read again.
      std::vector<OffsetRange> next;
      for (const auto& [p, end] : decided) next.push_back({p, end, end});
      counter = PeriodCounter(next);
    }
    EXPECT_GT(counted.size(), 1000u);
    EXPECT_LT(nothing, 30u);
  }
}

// Others' sums count as they say, in the window that they are of.
TEST(PeriodCounterTest, RecordsOfOthersAreCountedAsTheyWereRead) {
  const std::vector<OffsetRange> next{{1, 50, 50}};
  PeriodCounter counter(next);
  const auto sums = [&](int32_t partition, uint64_t first, uint64_t dead) {
    event::RawRecords frame;
    frame.partition = partition;
    frame.first_offset = first;
    frame.sums = {{LearnerIndex(0), "a part"}, {LearnerIndex(1), "a part"}};
    frame.summed = {.records = dead + 9, .dead = {0, dead, 0, 2}, .opted_out = 4};
    counter.Take(frame, {});
  };
  sums(1, 0, 30);
  EXPECT_FALSE(counter.End(std::vector<OffsetRange>{{1, 0, 50}}));
  sums(0, 10, 3);
  sums(0, 10, 0);
  event::RawRecords own;
  own.first_offset = 90;
  own.end.resize(10);
  counter.Take(own, LettersOf({91, 95}, 90, 100));
  auto window = counter.End(std::vector<OffsetRange>{{0, 10, 100}, {1, 50, 70}});
  ASSERT_TRUE(window);
  EXPECT_EQ(window->unreadable, 5u + 2u + 2u);
  sums(0, 100, 1);
  window = counter.End(std::vector<OffsetRange>{{0, 100, 110}});
  ASSERT_TRUE(window);
  EXPECT_EQ(window->unreadable, 3u);
}

// The sensitivity that is charged.
TEST(PeriodCounterTest, ARecordMovesOneCountByOne) {
  std::mt19937_64 random(3);
  std::map<int32_t, std::set<uint64_t>> dead{{0, SomeDead(random, 300)},
                                             {1, SomeDead(random, 300)}};
  dead[1].erase(120);
  const std::vector<std::vector<OffsetRange>> periods{
      {{0, 0, 100}, {1, 0, 50}}, {{1, 50, 150}}, {{0, 100, 300}, {1, 150, 300}}};
  std::vector<uint64_t> without, with;
  for (std::vector<uint64_t>* counts : {&without, &with}) {
    PeriodCounter counter({});
    for (const auto& period : periods)
      counts->push_back(TakePeriod(&counter, period, dead, random)->unreadable);
    dead[1].insert(120);
  }
  EXPECT_EQ(with, (std::vector<uint64_t>{without[0], without[1] + 1, without[2]}));
}

}  // namespace
}  // namespace tacit::train
