// The parts of the stream's watch, each against counting everything.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "train/watch/known_values.h"
#include "train/watch/missed_users.h"
#include "train/watch/repeated_records.h"
#include "train/watch/usual.h"
#include "unit/train/made_stream.h"

namespace tacit::train {
namespace {

TEST(UsualTest, ADriftIsFollowedAndAJumpIsNot) {
  Usual usual(0.1);
  for (int i = 0; i < 200; ++i) {
    usual.See(0.2 + 0.003 * i);
    ASSERT_FALSE(usual.outside()) << i;
  }
  const double before = usual.mean();
  usual.See(0.2);
  EXPECT_TRUE(usual.outside());
  EXPECT_FALSE(usual.unusual()) << "one figure may be chance";
  usual.See(0.2);
  EXPECT_TRUE(usual.unusual());
  EXPECT_EQ(usual.mean(), before);
  usual.See(before);
  EXPECT_FALSE(usual.unusual());
}

TEST(UsualTest, AFigureThatVariesMayVary) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  Usual usual(0.1);
  for (int i = 0; i < 5000; ++i) {
    usual.See(uniform(random));
    ASSERT_FALSE(usual.unusual()) << i;
  }
  usual.See(9);
  usual.See(9);
  EXPECT_TRUE(usual.unusual());
}

TEST(UsualTest, WhatStaysBecomesUsual) {
  Usual usual(0.1);
  for (int i = 0; i < 10; ++i) usual.See(0);
  int outside = 0;
  for (; usual.See(1), usual.outside(); ++outside) ASSERT_LT(outside, 1000);
  EXPECT_EQ(outside, 59);
  EXPECT_EQ(usual.mean(), 1);
}

// The first windows of a stream are not like the others: half an hour later they are no excuse.
TEST(UsualTest, ABeginningIsForgotten) {
  Usual usual(0.1);
  for (const double figure : {.35, .4, .35, .11, .09, .08, .04}) usual.See(figure);
  for (int i = 0; i < 20; ++i) usual.See(0.01 + 0.005 * (i % 2));
  EXPECT_NEAR(usual.mean(), 0.0125, 0.001);
  usual.See(0.2);
  usual.See(0.2);
  EXPECT_TRUE(usual.unusual());
}

TEST(KnownValuesTest, CountsWhatASetCounts) {
  std::mt19937_64 random(2);
  KnownValues known;
  std::set<uint64_t> naive;
  for (int window = 0; window < 60; ++window) {
    const bool keep = window % 3 != 2;
    std::map<uint64_t, int> fresh;
    std::set<uint64_t> seen;
    int news = 0;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t value =
          random() % 500 + (window > 30 ? 10 * static_cast<uint64_t>(window) : 0);
      known.See(value);
      seen.insert(value);
      if (naive.contains(value)) continue;
      ++news;
      ++fresh[value];
    }
    int most = 0;
    for (const auto& [value, count] : fresh) most = std::max(most, count);
    // Two values may share a bit, and a cell holds several.
    EXPECT_NEAR(known.new_share(), (news - most) / 2000., 0.05) << window;
    known.EndWindow(keep);
    if (keep) naive.insert(seen.begin(), seen.end());
  }
}

TEST(MissedUsersTest, TellsTheShareThatStaysAway) {
  std::mt19937_64 random(3);
  MissedUsers missed;
  const auto window = [&](uint64_t from) {
    for (int i = 0; i < 20'000; ++i)
      missed.See("user-" + std::to_string(from + random() % (1000 - from)));
    return missed.EndWindow();
  };
  EXPECT_EQ(window(0), std::nullopt) << "nothing is expected yet";
  for (int i = 0; i < 5; ++i) EXPECT_LT(*window(0), 0.01);
  EXPECT_NEAR(*window(300), 0.3, 0.01);
}

// A user who happens to come in a first window of a moment does not come that often.
TEST(MissedUsersTest, AShortFirstWindowExpectsNobody) {
  std::mt19937_64 random(5);
  MissedUsers missed;
  const auto window = [&](int records) {
    for (int i = 0; i < records; ++i)
      missed.See("user-" + std::to_string(random() % 300 * (random() % 300) / 60));
    return missed.EndWindow();
  };
  window(2000);
  window(10'000);
  for (int i = 0; i < 5; ++i) EXPECT_LT(window(10'000).value_or(0), 0.05) << "window " << i;
}

// A sample of very many users is followed, and its share is that of all.
TEST(MissedUsersTest, ASampleOfManyUsersIsEnough) {
  std::mt19937_64 random(4);
  MissedUsers missed;
  const auto window = [&](uint64_t from) {
    for (int i = 0; i < 400'000; ++i)
      missed.See("user-" + std::to_string(from + random() % (40'000 - from)));
    return missed.EndWindow();
  };
  for (int i = 0; i < 3; ++i) window(0);
  EXPECT_NEAR(*window(20'000), 0.5, 0.05);
}

TEST(RepeatedRecordsTest, TellsTheShareThatCameBefore) {
  for (const double share : {0., .25, 1.}) {
    MadeStream stream(5);
    MadeStream::Event event;
    event.share = share;
    event.twice = true;
    RepeatedRecords repeats;
    std::optional<double> seen;
    for (int window = 0; window < 20; ++window) {
      stream.Next(5000, event);
      for (size_t i = 0; i < stream.batch().size(); ++i) repeats.See(stream.batch(), i);
      if (const auto told = repeats.EndWindow()) seen = told;
    }
    ASSERT_TRUE(seen) << share;
    // The records that come twice are counted twice.
    EXPECT_NEAR(*seen, share / (1 + share), 0.08) << share;
  }
}

// The copies come 150,000 records later: only a thin sample remembers that long.
TEST(RepeatedRecordsTest, OneLongWindowIsFollowedByAThinSample) {
  constexpr uint64_t kRecords = 150'000;
  std::mt19937_64 random(3);
  event::Batch batch;
  batch.slots = 1;
  for (uint64_t i = 0; i < kRecords; ++i) {
    batch.label.push_back(0);
    batch.row.push_back(random());
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
  }
  RepeatedRecords repeats;
  for (int time = 0; time < 2; ++time)
    for (size_t i = 0; i < batch.size(); ++i) repeats.See(batch, i);
  const std::optional<double> share = repeats.EndWindow();
  ASSERT_TRUE(share);
  EXPECT_NEAR(*share, 0.5, 0.12);  // of the sample, some are forgotten
}

}  // namespace
}  // namespace tacit::train
