#include "store/rows/row_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <random>
#include <set>

#include "script.h"

namespace tacit::store {
namespace {

// A store in memory: commits queue up and are folded when asked for.
class FakeBacking final : public RowBacking {
 public:
  explicit FakeBacking(const RowLayout* layout) : rows_(layout) {}

  Status Read(std::span<const uint64_t> rows, std::span<float* const> out) override {
    const std::lock_guard lock(mutex_);
    ++reads_;
    if (fail_) return Fail(ErrorCode::kIo, "asked to");
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = rows_.Row(rows[i]);
      std::copy(row.begin(), row.end(), out[i]);
    }
    return {};
  }
  CommitSeq next() const override { return CommitSeq(deltas_.size() + 1); }
  CommitSeq folded() const override { return CommitSeq(folded_); }
  void RequestFold() override { ++requests_; }
  void FoldThrough(CommitSeq seq) override {
    ++waits_;
    while (folded_ < seq.value) FoldOne();
  }

  void Enqueue(std::shared_ptr<const RowDelta> delta) { deltas_.push_back(std::move(delta)); }
  void FoldOne() {
    const std::lock_guard lock(mutex_);
    // Like the store, this lets go of a delta once it is folded.
    const auto folding = std::exchange(deltas_[folded_++], nullptr);
    const RowDelta& delta = *folding;
    EXPECT_TRUE(Arrive(delta));
    for (size_t i = 0; i < delta.size(); ++i) rows_.Set(delta.rows[i], delta.Row(i));
  }
  bool HasUnfolded() const { return folded_ < deltas_.size(); }
  CommitSeq enqueued() const { return CommitSeq(deltas_.size()); }

  std::atomic<bool> fail_ = false;
  int waits_ = 0, requests_ = 0;
  std::atomic<int> reads_ = 0;

 private:
  std::mutex mutex_;  // the fetcher's threads read beside the test's folds
  RowModel rows_;
  uint64_t folded_ = 0;
  std::vector<std::shared_ptr<const RowDelta>> deltas_;
};

std::vector<uint64_t> SomeRows(std::mt19937_64& random, uint64_t space, size_t most) {
  std::set<uint64_t> rows;
  const size_t count = random() % (most + 1);
  while (rows.size() < count) rows.insert(random() % space);
  return {rows.begin(), rows.end()};
}

void TakeAndEnqueue(RowCache& cache, FakeBacking& backing) {
  auto delta = cache.TakeDelta();
  backing.Enqueue(delta);
  cache.Enqueued(delta.get(), backing.enqueued());
}

// Random gathers, changes, commits and folds; every row read must be the newest. With `threads`
// rows are announced too: those of a gather to come, some of which another gather takes before it,
// or changes, or which are never asked for. Returns how many rows were read ahead.
uint64_t RunAgainstModel(uint64_t seed, uint64_t budget, std::optional<size_t> threads = {}) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " budget " << budget);
  const auto learner = MakeLearner("x", {{"a", 60, 4, 1}, {"b", 3, 2, 0}, {"c", 150, 7, 7}});
  const RowLayout& layout = learner.rows;
  FakeBacking backing(&layout);
  std::optional<RowFetcher> fetcher;
  if (threads) fetcher.emplace(*threads);
  RowCache cache(layout, budget, backing, fetcher ? &*fetcher : nullptr);
  RowModel model(&layout);
  std::mt19937_64 random(seed);
  std::vector<uint64_t> announced, next;
  const auto run = [&](int step) {
    const bool as_announced = random() % 3 != 0;
    const auto rows = as_announced ? announced : SomeRows(random, layout.space.rows(), 30);
    if (as_announced || random() % 4 == 0) {
      announced = std::exchange(next, SomeRows(random, layout.space.rows(), 30));
      std::vector<uint64_t> with_repeats = next;
      with_repeats.insert(with_repeats.end(), next.rbegin(), next.rend());
      cache.Announce(with_repeats);
    }
    std::vector<float*> places(rows.size(), nullptr);
    ASSERT_TRUE(cache.Gather(rows, places));
    std::vector<uint64_t> changed;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t floats = layout.RowFloats(layout.space.TableOf(rows[i]));
      const std::vector<float> got(places[i], places[i] + floats);
      ASSERT_EQ(got, model.Row(rows[i])) << "row " << rows[i] << " at step " << step;
      if (random() % 2) continue;
      for (uint32_t j = 0; j < floats; ++j) places[i][j] += static_cast<float>(random() % 16);
      model.Set(rows[i], {places[i], floats});
      changed.push_back(rows[i]);
    }
    cache.MarkChanged(changed);
    if (random() % 4 == 0) TakeAndEnqueue(cache, backing);
    if (random() % 6 == 0 && backing.HasUnfolded()) backing.FoldOne();
  };
  for (int step = 0; step < 1500 && !testing::Test::HasFatalFailure(); ++step) run(step);
  return cache.stats().read_ahead;
}

