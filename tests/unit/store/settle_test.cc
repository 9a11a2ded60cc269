// Tests how a store is left, and how it is opened: with how much log, and until when it may be
// given up.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <optional>

#include "base/files/unique_fd.h"
#include "script.h"
#include "store/disk/rocks.h"
#include "store/view/fold.h"
#include "support/eventually.h"
#include "support/files_below.h"

namespace {

// The bytes that every disk says it has left; nullopt = the truth.
std::optional<uint64_t> bytes_left;

}  // namespace

// Takes the place of the C library's call, which std::filesystem::space makes.
extern "C" int statvfs(const char* path, struct statvfs* out) noexcept {
  const tacit::UniqueFd place(open(path, O_PATH | O_CLOEXEC));
  if (place.get() < 0 || fstatvfs(place.get(), out) != 0) return -1;
  if (bytes_left) out->f_bavail = *bytes_left / out->f_frsize;
  return 0;
}

namespace tacit::store {
namespace {

using testing::HasSubstr;

constexpr size_t kDense = 1 << 19;  // two MiB a commit, and as much again for the optimiser

uint64_t LogBytes(const std::string& store) { return test::BytesBelow(store, {".log"}); }

class SettleTest : public testing::Test {
 protected:
  SettleTest() : options_(TestOptions(folder_)) { options_.fold_after_commits = 100; }

  void Train(int commits, bool settle) {
    const auto store = MustOpen(options_);
    for (int i = 0; i < commits; ++i) ASSERT_TRUE(Script::Step(*store, kDense));
    if (settle) {
      ASSERT_TRUE(store->Settle());
    }
  }

