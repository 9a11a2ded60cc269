#include <gtest/gtest.h>

#include <thread>

#include "script.h"

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

// Whatever a reader beside a living owner sees is one whole commit.
TEST(SnapshotTest, ReadOnlyOpenersSeeWholeCommitsOfALivingStore) {
  const TestFolder folder;
  StoreOptions options = TestOptions(folder);
  options.fold_after_commits = 1;
  const auto store = MustOpen(options);
  ASSERT_TRUE(Script::Step(*store));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop && store->Latest()->version().value < 200) ASSERT_TRUE(Script::Step(*store));
  });
  uint64_t newest = 0;
  for (int look = 0; look < 15; ++look) {
    const auto reader = OpenReadOnly(folder.store(), folder.witness(), options.learners);
    EXPECT_TRUE(reader) << reader.error().message;
    if (!reader) break;
    Script::ExpectSnapshot(*reader->snapshot);
    EXPECT_GE(reader->snapshot->version().value, newest);
    newest = reader->snapshot->version().value;
    EXPECT_TRUE(privacy::VerifyChain(reader->entries));
  }
  stop = true;
  writer.join();
  EXPECT_GT(newest, 1u);
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