TEST(RowCacheTest, EqualsANaiveMapUnderAnyBudget) {
  const uint64_t seed = std::random_device()();
  for (uint64_t budget : {0, 500, 3000, 8000, 1 << 20}) RunAgainstModel(seed + budget, budget);
}

TEST(RowCacheTest, RowsReadAheadEqualANaiveMapUnderAnyBudget) {
  const uint64_t seed = std::random_device()();
  for (const size_t threads : {0, 1, 3}) {
    for (uint64_t budget : {0, 500, 3000, 8000}) {
      const uint64_t ahead = RunAgainstModel(seed + budget + threads, budget, threads);
      if (budget >= 3000) {
        EXPECT_GT(ahead, 300u) << "of budget " << budget;
      }
    }
  }
}

// Rows are read once, whether the threads or the gather come first, in pieces.
TEST(RowCacheTest, ManyRowsAreReadInPiecesAndOnce) {
  const auto learner = MakeLearner("x", {{"a", 100000, 4, 0}});
  std::vector<uint64_t> rows(5000);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 7 * i;
  std::vector<float*> places(rows.size());
  for (const bool announces : {false, true}) {
    FakeBacking backing(&learner.rows);
    RowFetcher fetcher(2);
    RowCache cache(learner.rows, 1 << 20, backing, &fetcher);
    const std::vector<uint64_t> first{1};
    ASSERT_TRUE(cache.Gather(first, std::span(places).first(1)));  // a cold cache looks ahead
    if (announces) cache.Announce(rows);
    ASSERT_TRUE(cache.Gather(rows, places));
    EXPECT_EQ(backing.reads_, 1 + (5000 + 255) / 256);
    EXPECT_EQ(cache.stats().read_ahead, announces ? 5000u : 0);
    for (size_t i = 0; i < rows.size(); i += 97)
      ASSERT_EQ(places[i][0], RowModel(&learner.rows).Row(rows[i])[0]);
  }
}

TEST(RowCacheTest, WhatIsInMemoryIsNotLookedForAhead) {
  const auto learner = MakeLearner("x", {{"a", 1000, 4, 0}});
  FakeBacking backing(&learner.rows);
  RowFetcher fetcher(1);
  RowCache cache(learner.rows, 1 << 20, backing, &fetcher);
  std::vector<uint64_t> rows(200);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::vector<float*> places(rows.size());
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(cache.Gather(rows, places));
    cache.Announce(rows);
  }
  EXPECT_EQ(backing.reads_, 1);
}

TEST(RowCacheTest, AFailedReadAheadFailsTheGatherAlone) {
  const auto learner = MakeLearner("x", {{"a", 10000, 4, 0}});
  FakeBacking backing(&learner.rows);
  RowFetcher fetcher(1);
  RowCache cache(learner.rows, 1 << 20, backing, &fetcher);
  std::vector<uint64_t> rows(1000);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::vector<float*> places(rows.size());
  const std::vector<uint64_t> other{5000};
  ASSERT_TRUE(cache.Gather(other, std::span(places).first(1)));
  backing.fail_ = true;
  cache.Announce(rows);
  EXPECT_FALSE(cache.Gather(rows, places));
  backing.fail_ = false;
  cache.Announce(rows);
  ASSERT_TRUE(cache.Gather(rows, places));
  EXPECT_EQ(places[999][0], RowModel(&learner.rows).Row(999)[0]);
}

