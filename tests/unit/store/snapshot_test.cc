#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "script.h"
#include "support/eventually.h"
#include "support/files_below.h"

namespace tacit::store {
namespace {

TEST(SnapshotTest, StaysAsOfItsCommitWhileFoldsGoOn) {
  const TestFolder folder;
  StoreOptions options = TestOptions(folder);
  options.fold_after_commits = 1;
  const auto store = MustOpen(options);
  std::vector<std::shared_ptr<const Snapshot>> held{store->Latest()};
  for (int commit = 1; commit <= 12; ++commit) {
    ASSERT_TRUE(Script::Step(*store));
    held.push_back(store->Latest());
    for (const auto& snapshot : held) Script::ExpectSnapshot(*snapshot);
  }
  for (size_t version = 0; version < held.size(); ++version)
    EXPECT_EQ(held[version]->version().value, version);
  EXPECT_GT(store->stats().folded_rows, 0u);
}

// The database's account of its tables is that of the disk.
TEST(EngineStatsTest, TablesAreTheFilesThereAre) {
  const TestFolder folder;
  const auto store = MustOpen(TestOptions(folder));
  EXPECT_EQ(store->engine_stats().table_bytes, 0u);
  for (int commit = 1; commit <= 12; ++commit) ASSERT_TRUE(Script::Step(*store));
  EXPECT_GT(store->engine_stats().memtable_bytes, 0u);
  ASSERT_TRUE(store->Settle());
  Store::EngineStats stats;
  uint64_t bytes = 0;
  // Files that are no longer used are deleted by RocksDB's own threads.
  EXPECT_TRUE(test::Eventually("unused files are gone",
                               [&] {
                                 bytes = test::BytesBelow(folder.root() + "/store", {".sst"});
                                 stats = store->engine_stats();
                                 return stats.table_bytes == bytes;
                               }))
      << stats.table_bytes << " of " << bytes;
  EXPECT_GT(bytes, 0u);
  EXPECT_GT(stats.level0_files, 0u);
  EXPECT_GT(stats.block_cache_bytes, 0u);
  EXPECT_FALSE(stats.writes_stopped);
  EXPECT_EQ(stats.background_errors, 0u);
}

TEST(SnapshotTest, OutlivesItsStore) {
  const TestFolder folder;
  auto store = MustOpen(TestOptions(folder));
  for (int commit = 0; commit < 3; ++commit) ASSERT_TRUE(Script::Step(*store));
  const auto snapshot = store->Latest();
  store.reset();
  Script::ExpectSnapshot(*snapshot);
}

TEST(SnapshotTest, AnswersRepeatedRowsAndRefusesUnknownOnes) {
  const TestFolder folder;
  auto store = MustOpen(TestOptions(folder));
  ASSERT_TRUE(Script::Step(*store));
  const std::vector<uint64_t> rows{6, 1, 6, 39};
  std::vector<float> unfolded(16), out(16);
  ASSERT_TRUE(store->Latest()->Rows(LearnerIndex(0), rows, unfolded));
  store.reset();
  store = MustOpen(TestOptions(folder));  // folds
  const auto snapshot = store->Latest();
  ASSERT_TRUE(snapshot->Rows(LearnerIndex(0), rows, out));
  EXPECT_EQ(out, unfolded);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 4, out.begin() + 8));
  const std::vector<uint64_t> beyond{240};
  const Status status = snapshot->Rows(LearnerIndex(0), beyond, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
}

// All that a reader beside a living owner sees is one whole commit.
TEST(SnapshotTest, ReadOnlyOpenersSeeWholeCommitsOfALivingStore) {
  const TestFolder folder;
  StoreOptions options = TestOptions(folder);
  options.fold_after_commits = 1;
  const auto store = MustOpen(options);
  ASSERT_TRUE(Script::Step(*store));
  // A reader tries again while the owner folds, but not for ever: at most this many commits come
  // while one looks, however slow the machine is.
  constexpr uint64_t kCommitsALook = 10;
  std::atomic<uint64_t> looks = 0;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      if (store->Latest()->version().value < (looks + 1) * kCommitsALook)
        ASSERT_TRUE(Script::Step(*store));
      else
        std::this_thread::yield();
    }
  });
  uint64_t newest = 0;
  const auto look = [&] {
    ++looks;
    const auto reader = OpenReadOnly(folder.store(), folder.witness(), options.learners);
    EXPECT_TRUE(reader) << reader.error().message;
    if (!reader) return;
    Script::ExpectSnapshot(*reader->snapshot);
    EXPECT_GE(reader->snapshot->version().value, newest);
    newest = reader->snapshot->version().value;
    EXPECT_TRUE(privacy::VerifyChain(reader->entries));
  };
  EXPECT_TRUE(test::Eventually("readers have seen the store go on", [&] {
    look();
    return (looks >= 15 && newest > 1) || HasFailure();
  }));
  stop = true;
  writer.join();
}

