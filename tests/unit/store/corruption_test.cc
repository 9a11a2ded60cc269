#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "forget_script.h"
#include "script.h"
#include "store/care/remains.h"
#include "store/care/verify.h"
#include "store/disk/log_damage.h"
#include "store/disk/rocks.h"
#include "store/disk/seal.h"

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

// A store with two commits in its log, and what a disk may hold of it after a loss of power.
class TornLogTest : public CorruptionTest {
 protected:
  static constexpr size_t kSector = 512;

  TornLogTest() {
    const auto store = MustOpen(options_);
    Check(Script::Step(*store));
    log_ = NewestLog(folder_.store());
    synced_ = fs::file_size(log_);
    older_witness_ = BytesIn(folder_.witness());
    Check(Script::Step(*store));
    whole_ = BytesIn(log_);
    newer_witness_ = BytesIn(folder_.witness());
  }
  static std::string BytesIn(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Overwrite(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // A copy of the store with this in its log, and with this witness.
  StoreOptions CopyWith(const std::string& log, const std::string& witness) {
    StoreOptions options = TestOptionsAt(folder_.root() + "/copy");
    fs::remove_all(folder_.root() + "/copy");
    fs::create_directory(folder_.root() + "/copy");
    fs::copy(options_.path, options.path, fs::copy_options::recursive);
    Overwrite(options.path / log_.filename(), log);
    Overwrite(options.witness, witness);
    return options;
  }
  // The log with zeros, from `at` on, for the rest of this sector.
  static void Lose(size_t at, std::string* log) {
    const size_t count = std::min(kSector - at % kSector, log->size() - at);
    log->replace(at, count, count, '\0');
  }
  static void ExpectDamaged(const StoreOptions& options) {
    const std::string before = BytesIn(NewestLog(options.path));
    const auto reader = OpenReadOnly(options.path, options.witness, options.learners);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::kCorruption) << reader.error().message;
    const auto store = Store::Open(options);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kCorruption) << store.error().message;
    EXPECT_EQ(BytesIn(NewestLog(options.path)), before);
  }

  fs::path log_;
  size_t synced_ = 0;  // bytes of the log, without the last commit
  std::string whole_, older_witness_, newer_witness_;
};

// Sectors reach a disk in any order.
TEST_F(TornLogTest, ABatchThatIsThereInPartWasNotWritten) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string log = whole_;
    const uint64_t one_in = 1 + random() % 20;
    for (size_t at = synced_; at < log.size(); at += kSector - at % kSector)
      if (random() % one_in == 0) Lose(at, &log);
    if (random() % 4 == 0) log.resize(synced_ + random() % (log.size() - synced_));
    lost += log != whole_;
    const StoreOptions options = CopyWith(log, older_witness_);
    const auto reader = OpenReadOnly(options.path, options.witness, options.learners);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ(reader->snapshot->version().value, 5);
    const auto store = MustOpen(options);
    ASSERT_EQ(store->Latest()->version().value, log == whole_ ? 6 : 5);
    Script::ExpectStore(*store);
    Check(Script::Step(*store));
  }
  EXPECT_GT(lost, 30);
}

TEST_F(TornLogTest, ABatchThatIsThereInPartAndWasSeenIsMissed) {
  std::string log = whole_;
  Lose((synced_ / kSector + 3) * kSector, &log);
  const StoreOptions options = CopyWith(log, newer_witness_);
  const auto reader = OpenReadOnly(options.path, options.witness, options.learners);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kRefused);
  const auto store = Store::Open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kRefused);
  EXPECT_THAT(store.error().message, HasSubstr("ends at commit 5, the witness has seen commit 6"));
}