// Rows that change elsewhere, as those of a GPU do, beside rows that change here. Each delta must
// hold what has changed since the one before, as it was when that was taken, though it may arrive
// after later changes; and every row read must be the newest. Returns how many deltas were on their
// way when they were taken.
int RunWithChangesElsewhere(uint64_t seed, uint64_t budget, bool releases) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " budget " << budget);
  const auto learner = MakeLearner("x", {{"a", 60, 4, 1}, {"b", 3, 2, 0}, {"c", 150, 7, 7}});
  const RowLayout& layout = learner.rows;
  FakeBacking backing(&layout);
  RowFetcher fetcher(1);
  RowCache cache(layout, budget, backing, &fetcher);
  RowModel model(&layout);
  std::mt19937_64 random(seed);
  std::set<uint64_t> changed;  // since the last delta
  std::vector<std::pair<std::shared_ptr<const RowDelta>, std::map<uint64_t, std::vector<float>>>>
      taken;
  int on_their_way = 0;
  const auto change = [&](uint64_t row) {
    std::vector<float> floats = model.Row(row);
    for (float& number : floats) number += static_cast<float>(random() % 16);
    model.Set(row, floats);
    changed.insert(row);
    return floats;
  };
  const auto elsewhere = [&] {
    auto now = std::make_shared<RowDelta>();
    for (const uint64_t row : SomeRows(random, layout.space.rows(), 40)) {
      const auto floats = change(row);
      now->rows.push_back(row);
      now->floats.insert(now->floats.end(), floats.begin(), floats.end());
      now->end.push_back(now->floats.size());
    }
    ASSERT_TRUE(cache.Expect(std::make_shared<RowArrival>([now](RowDelta* delta) {
      delta->rows = now->rows;
      delta->end = now->end;
      delta->floats = now->floats;
      return Status{};
    })));
  };
  const auto here = [&] {
    const auto rows = SomeRows(random, layout.space.rows(), 30);
    if (random() % 2) cache.Announce(rows);
    std::vector<float*> places(rows.size(), nullptr);
    ASSERT_TRUE(cache.Gather(rows, places));
    std::vector<uint64_t> marked;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t floats = layout.RowFloats(layout.space.TableOf(rows[i]));
      ASSERT_EQ(std::vector<float>(places[i], places[i] + floats), model.Row(rows[i]))
          << "row " << rows[i];
      if (random() % 8) continue;
      std::ranges::copy(change(rows[i]), places[i]);
      marked.push_back(rows[i]);
    }
    cache.MarkChanged(marked);
  };
  const auto take = [&] {
    auto delta = cache.TakeDelta();
    on_their_way += delta->arrival != nullptr;
    std::map<uint64_t, std::vector<float>> wanted;
    for (const uint64_t row : std::exchange(changed, {})) wanted[row] = model.Row(row);
    taken.emplace_back(delta, std::move(wanted));
    backing.Enqueue(delta);
    cache.Enqueued(delta.get(), backing.enqueued());
  };
  const auto check = [&] {
    for (const auto& [delta, wanted] : taken) {
      ASSERT_TRUE(Arrive(*delta));
      std::map<uint64_t, std::vector<float>> got;
      for (size_t i = 0; i < delta->size(); ++i)
        got[delta->rows[i]].assign(delta->Row(i).begin(), delta->Row(i).end());
      ASSERT_EQ(got, wanted);
    }
    taken.clear();
  };
  for (int step = 0; step < 1500 && !testing::Test::HasFatalFailure(); ++step) {
    if (random() % 3 == 0) elsewhere();
    if (random() % 3 == 0) here();
    if (random() % 3 == 0) take();
    if (random() % 4 == 0) check();
    if (releases && random() % 8 == 0) cache.Release();
    if (random() % 5 == 0 && backing.HasUnfolded()) backing.FoldOne();
  }
  return on_their_way;
}

TEST(RowCacheTest, RowsChangedElsewhereEqualANaiveMapUnderAnyBudget) {
  const uint64_t seed = std::random_device()();
  for (const uint64_t budget : {0, 500, 3000, 1 << 20})
    for (const bool releases : {false, true})
      EXPECT_GT(RunWithChangesElsewhere(seed + budget, budget, releases), 10) << "of some 80";
}

// A row in the table was gathered once, and nobody gathers any more.
TEST(RowCacheTest, DeltasOfRowsElsewhereAreLetGoThoughNobodyGathers) {
  const auto learner = MakeLearner("x", {{"a", 1000, 4, 0}});
  FakeBacking backing(&learner.rows);
  RowCache cache(learner.rows, 1 << 20, backing);
  const uint64_t row = 5;
  float* place = nullptr;
  ASSERT_TRUE(cache.Gather({&row, 1}, {&place, 1}));
  std::vector<std::weak_ptr<const RowDelta>> deltas;
  for (int commit = 0; commit < 9; ++commit) {
    ASSERT_TRUE(cache.Expect(std::make_shared<RowArrival>([=](RowDelta* delta) {
      delta->rows = {row};
      delta->end = {4};
      delta->floats.assign(4, static_cast<float>(commit));
      return Status{};
    })));
    auto delta = cache.TakeDelta();
    EXPECT_NE(delta->arrival, nullptr);
    deltas.push_back(delta);
    backing.Enqueue(delta);
    cache.Enqueued(delta.get(), backing.enqueued());
    delta.reset();
    backing.FoldOne();
    const auto kept = std::ranges::count_if(deltas, [](const auto& one) { return !one.expired(); });
    EXPECT_LE(kept, 1) << "after commit " << commit;
  }
  ASSERT_TRUE(cache.Gather({&row, 1}, {&place, 1}));
  EXPECT_EQ(place[0], 8);
}