  const TestFolder folder_;
  StoreOptions options_;
};

// Opening asks for as much room as there is log to replay.
TEST_F(SettleTest, ASettledStoreHasNoLogToReplay) {
  Train(5, /*settle=*/false);
  EXPECT_GT(LogBytes(folder_.store()), 5 * kDense * sizeof(float)) << "or the test shows nothing";
  Train(5, /*settle=*/true);
  EXPECT_LT(LogBytes(folder_.store()), 4096u);
  const auto reader = OpenReadOnly(folder_.store(), folder_.witness(), options_.learners);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->snapshot->version(), CommitSeq(10));
  // There is nothing to fold either.
  std::vector<std::string> doing;
  options_.on_open = [&](const OpenProgress& progress) {
    doing.emplace_back(progress.doing);
    return true;
  };
  const auto store = MustOpen(options_);
  EXPECT_THAT(doing, testing::ElementsAre("replaying the log", "reading what is not folded"));
  EXPECT_EQ(store->Latest()->version(), CommitSeq(10));
}

// The bytes of tables and blobs.
uint64_t TableBytes(const std::string& store) { return test::BytesBelow(store, {".sst", ".blob"}); }

// The log has the dense parameters of every commit, and a table gets the last ones alone.
TEST_F(SettleTest, ANearlyFullDiskHasRoomForWhatIsInForce) {
  constexpr uint64_t kLeft = uint64_t{24} << 20;
  options_.fold_after_commits = 2;
  options_.memory_bytes = uint64_t{512} << 20;
  {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(Script::Step(*store, kDense));
    ASSERT_GT(LogBytes(folder_.store()), kLeft) << "or the test shows nothing";
    const uint64_t before = TableBytes(folder_.store());
    bytes_left = kLeft;
    // A table that RocksDB is writing just now is counted in full: it is refused until that is
    // done.
    Status settled;
    const auto settles = test::Eventually("the store settles",
                                          [&] { return (settled = store->Settle()).has_value(); });
    bytes_left.reset();
    ASSERT_TRUE(settles) << settled.error().message;
    EXPECT_LT(TableBytes(folder_.store()), before + kLeft);
  }
  EXPECT_LT(LogBytes(folder_.store()), 4096u);
  bytes_left = kLeft;
  const auto store = Store::Open(options_);
  bytes_left.reset();
  ASSERT_TRUE(store) << store.error().message;
  Script::ExpectStore(**store);
}

// Random batches in memory, with and without readers of what was there before: the tables are no
// larger than the room that was asked for.
TEST_F(SettleTest, WritingOutTakesNoMoreThanTheRoomThatWasAskedFor) {
  std::mt19937_64 random(5);
  int refused = 0, written = 0;
  const auto rocks =
      *Rocks::Open(folder_.store(), uint64_t{512} << 20, std::make_shared<FailureLatch>());
  for (auto* family : rocks->all_families())  // tables stay as they are written
    ASSERT_TRUE(rocks->db().SetOptions(family, {{"disable_auto_compactions", "true"}}).ok());
  for (int round = 0; round < 40; ++round) {
    const rocksdb::Snapshot* reader = nullptr;
    for (uint64_t i = 0, batches = 1 + random() % 60; i < batches; ++i) {
      rocksdb::WriteBatch batch;
      for (const Family family : {Family::kDeltas, Family::kMeta, Family::kHistories}) {
        const std::string key = SequenceKey(random() % (1 + random() % 20));
        if (random() % 3 == 0)
          batch.Delete(rocks->family(family), key);
        else
          batch.Put(rocks->family(family), key,
                    std::string(random() % (100 << random() % 10), 'x'));
      }
      ASSERT_TRUE(rocks->WriteSynced(batch));
      if (reader == nullptr && random() % 100 == 0) reader = rocks->db().GetSnapshot();
    }
    const uint64_t before = TableBytes(folder_.store());
    // The least room with which it goes on, to a tenth of a MiB.
    constexpr uint64_t kSlack = uint64_t{16} << 20, kStep = 100 << 10;
    bytes_left = kSlack;
    Status emptied = rocks->EmptyLog();
    for (; !emptied; emptied = rocks->EmptyLog(), ++refused) *bytes_left += kStep;
    const uint64_t room = *bytes_left - kSlack;
    bytes_left.reset();
    if (reader != nullptr) rocks->db().ReleaseSnapshot(reader);
    EXPECT_LE(TableBytes(folder_.store()), before + room + kStep) << "round " << round;
    written += TableBytes(folder_.store()) > before;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(written, 20);
}

TEST_F(SettleTest, SettlingChangesNothing) {
  {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 7; ++i) {
      ASSERT_TRUE(Script::Step(*store));
      if (i % 2 == 0) {
        ASSERT_TRUE(store->Settle());
      }
    }
    Script::ExpectStore(*store);
  }
  Script::ExpectStore(*MustOpen(options_));
}

// More than the memtables hold: RocksDB's own threads write some of it out meanwhile.
TEST_F(SettleTest, AStoreThatIsWritingOutIsSettledTheSame) {
  Train(20, /*settle=*/true);
  EXPECT_LT(LogBytes(folder_.store()), 4096u);
  EXPECT_EQ(MustOpen(options_)->Latest()->version(), CommitSeq(20));
}

// Given up at the k-th time it asks, for every k; then opened as if nothing had been.
TEST_F(SettleTest, OpeningCanBeGivenUpAtEveryPoint) {
  {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(Script::Step(*store));
  }
  int asked = 0, most = 0;
  bool folding = false;
  for (; most < 100; ++most) {
    asked = 0;
    options_.on_open = [&](const OpenProgress& progress) {
      folding |= progress.doing == "folding rows" && progress.of > 0;
      return ++asked <= most;
    };
    const auto store = Store::Open(options_);
    if (store) {
      Script::ExpectStore(**store);
      break;
    }
    EXPECT_EQ(asked, most + 1) << "it went on";
    EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(store.error().message, HasSubstr("was given up"));
  }
  EXPECT_GE(most, 4) << "log, deltas, merging and writing";
  EXPECT_TRUE(folding);
  options_.on_open = {};
  Script::ExpectStore(*MustOpen(options_));
}

}  // namespace
}  // namespace tacit::store