// A batch was synced if another one follows it, in its log or in a later one.
TEST_F(TornLogTest, ALostSectorBeforeABatchIsDamage) {
  for (size_t at = 0; at < synced_ - kSector; at += 9 * kSector) {
    SCOPED_TRACE(at);
    std::string log = whole_;
    Lose(at, &log);
    if (log != whole_) ExpectDamaged(CopyWith(log, newer_witness_));
  }
  std::string log = whole_;
  Lose((synced_ / kSector + 3) * kSector, &log);
  const StoreOptions options = CopyWith(log, older_witness_);
  ASSERT_TRUE(CheckLogs(options.path)->at(0).torn);
  Overwrite(options.path + "/999999.log", whole_);
  EXPECT_FALSE(CheckLogs(options.path)->at(0).torn);
  EXPECT_THAT(TornLogs(options.path), testing::IsEmpty());
}

TEST_F(TornLogTest, ABitOfTheLastBatchIsDamage) {
  for (size_t at = synced_ + 3; at < whole_.size(); at += 5003) {
    SCOPED_TRACE(at);
    std::string log = whole_;
    log[at] = static_cast<char>(log[at] ^ 1);
    ExpectDamaged(CopyWith(log, older_witness_));
  }
}

TEST_F(TornLogTest, ATornListOfTablesEndsBeforeItsLastRecord) {
  const StoreOptions options = CopyWith(whole_, newer_witness_);
  std::string name = BytesIn(options.path + "/CURRENT");
  name.pop_back();
  const std::string list = options.path + "/" + name, before = BytesIn(list);
  // A record of 2,000 bytes that has a sector in its middle only.
  std::string record("\x12\x34\x56\x78\xd0\x07\x01", 7);
  record.append(2 * kSector, 'x').append(2 * kSector, '\0').resize(2007, 'x');
  Overwrite(list, before + record);
  const auto reader = OpenReadOnly(options.path, options.witness, options.learners);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->snapshot->version().value, 6);
  Script::ExpectStore(*MustOpen(options));
}

// A start that loses its power leaves a list with lost sectors that CURRENT does not name.
TEST_F(TornLogTest, AListThatIsNotInForceIsNoDamage) {
  std::string log = whole_;
  Lose((synced_ / kSector + 3) * kSector, &log);
  const StoreOptions options = CopyWith(log, older_witness_);
  std::string name = BytesIn(options.path + "/CURRENT");
  name.pop_back();
  Overwrite(options.path + "/MANIFEST-999999",
            std::string(kSector, '\0') + BytesIn(options.path + "/" + name));
  const auto reader = OpenReadOnly(options.path, options.witness, options.learners);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->snapshot->version().value, 5);
  Script::ExpectStore(*MustOpen(options));
}

// RocksDB leaves out what follows some headers in silence: a block's rest where a header is zeros,
// a log's where its type is of a log that is used again. Each place where a record begins is
// damaged so, and the store never opens without the commits that were there.
class HeaderTest : public TornLogTest {
 protected:
  struct Place {
    size_t at = 0;
    bool begins = false;  // a batch
  };

  // The last commits are small: a block has a few of them, and nothing follows it.
  HeaderTest() {
    const auto store = MustOpen(options_);
    log_ = NewestLog(folder_.store());
    commits_[0] = store->Latest()->version().value;
    for (int commit = 0; commit < 7; ++commit) {
      Check(commit < 2 ? Script::Step(*store) : ForgetScript::Append(*store, {}));
      commits_[fs::file_size(log_)] = store->Latest()->version().value;
    }
    whole_ = BytesIn(log_);
    newer_witness_ = BytesIn(folder_.witness());
    for (size_t at = 0; at + 7 <= whole_.size();) {
      const size_t block_rest = 32768 - at % 32768;
      if (block_rest < 7) {
        at += block_rest;
        continue;
      }
      places_.push_back({at, whole_[at + 6] <= 2});
      at += 7 + static_cast<uint8_t>(whole_[at + 4]) + 256 * static_cast<uint8_t>(whole_[at + 5]);
    }
  }
  bool BatchBeginsFrom(size_t at) const {
    return std::ranges::any_of(places_,
                               [&](const Place& place) { return place.begins && place.at >= at; });
  }
  // The newest commit that is whole before this place.
  uint64_t CommitBefore(size_t at) const { return std::prev(commits_.upper_bound(at))->second; }
  // A start and a reader refuse, and name the place; a check finds it; and a restore, which takes
  // all that can be read, sees nothing from after it.
  void ExpectNamed(const std::string& log, size_t at) {
    const StoreOptions options = CopyWith(log, newer_witness_);
    const std::string place =
        (options.path / log_.filename()).string() + " is damaged at offset " + std::to_string(at);
    ExpectDamaged(options);
    EXPECT_THAT(Store::Open(options).error().message, HasSubstr(place));
    const auto check = VerifyStore(options.path, {.witness = options.witness});
    ASSERT_TRUE(check) << check.error().message;
    ASSERT_FALSE(check->damage.empty());
    EXPECT_THAT(check->damage[0].what, HasSubstr(place));
    const auto remains = ReadRemains(options.path);
    ASSERT_TRUE(remains) << remains.error().message;
    EXPECT_EQ(remains->commit.value, CommitBefore(at));
  }

