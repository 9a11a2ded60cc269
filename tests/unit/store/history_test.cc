#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <atomic>

#include "base/bytes.h"
#include "base/clock.h"
#include "script.h"
#include "store/disk/rocks.h"

namespace tacit::store {
namespace {

constexpr Hash128 kAnna{1, 2}, kBert{3, 4};

class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint{std::chrono::milliseconds(steady)}; }
  int64_t UnixMillis() const override { return now; }
  // Time passes, as both clocks see it.
  void Pass(int64_t ms) {
    now += ms;
    steady += ms;
  }
  std::atomic<int64_t> now = 1'000'000;
  std::atomic<int64_t> steady = 0;
};

class HistoryTest : public testing::Test {
 protected:
  void Open() {
    store_.reset();
    StoreOptions options = TestOptions(folder_);
    options.clock = &clock_;
    store_ = MustOpen(options);
  }
  // The next commit of the learner appends this.
  void Append(std::vector<UserHistory> appended, int64_t age_most_ms = 0,
              LearnerIndex learner = LearnerIndex(0)) {
    const uint64_t seq = store_->Latest()->version().value + 1;
    CommitRequest request;
    request.source_identity = "source";
    request.learners.push_back({learner,
                                nullptr,
                                nullptr,
                                "position",
                                {TestCharge(learner.value == 0 ? "ctr" : "next", seq)}});
    request.learners.back().histories = {
        .step = seq, .appended = std::move(appended), .items_most = 4, .age_most_ms = age_most_ms};
    ASSERT_TRUE(store_->Commit(std::move(request), {}));
    ASSERT_TRUE(store_->Flush());
  }
  std::vector<uint32_t> Read(const Hash128& user, LearnerIndex learner = LearnerIndex(0)) {
    std::vector<UserHistory> users{{.user = user, .items = {}}};
    EXPECT_TRUE(store_->ReadHistories(learner, users));
    const auto shown = store_->Latest()->History(learner, user);
    EXPECT_TRUE(shown && *shown == users[0].items);
    std::vector<uint32_t> items;
    for (const HistoryItem& item : users[0].items) items.push_back(item.item);
    return items;
  }

  // Closes the store and has every file of its histories looked through. Returns the sizes of the
  // values that are left.
  std::vector<size_t> Compact() {
    store_.reset();
    auto rocks =
        Rocks::Open(folder_.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>(), &clock_);
    EXPECT_TRUE(rocks);
    const auto known = (*rocks)->Get(Family::kMeta, meta::kKnownTime);
    EXPECT_TRUE(known && *known);
    (*rocks)->retention().Start(ByteReader(**known).Get<int64_t>());
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    auto* family = (*rocks)->family(Family::kHistories);
    EXPECT_TRUE((*rocks)->db().CompactRange(all, family, nullptr, nullptr).ok());
    const std::unique_ptr<rocksdb::Iterator> it((*rocks)->db().NewIterator({}, family));
    std::vector<size_t> bytes;
    for (it->SeekToFirst(); it->Valid(); it->Next()) bytes.push_back(it->value().size());
    return bytes;
  }

  const TestFolder folder_;
  SetClock clock_;
  std::unique_ptr<Store> store_;
};

constexpr size_t kSeal = 8, kHeader = 8 + 4 + 8 + 4, kItem = 4 + 8;
constexpr int64_t kDay = 86'400'000, kYear = 365 * kDay;

using Items = std::vector<uint32_t>;

TEST_F(HistoryTest, TheLastItemsOfEachUserAreKept) {
  Open();
  Append({{kAnna, {{1, 10}, {2, 20}}}, {kBert, {{9, 20}}}});
  Append({{kAnna, {{3, 30}, {1, 40}, {5, 40}}}});
  EXPECT_EQ(Read(kAnna), (Items{2, 3, 1, 5}));
  EXPECT_EQ(Read(kBert), (Items{9}));
  // Another learner's users are others.
  EXPECT_EQ(Read(kAnna, LearnerIndex(1)), Items{});
  Append({{kAnna, {{7, 50}}}}, 0, LearnerIndex(1));
  EXPECT_EQ(Read(kAnna, LearnerIndex(1)), (Items{7}));
  EXPECT_EQ(Read(kAnna), (Items{2, 3, 1, 5}));
  Open();
  EXPECT_EQ(Read(kAnna), (Items{2, 3, 1, 5}));
}

TEST_F(HistoryTest, MoreItemsThanAreKeptInOneCommit) {
  Open();
  Append({{kAnna, {{1, 1}}}});
  Append({{kAnna, {{2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}}}});
  EXPECT_EQ(Read(kAnna), (Items{4, 5, 6, 7}));
}

TEST_F(HistoryTest, WhatIsTooOldIsForgottenItemByItem) {
  Open();
  const int64_t now = clock_.now;
  Append({{kAnna, {{1, now - 900}, {2, now - 100}, {3, 0}}}, {kBert, {{9, now - 2000}}}}, 1000);
  EXPECT_EQ(Read(kAnna), (Items{1, 2, 3}));
  EXPECT_EQ(Read(kBert), Items{});  // too old when it came
  clock_.now = now + 500;
  EXPECT_EQ(Read(kAnna), (Items{2, 3}));
  clock_.now = now + 1000;  // without a time of its own, it has that of the commit
  EXPECT_EQ(Read(kAnna), (Items{3}));
  clock_.now = now + 1001;
  EXPECT_EQ(Read(kAnna), Items{});
}

