// Tests the part of a store that is shown to a publisher, and the outbox that keeps deltas
// for that. The script is the oracle of values, and a naive union of its rows that of rows.
#include "store/checkpoint/released.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "script.h"
#include "store/disk/rocks.h"

namespace tacit::store {
namespace {

using RowId = std::tuple<uint16_t, uint16_t, uint64_t>;  // learner, table, bucket
using ShownRows = std::map<RowId, std::vector<float>>;

class ReleasedTest : public testing::Test {
 protected:
  ReleasedTest() : options_(TestOptions(folder_)) { options_.outbox_bytes = uint64_t{1} << 30; }

  static std::optional<ShownRows> Show(const Store& store, std::optional<uint64_t> since) {
    const auto release = store.LatestRelease();
    EXPECT_TRUE(release) << release.error().message;
    ShownRows rows;
    const auto from = since ? std::optional(CommitSeq(*since)) : std::nullopt;
    const auto shown = store.ForReleasedRows(*release, from, [&](const ReleasedRow& row) -> Status {
      const bool first = rows.emplace(RowId{row.learner, row.table, row.bucket},
                                      std::vector<float>(row.floats.begin(), row.floats.end()))
                             .second;
      EXPECT_TRUE(first) << "a row is shown twice";
      return {};
    });
    EXPECT_TRUE(shown) << shown.error().message;
    if (shown && !*shown) {
      EXPECT_TRUE(rows.empty());
      return std::nullopt;
    }
    if (!since) {
      // Learner by learner the same rows are there.
      ShownRows again;
      for (const ReleasedLearner& learner : release->learners)
        EXPECT_TRUE(
            store.ForReleasedRowsOf(*release, learner.key, [&](const ReleasedRow& row) -> Status {
              EXPECT_EQ(row.learner, learner.key);
              again[{row.learner, row.table, row.bucket}] = {row.floats.begin(), row.floats.end()};
              return {};
            }));
      EXPECT_EQ(again, rows);
    }
    return rows;
  }
  // The embeddings that the snapshot serves of the rows that the script's commits (since, through]
  // have changed.
  static ShownRows Expected(const Store& store, uint64_t since, uint64_t through) {
    const auto layout = TestLearners()[0].rows;
    ShownRows rows;
    for (uint64_t seq = since + 1; seq <= through; ++seq) {
      for (const uint64_t row : Script::RowsOf(seq)) {
        const uint32_t table = layout.space.TableOf(row);
        std::vector<float> floats(layout.space.tables()[table].dim);
        EXPECT_TRUE(store.Latest()->Rows(LearnerIndex(0), {&row, 1}, floats));
        rows[{0, static_cast<uint16_t>(table), row - layout.space.tables()[table].first}] = floats;
      }
    }
    return rows;
  }
  static void Steps(Store& store, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const Status step = Script::Step(store);
      ASSERT_TRUE(step) << step.error().message;
    }
  }
  // The commits whose deltas are on disk. REQUIRES that nobody has the store open.
  std::vector<uint64_t> DeltasOnDisk() const {
    const auto rocks = Rocks::OpenReadOnly(options_.path);
    EXPECT_TRUE(rocks) << rocks.error().message;
    std::vector<uint64_t> deltas;
    const std::unique_ptr<rocksdb::Iterator> it(
        (*rocks)->db().NewIterator({}, (*rocks)->family(Family::kDeltas)));
    for (it->SeekToFirst(); it->Valid(); it->Next())
      deltas.push_back(SequenceOf(it->key().ToStringView()));
    return deltas;
  }