  std::vector<Place> places_;
  std::map<size_t, uint64_t> commits_;  // the last one, by the bytes that the log then has
};

// A sector that begins with a record, or within its header.
TEST_F(HeaderTest, ASectorOfZerosFromAHeaderOnIsNeverSilent) {
  int named = 0, missed = 0;
  for (const Place& place : places_)
    for (const size_t byte : {place.at, place.at + 4}) {
      SCOPED_TRACE(byte);
      std::string log = whole_;
      Lose(byte, &log);
      if (BatchBeginsFrom(byte - byte % kSector + kSector)) {
        ExpectNamed(log, place.at);
        ++named;
        continue;
      }
      const StoreOptions options = CopyWith(log, newer_witness_);
      const auto store = Store::Open(options);
      ASSERT_FALSE(store);
      // The last batch may have been written in part, if a whole sector of it is gone.
      const bool torn = byte == place.at || byte % kSector == 0;
      EXPECT_EQ(store.error().code, torn ? ErrorCode::kRefused : ErrorCode::kCorruption)
          << store.error().message;
      ++missed;
    }
  EXPECT_GT(named, 12);
  EXPECT_GT(missed, 1);
}

TEST_F(HeaderTest, ABitOfATypeIsNeverSilent) {
  for (const Place& place : places_) {
    SCOPED_TRACE(place.at);
    std::string log = whole_;
    log[place.at + 6] = static_cast<char>(log[place.at + 6] ^ 4);
    ExpectNamed(log, place.at);
  }
}

// Later logs that are whole do not make up for a batch that is missing in between.
TEST(PassedOverTest, NothingFromAfterDamageIsThere) {
  const TestFolder folder;
  fs::path log;
  size_t second = 0;
  {
    const auto rocks =
        Rocks::Open(folder.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>());
    ASSERT_TRUE(rocks);
    const auto put = [&](Family family, const std::string& key) {
      rocksdb::WriteBatch batch;
      batch.Put((*rocks)->family(family), key, Seal(std::string(600, 'x')));
      ASSERT_TRUE((*rocks)->WriteSynced(batch));
    };
    put(Family::kMeta, "first");
    log = NewestLog(folder.store());
    second = fs::file_size(log);
    put(Family::kMeta, "second");
    put(Family::kOffsets, "other");
    ASSERT_TRUE((*rocks)->db().Flush({}, (*rocks)->family(Family::kOffsets)).ok());
    put(Family::kMeta, "third");
    ASSERT_NE(NewestLog(folder.store()), log);
  }
  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(second + 6));
  file.put('\5');
  file.close();
  const std::string place = log.string() + " is damaged at offset " + std::to_string(second);
  const auto opened =
      Rocks::Open(folder.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(opened.error().message, HasSubstr(place));
  const auto left = Rocks::OpenDamaged(folder.store());
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_TRUE((*left)->Get(Family::kMeta, "first").value());
  EXPECT_FALSE((*left)->Get(Family::kMeta, "second").value());
  EXPECT_FALSE((*left)->Get(Family::kMeta, "third").value());
}

}  // namespace
}  // namespace tacit::store
