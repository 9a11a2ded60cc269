// Tests a store whose rows lie in shards with families and folders of their own: how they are
// placed, cut anew, checkpointed and restored. The script is the oracle.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "restore_script.h"
#include "script.h"
#include "store/care/reshard.h"
#include "store/care/verify.h"
#include "store/disk/rocks.h"
#include "store/disk/row_families.h"
#include "store/disk/seal.h"
#include "store/view/load.h"
#include "support/files_below.h"
#include "support/temp_dir.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ShardsTest : public testing::Test {
 protected:
  ShardsTest() : options_(TestOptions(folder_)) {}

  void Train(uint64_t commits) {
    const auto store = MustOpen(options_);
    for (uint64_t i = 0; i < commits; ++i) {
      const Status step = Script::Step(*store);
      ASSERT_TRUE(step) << step.error().message;
    }
    Script::ExpectStore(*store);
  }
  Resharded MustReshard(uint32_t shards, std::vector<std::string> paths = {}) {
    auto done = Reshard({.path = options_.path, .shards = shards, .paths = std::move(paths)});
    if (!done) ADD_FAILURE() << done.error().message;
    TACIT_CHECK(done.has_value());
    return *std::move(done);
  }
  std::shared_ptr<Rocks> MustOpenRocks() const {
    auto rocks =
        Rocks::Open(options_.path, options_.memory_bytes, std::make_shared<FailureLatch>());
    if (!rocks) ADD_FAILURE() << rocks.error().message;
    TACIT_CHECK(rocks.has_value());
    return *std::move(rocks);
  }
  void ExpectWhole() const {
    const auto check = VerifyStore(options_.path, {.witness = options_.witness});
    ASSERT_TRUE(check) << check.error().message;
    for (const Damage& damage : check->damage) ADD_FAILURE() << damage.file << " " << damage.what;
  }
  std::vector<std::string> ShardFolders() const {
    auto folders = FoldersOf(options_.path).value();
    folders.erase(folders.begin());  // the store's own
    return folders;
  }

  const TestFolder folder_;
  StoreOptions options_;
};

TEST_F(ShardsTest, EachHasAFolderAndItsRowsAlone) {
  Train(6);
  EXPECT_THAT(ShardFolders(), testing::ElementsAre("rows/1-0", "rows/1-1", "rows/1-2", "rows/1-3"));
  MustOpen(options_);  // folds what is left
  const auto rocks = MustOpenRocks();
  size_t rows = 0;
  for (uint64_t shard = 0; shard < options_.shards; ++shard) {
    const std::unique_ptr<rocksdb::Iterator> at(rocks->db().NewIterator({}, rocks->rows(shard)));
    for (at->SeekToFirst(); at->Valid() && at->key() != AsSlice(kRowsMarkerKey); at->Next()) {
      EXPECT_EQ(static_cast<uint8_t>(at->key()[0]), shard);
      ++rows;
    }
  }
  EXPECT_GT(rows, 100u);
}

// A fold of few rows goes through the log, and one of many writes files: both are the same store.
TEST_F(ShardsTest, SmallFoldsAndLargeOnesMix) {
  std::mt19937_64 random(3);
  for (int life = 0; life < 12; ++life) {
    options_.fold_file_bytes = random() % 2 == 0 ? 0 : 1 << 20;
    Train(1 + random() % 5);
    if (HasFatalFailure()) return;
    const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
    ASSERT_TRUE(reader) << reader.error().message;
    Script::ExpectSnapshot(*reader->snapshot);
  }
  ExpectWhole();
}

TEST_F(ShardsTest, TheStoresOwnNumberIsTakenWhereNoneIsConfigured) {
  Train(2);
  options_.shards = 0;
  Train(2);
  const TestFolder other;
  StoreOptions fresh = TestOptions(other);
  fresh.shards = 0;
  MustOpen(fresh);
  EXPECT_EQ(FoldersOf(fresh.path)->size(), 1 + kNewShards);
}