  TestFolder folder_;
  StoreOptions options_;
};

TEST_F(ReleasedTest, ShowsWhatCommitsHaveChangedAsTheyAreServed) {
  auto store = MustOpen(options_);
  for (uint64_t seq = 1; seq <= 9; ++seq) {
    Steps(*store, 1);
    for (uint64_t since = 0; since <= seq; ++since)
      EXPECT_EQ(Show(*store, since), Expected(*store, since, seq)) << since << " to " << seq;
    EXPECT_EQ(Show(*store, std::nullopt), Expected(*store, 0, seq));
  }
  ASSERT_TRUE(store->Settle());
  store.reset();
  store = MustOpen(options_);  // everything is folded
  for (uint64_t since = 0; since <= 9; ++since)
    EXPECT_EQ(Show(*store, since), Expected(*store, since, 9)) << since;
  EXPECT_EQ(Show(*store, std::nullopt), Expected(*store, 0, 9));
}

TEST_F(ReleasedTest, TellsTheCommitAsTheSnapshotHasIt) {
  const auto store = MustOpen(options_);
  Steps(*store, 4);
  const auto release = store->LatestRelease();
  ASSERT_TRUE(release) << release.error().message;
  EXPECT_EQ(release->tip.seq.value, 4u);
  EXPECT_EQ(release->tip.head, store->Latest()->head());
  EXPECT_EQ(release->term, store->Latest()->term());
  ASSERT_EQ(release->learners.size(), 2u);
  const ReleasedLearner& learner = release->learners[0];
  EXPECT_EQ(learner.fingerprint, options_.learners[0].promise.model_fingerprint);
  EXPECT_THAT(learner.dense, testing::ElementsAreArray(Script::DenseOf(4)));
  EXPECT_EQ(learner.dense_seq.value, 4u);
  EXPECT_EQ(*learner.released, "released by 3");
  EXPECT_EQ(learner.released_seq.value, 3u);
  EXPECT_EQ(learner.step, 0u);
  EXPECT_TRUE(release->learners[1].dense.empty());
  EXPECT_EQ(release->learners[1].released, nullptr);
}

TEST_F(ReleasedTest, WithoutAnOutboxFoldedDeltasAreGone) {
  options_.outbox_bytes = 0;
  auto store = MustOpen(options_);
  Steps(*store, 3);
  ASSERT_TRUE(store->Settle());
  EXPECT_EQ(Show(*store, 0), std::nullopt);
  EXPECT_EQ(Show(*store, std::nullopt), Expected(*store, 0, 3));
  store.reset();
  EXPECT_THAT(DeltasOnDisk(), testing::IsEmpty());
}

TEST_F(ReleasedTest, DeltasStayUntilTheyAreTaken) {
  auto store = MustOpen(options_);
  Steps(*store, 6);
  store->TakenFromOutbox(CommitSeq(4));
  Steps(*store, 2);
  ASSERT_TRUE(store->Settle());
  EXPECT_EQ(Show(*store, 3), std::nullopt);
  EXPECT_EQ(Show(*store, 4), Expected(*store, 4, 8));
  EXPECT_GT(store->stats().outbox_bytes, 0u);
  store.reset();
  EXPECT_THAT(DeltasOnDisk(), testing::ElementsAre(5, 6, 7, 8));
  // A start without an outbox lets the others go with its first fold.
  options_.outbox_bytes = 0;
  store = MustOpen(options_);
  Script::ExpectStore(*store);
  Steps(*store, 2);
  ASSERT_TRUE(store->Settle());
  EXPECT_EQ(store->stats().outbox_bytes, 0u);
  store.reset();
  EXPECT_THAT(DeltasOnDisk(), testing::IsEmpty());
}

TEST_F(ReleasedTest, TheOutboxIsBounded) {
  options_.outbox_bytes = 20'000;  // two or three of the script's deltas
  auto store = MustOpen(options_);
  Steps(*store, 12);
  ASSERT_TRUE(store->Settle());
  EXPECT_LE(store->stats().outbox_bytes, options_.outbox_bytes);
  EXPECT_GT(store->stats().outbox_bytes, 0u);
  EXPECT_EQ(Show(*store, 0), std::nullopt);
  EXPECT_EQ(Show(*store, 11), Expected(*store, 11, 12));
  EXPECT_EQ(Show(*store, std::nullopt), Expected(*store, 0, 12));
  store.reset();
  const auto deltas = DeltasOnDisk();
  EXPECT_GE(deltas.size(), 1u);
  EXPECT_LE(deltas.size(), 4u);
  EXPECT_EQ(deltas.back(), 12u);
}

// With a moving average, what is shown of a row is what reads it: at the learner's step it gives
// what the store serves. The optimiser's own floats, which lie between, are not shown.
TEST_F(ReleasedTest, AnAverageIsShownWithItsStepAndTheOptimiserIsNot) {
  constexpr uint32_t kDim = 3, kOptimizer = 2;
  constexpr float kPlant = 4242.5f;
  auto& learner = options_.learners[1];
  learner.rows = MakeLearner("next", {{"item", 100, kDim, kOptimizer + kDim + 1}}).rows;
  learner.rows.average = MovingAverage(0.9);
  const auto store = MustOpen(options_);
  WorkingRows& working = store->working_rows(LearnerIndex(1));
  for (uint32_t step = 1; step <= 3; ++step) {
    const std::vector<uint64_t> rows = {step, 50};
    std::vector<float*> places(rows.size());
    ASSERT_TRUE(working.Gather(rows, places));
    for (float* row : places) {
      for (uint32_t i = 0; i < kDim; ++i) row[i] += static_cast<float>(step + i);
      for (uint32_t i = 0; i < kOptimizer; ++i) row[kDim + i] = kPlant;
      for (uint32_t i = 0; i < kDim; ++i) row[kDim + kOptimizer + i] = 0.25f * row[i];
      row[2 * kDim + kOptimizer] = CountAsFloat(step);
    }
    working.MarkChanged(rows);
    auto dense = std::make_shared<DenseState>();
    dense->parameters = {1, 2};
    dense->optimizer = {kPlant, 0.5f, 0.75f, CountAsFloat(step)};
    CommitRequest request;
    request.learners.push_back(
        {LearnerIndex(1), working.TakeDelta(), dense, "", {TestCharge("next", step)}});
    ASSERT_TRUE(store->Commit(std::move(request), {}));
    ASSERT_TRUE(store->Flush());
  }
  const auto release = store->LatestRelease();
  ASSERT_TRUE(release);
  EXPECT_EQ(release->learners[1].step, 3u);
  EXPECT_THAT(release->learners[1].dense, testing::ElementsAre(0.5f, 0.75f));
  for (const std::optional<uint64_t> since :
       {std::optional<uint64_t>(), std::optional<uint64_t>(0)}) {
    const auto shown = Show(*store, since);
    ASSERT_TRUE(shown);
    ASSERT_EQ(shown->size(), 4u);
    for (const auto& [id, floats] : *shown) {
      ASSERT_EQ(floats.size(), 2 * kDim + 1);
      EXPECT_THAT(floats, testing::Each(testing::Ne(kPlant)));
      std::vector<float> read(kDim), served(kDim);
      const std::span<const float> row(floats);
      learner.rows.average.Read(row.first(kDim), row.subspan(kDim), 3, read);
      const uint64_t bucket = std::get<2>(id);
      ASSERT_TRUE(store->Latest()->Rows(LearnerIndex(1), {&bucket, 1}, served));
      EXPECT_EQ(read, served);
    }
  }
}

}  // namespace
}  // namespace tacit::store