TEST(RowCacheTest, RowsThatDoNotArriveFailTheGatherAndTheDelta) {
  const auto learner = MakeLearner("x", {{"a", 1000, 4, 0}});
  FakeBacking backing(&learner.rows);
  RowCache cache(learner.rows, 1 << 20, backing);
  const uint64_t row = 5;
  float* place = nullptr;
  ASSERT_TRUE(cache.Gather({&row, 1}, {&place, 1}));
  ASSERT_TRUE(cache.Expect(std::make_shared<RowArrival>(
      [](RowDelta*) { return Fail(ErrorCode::kIo, "the device is lost"); })));
  const auto delta = cache.TakeDelta();
  EXPECT_FALSE(cache.Gather({&row, 1}, {&place, 1}));
  const Status arrived = Arrive(*delta);
  ASSERT_FALSE(arrived);
  EXPECT_EQ(arrived.error().message, "the device is lost");
}

TEST(RowCacheTest, KeepsToItsBudgetOnceRowsAreFolded) {
  const auto learner = MakeLearner("x", {{"a", 10000, 16, 16}});
  FakeBacking backing(&learner.rows);
  const uint64_t budget = 64 << 10;
  RowCache cache(learner.rows, budget, backing);
  std::mt19937_64 random(1);
  for (int step = 0; step < 200; ++step) {
    const auto rows = SomeRows(random, 10000, 100);
    std::vector<float*> places(rows.size());
    ASSERT_TRUE(cache.Gather(rows, places));
    cache.MarkChanged(rows);
    TakeAndEnqueue(cache, backing);
    EXPECT_LE(cache.stats().bytes, budget);
  }
  EXPECT_GT(cache.stats().evictions, 0u);
  EXPECT_GT(backing.waits_, 0);
  EXPECT_GT(backing.requests_, 0);
}

TEST(RowCacheTest, RowsChangedAndNotTakenGoOverTheBudget) {
  const auto learner = MakeLearner("x", {{"a", 1000, 16, 0}});
  FakeBacking backing(&learner.rows);
  RowCache cache(learner.rows, 1000, backing);
  for (uint64_t row = 0; row < 1000; ++row) {
    float* place = nullptr;
    ASSERT_TRUE(cache.Gather({&row, 1}, {&place, 1}));
    place[0] = static_cast<float>(row);
    cache.MarkChanged({&row, 1});
  }
  EXPECT_EQ(cache.stats().pinned_rows, 1000u);
  EXPECT_EQ(backing.waits_, 0);
  const auto delta = cache.TakeDelta();
  ASSERT_EQ(delta->size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(delta->Row(i)[0], static_cast<float>(i));
}

TEST(RowCacheTest, ARowChangedAgainStaysUntilItsLastCommitIsFolded) {
  const auto learner = MakeLearner("x", {{"a", 1000, 4, 0}});
  FakeBacking backing(&learner.rows);
  RowCache cache(learner.rows, 0, backing);
  const uint64_t row = 5;
  float* place = nullptr;
  for (int change = 1; change <= 2; ++change) {
    ASSERT_TRUE(cache.Gather({&row, 1}, {&place, 1}));
    place[0] = static_cast<float>(change);
    cache.MarkChanged({&row, 1});
    TakeAndEnqueue(cache, backing);
  }
  backing.FoldOne();  // the first change only
  EXPECT_EQ(cache.stats().pinned_rows, 1u);
  ASSERT_TRUE(cache.Gather({&row, 1}, {&place, 1}));
  EXPECT_EQ(place[0], 2.0f);
}

TEST(RowCacheTest, AFailedReadLeavesNoRowBehind) {
  const auto learner = MakeLearner("x", {{"a", 1000, 4, 0}});
  FakeBacking backing(&learner.rows);
  RowCache cache(learner.rows, 1 << 20, backing);
  const std::vector<uint64_t> rows{1, 2, 3};
  std::vector<float*> places(3);
  backing.fail_ = true;
  EXPECT_FALSE(cache.Gather(rows, places));
  EXPECT_EQ(cache.stats().bytes, 0u);
  backing.fail_ = false;
  ASSERT_TRUE(cache.Gather(rows, places));
  EXPECT_EQ(places[1][0], RowModel(&learner.rows).Row(2)[0]);
}

}  // namespace
}  // namespace tacit::store