// Nothing holds the owner up here: it commits and folds as fast as it can.
TEST(SnapshotTest, AReaderNeedsNoPauseOfTheOwner) {
  const TestFolder folder;
  StoreOptions options = TestOptions(folder);
  options.fold_after_commits = 1;
  const auto store = MustOpen(options);
  ASSERT_TRUE(Script::Step(*store));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) ASSERT_TRUE(Script::Step(*store));
  });
  uint64_t newest = 0;
  for (int look = 0; look < 12; ++look) {
    const auto reader = OpenReadOnly(folder.store(), folder.witness(), options.learners);
    EXPECT_TRUE(reader) << reader.error().message;
    if (!reader) break;
    EXPECT_GE(reader->snapshot->version().value, newest);
    newest = reader->snapshot->version().value;
    Script::ExpectLedger(*reader->snapshot);
    if (look % 4 == 0) Script::ExpectSnapshot(*reader->snapshot);
  }
  stop = true;
  writer.join();
}

// The average at step `to` of weights that stood still since step `from`, computed a step at a
// time.
double AverageAt(double weight, double average, uint32_t from, uint32_t to, double decay) {
  double sum = 0, weights = 0;  // of decay^(steps since), over all steps so far
  for (uint32_t step = 1; step <= to; ++step) {
    weights = decay * weights + 1;
    sum = step == from ? average * weights : decay * sum + weight;
  }
  return weights == 0 ? weight : sum / weights;
}

// Rows are served as they are on average at the learner's last step, not at their own last write,
// wherever they lie: in an unfolded commit, in a file, or nowhere yet.
TEST(SnapshotTest, ServesTheMovingAverageAsOfItsCommit) {
  constexpr double kDecay = 0.9;
  constexpr uint32_t kDim = 3, kRows = 50, kState = 2 + kDim + 1;
  const TestFolder folder;
  StoreOptions options = TestOptions(folder);
  options.learners = {MakeLearner("ctr", {{"site", kRows, kDim, kState}})};
  const LearnerLayout unaveraged = options.learners[0];
  options.learners[0].rows.average = MovingAverage(kDecay);
  auto store = MustOpen(options);
  std::vector<std::vector<float>> written(kRows);
  std::mt19937 random(6);
  const auto number = [&] { return static_cast<float>(random() % 1000) / 100; };
  const auto expect = [&](const Snapshot& snapshot, uint32_t step) {
    std::vector<uint64_t> ids(kRows);
    for (uint64_t row = 0; row < kRows; ++row) ids[row] = row;
    std::vector<float> served(kRows * kDim), initial(kDim);
    ASSERT_TRUE(snapshot.Rows(LearnerIndex(0), ids, served));
    for (uint64_t row = 0; row < kRows; ++row) {
      const std::vector<float>& floats = written[row];
      InitialRow(options.learners[0].rows.seed, row, 0.25f, initial);
      for (size_t i = 0; i < kDim; ++i)
        ASSERT_NEAR(served[row * kDim + i],
                    floats.empty() ? initial[i]
                                   : AverageAt(floats[i], floats[kDim + 2 + i],
                                               CountOf(floats.back()), step, kDecay),
                    1e-5)
            << "row " << row << " at step " << step;
    }
    const auto dense = snapshot.ServedDense(LearnerIndex(0));
    ASSERT_EQ(dense.size(), 2u);
    EXPECT_EQ(dense[1], -static_cast<float>(step));
  };
  uint32_t step = 0;
  for (uint64_t commit = 1; commit <= 7; ++commit) {
    const uint32_t steps = 1 + random() % 20;
    step += steps;
    std::vector<uint64_t> rows;
    for (uint64_t row = random() % 5; row < kRows; row += 1 + random() % 9) rows.push_back(row);
    std::vector<float*> places(rows.size());
    ASSERT_TRUE(store->working_rows(LearnerIndex(0)).Gather(rows, places));
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<float>& row = written[rows[i]];
      row.resize(kDim + kState);
      for (float& value : row) value = number();
      row.back() = CountAsFloat(step - random() % steps);
      std::copy(row.begin(), row.end(), places[i]);
    }
    store->working_rows(LearnerIndex(0)).MarkChanged(rows);
    const auto dense = std::make_shared<DenseState>();
    dense->parameters = {1, 2};
    dense->optimizer = {7, 5, -static_cast<float>(step), CountAsFloat(step)};
    CommitRequest request;
    request.learners.push_back({LearnerIndex(0),
                                store->working_rows(LearnerIndex(0)).TakeDelta(),
                                dense,
                                "p",
                                {TestCharge("ctr", commit)}});
    ASSERT_TRUE(store->Commit(std::move(request), {}));
    ASSERT_TRUE(store->Flush());
    expect(*store->Latest(), step);
  }
  const auto reader = OpenReadOnly(folder.store(), folder.witness(), options.learners);
  ASSERT_TRUE(reader) << reader.error().message;
  expect(*reader->snapshot, step);
  store.reset();
  store = MustOpen(options);  // folds
  expect(*store->Latest(), step);
  store.reset();
  options.learners[0] = unaveraged;
  const auto refused = Store::Open(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().message.find("average"), std::string::npos) << refused.error().message;
}

TEST(SnapshotTest, ALedgerReaderNeedsNoLayouts) {
  const TestFolder folder;
  {
    const auto store = MustOpen(TestOptions(folder));
    for (int commit = 0; commit < 5; ++commit) ASSERT_TRUE(Script::Step(*store));
  }
  const auto reader = OpenReadOnly(folder.store(), folder.witness(), {});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->snapshot->version().value, 5u);
  EXPECT_EQ(reader->entries.size(), reader->snapshot->ledger_entries());
  EXPECT_EQ(reader->snapshot->total().steps, 5u);
}

}  // namespace
}  // namespace tacit::store