TEST_F(ShardsTest, AreCutAnewAgainAndAgain) {
  std::mt19937_64 random(17);
  uint32_t shards = options_.shards;
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << " with " << shards << " shards");
    options_.fold_after_commits = 1 + random() % 6;  // some commits are not folded yet
    Train(1 + random() % 4);
    const uint32_t next = 1 + random() % 20;
    const Resharded done = MustReshard(next);
    EXPECT_EQ(done.before, shards);
    EXPECT_EQ(done.after, next);
    shards = options_.shards = next;
    EXPECT_EQ(ShardFolders().size(), shards);
    ExpectWhole();
    Train(1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(ShardsTest, NothingIsDoneWhereAllIsSoAlready) {
  Train(3);
  EXPECT_FALSE(MustReshard(options_.shards).done);
  EXPECT_FALSE(MustReshard(0).done);
  EXPECT_TRUE(MustReshard(5).done);
  EXPECT_FALSE(MustReshard(5).done);
}

TEST_F(ShardsTest, GivingUpLeavesTheStoreAsItWas) {
  for (const uint32_t fold_after : {1000u, 2u}) {  // first with no row in a shard yet
    options_.fold_after_commits = fold_after;
    Train(4);
    const auto given_up = Reshard(
        {.path = options_.path, .shards = 7, .paths = {}, .keep = [](uint64_t) { return false; }});
    ASSERT_FALSE(given_up);
    EXPECT_EQ(given_up.error().code, ErrorCode::kUnavailable);
    Train(2);
    EXPECT_EQ(ShardFolders().size(), options_.shards) << "what was begun is removed at the start";
  }
}

TEST_F(ShardsTest, AreRefusedWhereTheyCannotBeCut) {
  const auto refused = [&](const ReshardRequest& request, ErrorCode code, const char* says) {
    const auto done = Reshard(request);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, code) << done.error().message;
    EXPECT_THAT(done.error().message, HasSubstr(says));
  };
  refused({.path = options_.path, .paths = {}}, ErrorCode::kNotFound, "there is no store");
  Train(2);
  refused({.path = options_.path, .shards = 129, .paths = {}}, ErrorCode::kInvalidArgument,
          "1 to 128, not 129");
  const auto store = MustOpen(options_);
  refused({.path = options_.path, .shards = 3, .paths = {}}, ErrorCode::kUnavailable, "is locked");
  const auto made = store->MakeCheckpoint(
      {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/checkpoints", .schema = ""});
  ASSERT_TRUE(made);
  refused({.path = made->place.folder, .shards = 3, .paths = {}}, ErrorCode::kInvalidArgument,
          "is a checkpoint");
}

// Spreads shards over two folders of another disk, if the test's own folder is in memory.
class SpreadShardsTest : public ShardsTest {
 protected:
  SpreadShardsTest() { options_.shard_paths = {disk_ / "a", disk_ / "b"}; }

  // Counts the folders of shards, and the files, in a path.
  std::pair<size_t, size_t> Placed(const std::string& path) const {
    std::error_code error;
    size_t folders = 0;
    for (const auto& entry : fs::directory_iterator(path, error)) folders += entry.is_directory();
    return {folders, error ? 0 : test::FilesBelow(path).size()};
  }
  void ExpectSpread() {
    for (const std::string& path : options_.shard_paths) {
      EXPECT_EQ(Placed(path).first, 2u) << path;
      EXPECT_GT(Placed(path).second, 0u) << path;
    }
    for (const std::string& folder : ShardFolders())
      EXPECT_TRUE(fs::is_symlink(fs::path(options_.path) / folder)) << folder;
  }

  const test::TempDir disk_;
};

TEST_F(SpreadShardsTest, TakeTurns) {
  Train(5);
  MustOpen(options_);  // folds what is left: a shard may have no file before
  ExpectSpread();
  ExpectWhole();
  const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
  ASSERT_TRUE(reader) << reader.error().message;
  Script::ExpectSnapshot(*reader->snapshot);
}

TEST_F(SpreadShardsTest, MoveThereAndBack) {
  const auto paths = std::exchange(options_.shard_paths, {});
  Train(4);
  MustOpen(options_);  // folds what is left
  EXPECT_TRUE(MustReshard(0, paths).done);
  options_.shard_paths = paths;
  EXPECT_FALSE(MustReshard(0, paths).done);
  ExpectSpread();
  Train(3);
  EXPECT_TRUE(MustReshard(0).done);
  for (const std::string& path : paths) EXPECT_EQ(Placed(path), std::pair(size_t{0}, size_t{0}));
  Train(2);
}

// A checkpoint has copies of all shards in one place, and a restore spreads them again.
TEST_F(SpreadShardsTest, AreCheckpointedAndRestored) {
  std::string checkpoint;
  Digest head{};
  Train(5);
  {
    // Opening folds what is left: a checkpoint from before the first fold has no file of any shard.
    const auto store = MustOpen(options_);
    const auto made = store->MakeCheckpoint(
        {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/checkpoints", .schema = ""});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint = made->place.folder;
    head = store->Latest()->head();
  }
  const auto checked = CheckCheckpoint(checkpoint, CheckpointCheck::kEveryByte);
  ASSERT_TRUE(checked) << checked.error().message;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint))
    EXPECT_FALSE(entry.is_symlink()) << entry.path();
  const auto read = OpenReadOnly(checkpoint, "", options_.learners);
  ASSERT_TRUE(read) << read.error().message;
  Script::ExpectSnapshot(*read->snapshot);
  ASSERT_TRUE(RemoveStore(options_.path));
  for (const std::string& path : options_.shard_paths)
    EXPECT_EQ(Placed(path), std::pair(size_t{0}, size_t{0}));
  const auto restored = RestoreStore(RestoreOfScript(options_, checkpoint, 5, 5, head));
  ASSERT_TRUE(restored) << restored.error().message;
  ExpectSpread();
  Train(3);
}

// A checkpoint has no file of a shard without folded rows.
TEST_F(SpreadShardsTest, AreRestoredToTheirDisksWithoutAnyRow) {
  options_.fold_after_commits = 100;
  std::string checkpoint;
  Digest head{};
  {
    const auto store = MustOpen(options_);
    ASSERT_TRUE(Script::Step(*store));
    const auto made = store->MakeCheckpoint(
        {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/checkpoints", .schema = ""});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint = made->place.folder;
    head = store->Latest()->head();
  }
  ASSERT_FALSE(fs::exists(checkpoint + "/rows"));
  ASSERT_TRUE(RemoveStore(options_.path));
  const auto restored = RestoreStore(RestoreOfScript(options_, checkpoint, 1, 1, head));
  ASSERT_TRUE(restored) << restored.error().message;
  ExpectSpread();
  Train(3);
}

TEST_F(SpreadShardsTest, ADiskThatIsNotThereIsNamed) {
  Train(3);
  fs::rename(options_.shard_paths[1], disk_ / "elsewhere");
  const auto store = Store::Open(options_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kIo);
  EXPECT_THAT(store.error().message, HasSubstr("which is not there: is its disk mounted?"));
  EXPECT_THAT(store.error().message, HasSubstr(options_.shard_paths[1]));
  fs::rename(disk_ / "elsewhere", options_.shard_paths[1]);
  Train(2);
}

TEST(RowFamilyTest, NamesAndFoldersAreReadBack) {
  const RowFamily family{3, 12};
  EXPECT_EQ(RowFamilyOf(family.Name()), family);
  EXPECT_EQ(RowFamilyOfFolder(family.Folder()), family);
  for (const char* other : {"rows", "rows-", "rows-1", "rows-1-", "rows-0-1", "rows-1-2-3",
                            "rows-01-2", "rows-1-2 ", "rows--1-2", "deltas", ""})
    EXPECT_FALSE(RowFamilyOf(other)) << other;
  for (const char* other : {"rows", "rows/", "rows/1", "rows/1-2/3", "row/1-2", "rows/0-2", ""})
    EXPECT_FALSE(RowFamilyOfFolder(other)) << other;
}

// A removal that failed has left the name under which a fold wrote a table that is in use now.
TEST_F(ShardsTest, AFoldNeverWritesIntoATableThatIsInUse) {
  {
    const auto store = MustOpen(options_);
    ASSERT_TRUE(Script::Step(*store));
    ASSERT_TRUE(store->Settle());
    for (const std::string& folder : ShardFolders()) {
      const fs::path shard = fs::path(options_.path) / folder;
      fs::path table;
      for (const auto& file : fs::directory_iterator(shard))
        if (file.path().extension() == ".sst") table = file.path();
      fs::create_hard_link(table, shard / "fold-0.tmp");
    }
    ASSERT_TRUE(Script::Step(*store));
    ASSERT_TRUE(store->Settle());
    Script::ExpectStore(*store);
  }
  ExpectWhole();
}

}  // namespace
}  // namespace tacit::store