// A record's own time may be anything: what is to come would never be forgotten.
TEST_F(HistoryTest, NothingIsFromTheFuture) {
  Open();
  Append({{kAnna, {{1, INT64_MAX}, {2, clock_.now + 50}}}}, 1000);
  EXPECT_EQ(Read(kAnna), (Items{1, 2}));
  clock_.now += 1001;
  EXPECT_EQ(Read(kAnna), Items{});
}

// More users than are read at once.
TEST_F(HistoryTest, APeriodMayBringEverybody) {
  Open();
  for (uint32_t round = 0; round < 2; ++round) {
    std::vector<UserHistory> all;
    for (uint64_t u = 0; u < 2500; ++u) all.push_back({{u, 7}, {{round, 1}}});
    Append(std::move(all));
  }
  for (uint64_t u = 0; u < 2500; u += 123) EXPECT_EQ(Read({u, 7}), (Items{0, 1}));
}

TEST_F(HistoryTest, UsersWhoDoNotComeBackLeaveTheDisk) {
  Open();
  Append({{kAnna, {{1, 0}}}, {kBert, {{1, 0}}}}, 1000);
  clock_.Pass(600);
  Append({{kBert, {{2, 0}}}}, 1000);
  clock_.Pass(300);
  Open();  // what has passed is counted while the store is open, and kept by a commit
  clock_.Pass(300);
  Append({{{5, 6}, {{1, 0}}}}, 1000, LearnerIndex(1));
  // The learner's step and Bert, of whom one item is left; then the other learner's.
  EXPECT_EQ(Compact(), (std::vector<size_t>{kSeal + 8, kSeal + kHeader + kItem, kSeal + 8,
                                            kSeal + kHeader + kItem}));
}

// Items that a clock a year ahead calls too old are not read, and come back with the right time.
TEST_F(HistoryTest, AClockThatJumpsAheadDropsNothing) {
  clock_.now = 1000 * kDay;
  Open();
  const int64_t keep = 30 * kDay;
  Append({{kAnna, {{1, 0}, {2, 0}}}, {kBert, {{9, 0}}}}, keep);
  clock_.now += kYear;
  EXPECT_EQ(Read(kAnna), Items{});
  Append({{kAnna, {{3, 0}}}}, keep);
  for (int commit = 0; commit < 4; ++commit) {
    clock_.Pass(60'000);
    Append({{{7, 7}, {{1, 0}}}}, keep);
  }
  Open();  // and no start believes it either
  clock_.Pass(60'000);
  Append({{{5, 6}, {{1, 0}}}}, keep);
  EXPECT_EQ(Compact().size(), 5u);  // the step, and four users
  clock_.now -= kYear;
  Open();
  EXPECT_EQ(Read(kAnna), (Items{1, 2, 3}));
  EXPECT_EQ(Read(kBert), (Items{9}));
}

// Items that came under a clock that was ahead are of no later time than it is, once it is set
// back.
TEST_F(HistoryTest, NothingStaysForThatTheClockWasAhead) {
  clock_.now = 1000 * kDay;
  Open();
  Append({{kAnna, {{1, 0}}}}, 30 * kDay);
  clock_.now += kYear;
  Append({{kAnna, {{2, 0}}}}, 30 * kDay);
  clock_.now -= kYear;
  Append({{kAnna, {{3, 0}}}}, 30 * kDay);
  EXPECT_EQ(Read(kAnna), (Items{1, 2, 3}));
  clock_.Pass(31 * kDay);
  EXPECT_EQ(Read(kAnna), Items{});
  Append({{kBert, {{3, 0}}}}, 30 * kDay);
  EXPECT_EQ(Compact().size(), 2u);  // the step, and Bert
}

TEST_F(HistoryTest, AClockThatJumpsBackDropsNothing) {
  clock_.now = 1000 * kDay;
  Open();
  Append({{kAnna, {{1, 0}}}}, 30 * kDay);
  clock_.now -= kYear;
  Append({{kAnna, {{2, 0}}}}, 30 * kDay);
  EXPECT_EQ(Compact().size(), 2u);
  clock_.now += kYear;
  Open();
  Append({{kAnna, {{3, 0}}}}, 30 * kDay);
  const std::vector<uint32_t> items = Read(kAnna);
  EXPECT_EQ(items.back(), 3u);
}

// After a long stop the stream itself shows that time has passed.
TEST_F(HistoryTest, AStopIsMadeGoodByTheStreamsOwnTimes) {
  clock_.now = 1000 * kDay;
  Open();
  Append({{kAnna, {{1, 0}}}}, 30 * kDay);
  clock_.now += 100 * kDay;  // the store was closed; the steady clock began anew
  Open();
  Append({{kBert, {{1, clock_.now}}}}, 30 * kDay);
  EXPECT_EQ(Compact().size(), 2u);  // the step, and Bert
}

// Without such times it is made good at twice the pace of time.
TEST_F(HistoryTest, AStopIsMadeGoodInTime) {
  clock_.now = 1000 * kDay;
  Open();
  Append({{kAnna, {{1, 0}}}}, 30 * kDay);
  clock_.now += 40 * kDay;
  Open();
  Append({{kBert, {{1, 0}}}}, 30 * kDay);
  EXPECT_EQ(Compact().size(), 3u);
  Open();
  clock_.Pass(16 * kDay);
  Append({{kBert, {{1, 0}}}}, 30 * kDay);
  EXPECT_EQ(Compact().size(), 2u);
}

}  // namespace
}  // namespace tacit::store
