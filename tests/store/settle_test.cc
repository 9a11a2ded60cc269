// Tests how a store is left, and how it is opened: with how much log, and until when it may be
// given up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "script.h"
#include "store/fold.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr size_t kDense = 1 << 19;  // two MiB a commit, and as much again for the optimiser

uint64_t LogBytes(const std::string& store) {
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(store))
    if (file.path().extension() == ".log") bytes += file.file_size();
  return bytes;
}

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
