#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "script.h"
#include "store/disk/rocks.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The newest write-ahead log.
fs::path NewestLog(const std::string& store) {
  fs::path newest;
  for (const auto& file : fs::directory_iterator(store))
    if (file.path().extension() == ".log" && file.path() > newest) newest = file.path();
  return newest;
}

class CorruptionTest : public testing::Test {
 protected:
  CorruptionTest() : options_(TestOptions(folder_)) {
    options_.fold_after_commits = 100;  // deltas stay
    const auto store = MustOpen(options_);
    for (int i = 0; i < 4; ++i) Check(Script::Step(*store));
  }
  static void Check(const Status& status) { ASSERT_TRUE(status) << status.error().message; }

  // Flips one byte of a stored value behind the store's back, checksums of RocksDB included.
  void Damage(Family family, const std::string& key, size_t place) {
    const auto rocks =
        Rocks::Open(folder_.store(), options_.memory_bytes, std::make_shared<FailureLatch>());
    ASSERT_TRUE(rocks);
    std::string value;
    ASSERT_TRUE((*rocks)->db().Get({}, (*rocks)->family(family), key, &value).ok());
    value[place % value.size()] = static_cast<char>(value[place % value.size()] ^ 4);
    ASSERT_TRUE((*rocks)->db().Put({}, (*rocks)->family(family), key, value).ok());
  }
  void Remove(Family family, const std::string& key) {
    const auto rocks =
        Rocks::Open(folder_.store(), options_.memory_bytes, std::make_shared<FailureLatch>());
    ASSERT_TRUE(rocks);
    ASSERT_TRUE((*rocks)->db().Delete({}, (*rocks)->family(family), key).ok());
  }
  void RemoveRowsMarker(uint64_t shard) {
    const auto rocks =
        Rocks::Open(folder_.store(), options_.memory_bytes, std::make_shared<FailureLatch>());
    ASSERT_TRUE(rocks);
    ASSERT_TRUE((*rocks)->db().Delete({}, (*rocks)->rows(shard), AsSlice(kRowsMarkerKey)).ok());
  }
  void ExpectCorrupt(const std::string& says) {
    const auto store = Store::Open(options_);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kCorruption) << store.error().message;
    EXPECT_THAT(store.error().message, HasSubstr(says));
    const auto reader = OpenReadOnly(folder_.store(), folder_.witness(), options_.learners);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::kCorruption);
  }

  const TestFolder folder_;
  StoreOptions options_;
};

TEST_F(CorruptionTest, AFlippedByteInADelta) {
  Damage(Family::kDeltas, SequenceKey(2), 500);
  ExpectCorrupt("the delta of commit 2 does not match its checksum");
}

TEST_F(CorruptionTest, AMissingDelta) {
  Remove(Family::kDeltas, SequenceKey(3));
  ExpectCorrupt("the delta of commit 3 is missing");
}

TEST_F(CorruptionTest, AMissingNewestDelta) {
  Remove(Family::kDeltas, SequenceKey(4));
  ExpectCorrupt("deltas end before commit 4");
}

TEST_F(CorruptionTest, AFlippedByteInALedgerEntry) {
  Damage(Family::kLedger, SequenceKey(0), 30);
  ExpectCorrupt("ledger");
}

TEST_F(CorruptionTest, AMissingLedgerEntry) {
  Remove(Family::kLedger, SequenceKey(0));
  ExpectCorrupt("ledger entry 0 breaks the chain");
}

TEST_F(CorruptionTest, AMissingNewestLedgerEntry) {
  Remove(Family::kLedger, SequenceKey(1));
  ExpectCorrupt("the ledger ends at entry 1, its tip says 2");
}

TEST_F(CorruptionTest, AFlippedByteInMeta) {
  Damage(Family::kMeta, std::string(meta::kTip), 20);
  ExpectCorrupt("tip");
}

TEST_F(CorruptionTest, RowsThatAreNotThere) {
  { Script::ExpectStore(*MustOpen(options_)); }  // folds
  RemoveRowsMarker(2);
  ExpectCorrupt("the rows' marker is missing");
}

// Without it the rows would be looked for in one family, and every row would begin anew.
TEST_F(CorruptionTest, AMissingGenerationOfRows) {
  { Script::ExpectStore(*MustOpen(options_)); }
  Remove(Family::kMeta, std::string(meta::kRows));
  ExpectCorrupt("'rows' is missing");
}

TEST_F(CorruptionTest, ARowFamilyThatIsNotThere) {
  {
    const auto rocks =
        Rocks::Open(folder_.store(), options_.memory_bytes, std::make_shared<FailureLatch>());
    ASSERT_TRUE((*rocks)->db().DropColumnFamily((*rocks)->rows(1)).ok());
  }
  ExpectCorrupt("the rows of shard 1 are missing");
}

TEST_F(CorruptionTest, ATornTailOfTheLogLosesTheLastCommitAndTheWitnessKnows) {
  const fs::path log = NewestLog(folder_.store());
  fs::resize_file(log, fs::file_size(log) - 10);
  const auto store = Store::Open(options_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kRefused);
  EXPECT_THAT(store.error().message, HasSubstr("ends at commit 3, the witness has seen commit 4"));
}

// RocksDB's default recovery would open here and drop every commit after the damage.
TEST_F(CorruptionTest, AFlippedByteInTheMiddleOfTheLogIsNotSilent) {
  const fs::path log = NewestLog(folder_.store());
  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  const auto place = static_cast<std::streamoff>(fs::file_size(log) / 2);
  file.seekg(place);
  const char byte = static_cast<char>(file.get());
  file.seekp(place);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  const auto store = Store::Open(options_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCorruption) << store.error().message;
}

}  // namespace
}  // namespace tacit::store
