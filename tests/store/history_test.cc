#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <atomic>

#include "base/clock.h"
#include "script.h"
#include "store/rocks.h"

namespace tacit::store {
namespace {

constexpr Hash128 kAnna{1, 2}, kBert{3, 4};

class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint{}; }
  int64_t UnixMillis() const override { return now; }
  std::atomic<int64_t> now = 1'000'000;
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

  const TestFolder folder_;
  SetClock clock_;
  std::unique_ptr<EmbeddingStore> store_;
};

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
  clock_.now += 600;
  Append({{kBert, {{2, 0}}}}, 1000);
  clock_.now += 600;
  store_.reset();
  auto rocks =
      Rocks::Open(folder_.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>(), &clock_);
  ASSERT_TRUE(rocks);
  rocksdb::CompactRangeOptions all;
  all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  auto* family = (*rocks)->family(Family::kHistories);
  ASSERT_TRUE((*rocks)->db().CompactRange(all, family, nullptr, nullptr).ok());
  // The learner's step and Bert, of whom one item is left.
  const std::unique_ptr<rocksdb::Iterator> it((*rocks)->db().NewIterator({}, family));
  std::vector<size_t> bytes;
  for (it->SeekToFirst(); it->Valid(); it->Next()) bytes.push_back(it->value().size());
  constexpr size_t kSeal = 8, kHeader = 8 + 4 + 8 + 4, kItem = 4 + 8;
  EXPECT_EQ(bytes, (std::vector<size_t>{kSeal + 8, kSeal + kHeader + kItem}));
}

}  // namespace
}  // namespace tacit::store
