// Damage is found, named, and repaired only where the rest of the store tells what was
// there.
#include "store/care/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "base/text.h"
#include "script.h"
#include "store/care/recover.h"
#include "store/care/remains.h"
#include "store/care/repair.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/log_damage.h"
#include "store/disk/rocks.h"
#include "store/disk/seal.h"
#include "store/disk/table_files.h"
#include "store/disk/table_tail.h"
#include "store/view/delta_codec.h"
#include "store/witness/witness.h"
#include "support/files_below.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string BytesIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void Overwrite(const std::string& path, const std::string& bytes) {
  fs::remove(path);  // it may be linked
  std::ofstream(path, std::ios::binary) << bytes;
}
void Flip(const std::string& path, size_t place, int bit) {
  std::string bytes = BytesIn(path);
  bytes[place] = static_cast<char>(bytes[place] ^ (1 << bit));
  Overwrite(path, bytes);
}

std::vector<std::string> FilesIn(const std::string& folder, const std::string& like) {
  std::vector<std::string> files;
  for (const fs::path& file : test::FilesBelow(folder))
    if (file.filename().string().find(like) != std::string::npos) files.push_back(file);
  return files;
}

// All that a store answers, as text.
std::string AnswersOf(const std::string& path, const std::vector<LearnerLayout>& layouts) {
  const auto read = OpenReadOnly(path, "", layouts);
  if (!read) return read.error().message;
  const Snapshot& snapshot = *read->snapshot;
  std::string answers = ToHex(snapshot.head()) + std::to_string(snapshot.version().value);
  for (uint16_t l = 0; l < layouts.size(); ++l) {
    const RowSpace& space = layouts[l].rows.space;
    std::vector<uint64_t> rows(space.rows());
    size_t floats = 0;
    for (size_t row = 0; row < rows.size(); ++row) {
      rows[row] = row;
      floats += space.tables()[space.TableOf(row)].dim;
    }
    std::vector<float> values(floats);
    const Status status = snapshot.Rows(LearnerIndex(l), rows, values);
    if (!status) return status.error().message;
    answers.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    const auto dense = snapshot.ServedDense(LearnerIndex(l));
    answers.append(reinterpret_cast<const char*>(dense.data()), 4 * dense.size());
  }
  const auto entries = snapshot.LedgerEntries(0, ~uint64_t{0});
  if (!entries) return entries.error().message;
  for (const std::string& entry : *entries) answers += entry;
  return answers;
}

constexpr size_t kBlock = 32768;  // of RocksDB's logs

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() : options_(TestOptions(folder_)) {}

  void Train(uint64_t commits, bool settle = true) {
    const auto store = MustOpen(options_);
    for (uint64_t i = 0; i < commits; ++i) ASSERT_TRUE(Script::Step(*store));
    if (settle) {
      ASSERT_TRUE(store->Settle());
    }
  }
  StoreCheck Verify(const std::string& path) const {
    auto check = VerifyStore(path, {.witness = options_.witness});
    if (!check) ADD_FAILURE() << check.error().message;
    TACIT_CHECK(check.has_value());
    return *std::move(check);
  }
  static std::string All(const StoreCheck& check) {
    std::string all;
    for (const Damage& damage : check.damage) all += damage.file + " " + damage.what + "\n";
    return all;
  }
  std::string CopyOf(const std::string& path) const {
    const std::string copy = folder_.root() + "/flipped";
    fs::remove_all(copy);
    fs::copy(path, copy, fs::copy_options::recursive);
    return copy;
  }

  const TestFolder folder_;
  StoreOptions options_;
};

TEST_F(VerifyTest, AWholeStoreIsAllRight) {
  Train(7);
  const StoreCheck closed = Verify(options_.path);
  EXPECT_EQ(All(closed), "");
  EXPECT_EQ(closed.commits, 7u);
  EXPECT_EQ(closed.users, Script::kUsers);
  EXPECT_TRUE(closed.witnessed);
  EXPECT_GT(closed.files, 0u);
  Train(3, /*settle=*/false);  // a log stays
  EXPECT_EQ(All(Verify(options_.path)), "");
}

TEST_F(VerifyTest, AnOpenStoreIsLeftAlone) {
  const auto store = MustOpen(options_);
  // The lock of this process does not keep this process out.
  const auto none = VerifyStore(folder_.root() + "/none", {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

// Single bits anywhere in a store, closed in order or with a log: verify names the file, or no byte
// of an answer, of the ledger or of what verify finds has changed.
TEST_F(VerifyTest, EveryFlippedBitIsNamedOrChangesNothing) {
  std::mt19937_64 random(11);
  int named = 0;
  for (const bool settled : {true, false}) {
    Train(settled ? 9 : 3, settled);
    const std::string answers = AnswersOf(options_.path, options_.learners);
    const auto files = FilesIn(options_.path, "");
    std::vector<uint64_t> ends;
    uint64_t bytes = 0;
    for (const std::string& file : files) ends.push_back(bytes += fs::file_size(file));
    for (int i = 0; i < 250; ++i) {
      // Half of the flips go to a file at random, so that small ones have their share.
      size_t f = random() % files.size();
      if (i % 2 == 0)
        f = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), random() % bytes) -
                                ends.begin());
      const uint64_t size = fs::file_size(files[f]);
      if (size == 0) continue;
      const std::string copy = CopyOf(options_.path);
      const std::string file =
          copy + "/" + fs::path(files[f]).lexically_relative(options_.path).string();
      const size_t place = random() % size;
      Flip(file, place, static_cast<int>(random() % 8));
      const StoreCheck check = Verify(copy);
      if (!check.damage.empty()) {
        EXPECT_THAT(All(check), HasSubstr(file)) << "at " << place << " of " << size;
        EXPECT_TRUE(IsUtf8(All(check))) << "at " << place << " of " << size;
        ++named;
      } else {
        EXPECT_EQ(AnswersOf(copy, options_.learners) == answers, true)
            << file << " at " << place << " of " << size << " is not named";
      }
    }
  }
  EXPECT_GT(named,
            250);  // the rest: RocksDB's options, which nothing reads, and room between values
}

// RocksDB reads a table's properties before it has checked them: the highest bit of every byte of a
// table's end is flipped, among them the one at which Debian's RocksDB would end the process.
TEST_F(VerifyTest, NoBitOfATablesEndEndsTheProcess) {
  Train(9);
  const std::vector<std::string> tables = FilesIn(options_.path, ".sst");
  ASSERT_FALSE(tables.empty());
  const std::string copy = CopyOf(options_.path);
  const std::string file =
      copy + "/" + fs::path(tables[0]).lexically_relative(options_.path).string();
  const std::string whole = BytesIn(file);
  ASSERT_TRUE(CheckTableTail(file));
  int by_the_tail = 0;
  const size_t end = std::min<size_t>(whole.size(), 300);
  for (size_t place = whole.size() - end; place < whole.size(); ++place) {
    Overwrite(file, whole);
    Flip(file, place, 7);
    by_the_tail += !CheckTableTail(file);
    EXPECT_THAT(All(Verify(copy)), HasSubstr(file)) << "at " << place << " of " << whole.size();
  }
  // That one, and where a place in the table points to such a byte by chance.
  EXPECT_GE(by_the_tail, 1);
}

TEST_F(VerifyTest, AMissingTableIsNamed) {
  Train(9);
  for (const std::string& table : FilesIn(options_.path, ".sst")) {
    const std::string copy = CopyOf(options_.path);
    const std::string gone =
        copy + "/" + fs::path(table).lexically_relative(options_.path).string();
    fs::remove(gone);
    EXPECT_THAT(All(Verify(copy)), HasSubstr(fs::path(gone).filename().string()));
  }
}

TEST_F(VerifyTest, AnOlderCopyIsNotWhatTheWitnessHasSeen) {
  Train(4);
  const std::string copy = CopyOf(options_.path);
  Train(2);
  EXPECT_THAT(All(Verify(copy)), HasSubstr("the witness has seen commit 6"));
}

TEST(LogDamageTest, TheChecksumIsCastagnolis) {
  // RFC 3720, B.4, and the check value of the catalogue of CRCs.
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes("123456789", 9);
  EXPECT_EQ(crc.checksum(), 0xE3069283u);
}

// RocksDB writes the logs: all of them are whole, and every flipped bit of a record is found at
// that record.
TEST_F(VerifyTest, ALogsDamageHasItsOffset) {
  options_.fold_after_commits = 100;
  {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(Script::Step(*store));
  }
  std::string log;
  for (const std::string& file : FilesIn(options_.path, ".log"))
    if (fs::file_size(file) > 4000) log = file;
  ASSERT_FALSE(log.empty());
  ASSERT_FALSE(*FindLogDamage(log));
  const std::string whole = BytesIn(log);
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const size_t place = random() % (whole.size() / 2);
    Overwrite(log, whole);
    Flip(log, place, static_cast<int>(random() % 8));
    const auto damage = FindLogDamage(log);
    ASSERT_TRUE(damage && *damage) << place;
    EXPECT_LE((*damage)->offset, place);
    EXPECT_EQ((*damage)->file, log);
  }
  Overwrite(log, whole.substr(0, whole.size() - 5));
  const auto torn = FindLogDamage(log);
  ASSERT_TRUE(torn && *torn);
  EXPECT_TRUE((*torn)->torn);

  Overwrite(log, whole);
  Flip(log, whole.size() / 3, 2);
  const auto store = Store::Open(options_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(store.error().message, testing::AllOf(HasSubstr(log + " is damaged at offset "),
                                                    HasSubstr("tacit store verify")));
}

// A record whose length goes beyond the file's end looks as if a crash had cut it. RocksDB drops
// what follows without a word: the highest bits of every length in the list of tables and in the
// log are flipped.
TEST_F(VerifyTest, ALengthThatGoesBeyondTheEndIsDamageAndNoCut) {
  options_.fold_after_commits = 100;
  Train(6, /*settle=*/false);
  int records = 0;
  for (const std::string& log : FilesIn(options_.path, "")) {
    if (!log.ends_with(".log") && log.find("MANIFEST-") == std::string::npos) continue;
    const std::string whole = BytesIn(log);
    if (whole.empty()) continue;
    for (size_t at = whole.size() / kBlock * kBlock; at + 7 <= whole.size();) {
      const size_t length =
          static_cast<uint8_t>(whole[at + 4]) | size_t{static_cast<uint8_t>(whole[at + 5])} << 8;
      for (const int bit : {6, 7}) {
        Overwrite(log, whole);
        Flip(log, at + 5, bit);
        const auto damage = FindLogDamage(log);
        ASSERT_TRUE(damage && *damage) << log << " at " << at;
        EXPECT_FALSE((*damage)->torn) << log << " at " << at;
        EXPECT_EQ((*damage)->offset, at);
      }
      at += 7 + length;
      ++records;
    }
    // A crash cuts it.
    Overwrite(log, whole.substr(0, whole.size() - 3));
    const auto torn = FindLogDamage(log);
    ASSERT_TRUE(torn && *torn);
    EXPECT_TRUE((*torn)->torn) << log;
    Overwrite(log, whole);
  }
  EXPECT_GT(records, 5);
}

class RecoverTest : public VerifyTest {
 protected:
  // Nine commits, a checkpoint after the fourth.
  void Make(CheckpointKind kind) {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 9; ++i) {
      ASSERT_TRUE(Script::Step(*store));
      if (i != 3) continue;
      const auto made = store->MakeCheckpoint(
          {.kind = kind, .parent = folder_.root() + "/checkpoints", .schema = ""});
      ASSERT_TRUE(made) << made.error().message;
      checkpoint_ = made->place.folder;
    }
    entries_ = *store->Latest()->LedgerEntries(0, ~uint64_t{0});
    head_ = store->Latest()->head();
    ASSERT_TRUE(store->Settle());
  }
  void ExpectAll(const RecoveredLedger& recovered) const {
    EXPECT_TRUE(recovered.complete);
    ASSERT_EQ(recovered.entries.size(), entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i)
      EXPECT_EQ(recovered.entries[i].Encode(), entries_[i]);
  }
  // Flips every block of the table that holds the ledger.
  void DamageLedger() {
    std::vector<std::string> tables;
    {
      const auto rocks = *Rocks::OpenReadOnly(options_.path);
      std::vector<rocksdb::LiveFileMetaData> files;
      rocks->db().GetLiveFilesMetaData(&files);
      for (const auto& file : files)
        if (file.column_family_name == "ledger")
          tables.push_back(options_.path + "/" + file.relative_filename);
    }
    ASSERT_FALSE(tables.empty());
    for (const std::string& table : tables) {
      std::string bytes = BytesIn(table);
      for (size_t i = 10; i < bytes.size(); i += 200) bytes[i] = static_cast<char>(bytes[i] ^ 1);
      Overwrite(table, bytes);
    }
  }

  std::string checkpoint_;
  std::vector<std::string> entries_;
  Digest head_{};
};

TEST_F(RecoverTest, AWholeLedgerIsFound) {
  Make(CheckpointKind::kRelease);
  const auto recovered = RecoverLedger({options_.path, {}, head_});
  ASSERT_TRUE(recovered) << recovered.error().message;
  ExpectAll(*recovered);
}

TEST_F(RecoverTest, WhatTheStoreHasLostACheckpointTells) {
  for (const CheckpointKind kind : {CheckpointKind::kRelease, CheckpointKind::kFull}) {
    fs::remove_all(options_.path);
    fs::remove(options_.witness);
    Make(kind);
    DamageLedger();
    const auto alone = RecoverLedger({options_.path, {}, head_});
    EXPECT_FALSE(alone && alone->complete);
    const auto recovered = RecoverLedger({options_.path, {checkpoint_}, head_});
    ASSERT_TRUE(recovered) << recovered.error().message;
    // As far as the checkpoint goes; the entries after it were in the damaged table alone.
    const auto remains = ReadRemains(checkpoint_);
    ASSERT_TRUE(remains);
    EXPECT_EQ(recovered->entries.back().head, remains->head);
    EXPECT_FALSE(recovered->unreadable.empty());
  }
}

TEST_F(RecoverTest, TablesThatNoListNamesAreRead) {
  Make(CheckpointKind::kFull);
  for (const std::string& list : FilesIn(options_.path, "MANIFEST-")) {
    std::string bytes = BytesIn(list);
    for (size_t i = 0; i < bytes.size(); i += 50) bytes[i] = static_cast<char>(bytes[i] ^ 16);
    Overwrite(list, bytes);
  }
  const auto recovered = RecoverLedger({options_.path, {}, head_});
  ASSERT_TRUE(recovered) << recovered.error().message;
  ExpectAll(*recovered);
}

// Every key and number here has its checksum right, as a forger writes them, or memory with a
// flipped bit: what the ledger counts up to is no bound of the work.
TEST_F(RecoverTest, ForgedNumbersArePassedOver) {
  Make(CheckpointKind::kFull);
  {
    const auto rocks =
        *Rocks::Open(options_.path, options_.memory_bytes, std::make_shared<FailureLatch>());
    auto tip = *DecodeTip(**rocks->Get(Family::kMeta, meta::kTip));
    tip.ledger_entries = uint64_t{1} << 62;
    rocksdb::WriteBatch batch;
    batch.Put(rocks->family(Family::kMeta), AsSlice(meta::kTip), Seal(EncodeTip(tip)));
    for (const std::string& key : {SequenceKey(uint64_t{1} << 40), SequenceKey(~uint64_t{0}),
                                   SequenceKey(uint64_t{1} << 40) + "x", std::string("y")})
      batch.Put(rocks->family(Family::kLedger), key, Seal(entries_[0]));
    ASSERT_TRUE(rocks->WriteSynced(batch));
    ASSERT_TRUE(rocks->EmptyLog());
  }
  const auto recovered = RecoverLedger({options_.path, {}, head_});
  ASSERT_TRUE(recovered) << recovered.error().message;
  ExpectAll(*recovered);
  EXPECT_THAT(recovered->unreadable,
              testing::ElementsAre(
                  HasSubstr(fmt::format("ledger entries {} to {} of store {}: not found",
                                        entries_.size(), (uint64_t{1} << 40) - 1, options_.path)),
                  HasSubstr(fmt::format("ledger entries {} to {} of store", (uint64_t{1} << 40) + 1,
                                        ~uint64_t{0} - 1))));
  // A damaged block that reaches to such a number is given up, too.
  DamageLedger();
  const auto damaged = RecoverLedger({options_.path, {checkpoint_}, std::nullopt});
  ASSERT_TRUE(damaged) << damaged.error().message;
  EXPECT_FALSE(damaged->entries.empty());
  EXPECT_LT(damaged->unreadable.size(), 10u);
  EXPECT_THAT(damaged->unreadable.back(), HasSubstr("the tables have no room for as many"));
}

class RepairTest : public VerifyTest {
 protected:
  // Changes a value behind the store's back, RocksDB's checksums included.
  void Damage(Family family, const std::string& key) {
    const auto rocks =
        Rocks::Open(folder_.store(), options_.memory_bytes, std::make_shared<FailureLatch>());
    ASSERT_TRUE(rocks);
    std::string value;
    ASSERT_TRUE((*rocks)->db().Get({}, (*rocks)->family(family), key, &value).ok());
    value.back() = static_cast<char>(value.back() ^ 4);
    ASSERT_TRUE((*rocks)->db().Put({}, (*rocks)->family(family), key, value).ok());
    ASSERT_TRUE((*rocks)->EmptyLog());
  }
  Result<Repair> TryRepair() { return RepairStore(options_.path, {.witness = options_.witness}); }
  void ExpectWhole() { Script::ExpectStore(*MustOpen(options_)); }
};

TEST_F(RepairTest, NothingIsDoneToAWholeStore) {
  Train(5);
  const auto repair = TryRepair();
  ASSERT_TRUE(repair) << repair.error().message;
  EXPECT_TRUE(repair->done.empty());
}

TEST_F(RepairTest, TheNameOfTheOneListOfTablesIsWrittenAnew) {
  Train(5);
  const std::string current = options_.path + "/CURRENT";
  for (const char* bytes : {"MANIFEST-000099\n", "", "MANIF", "gone"}) {
    Overwrite(current, bytes);
    if (std::string(bytes) == "gone") fs::remove(current);
    ASSERT_FALSE(Store::Open(options_));
    // Without a witness nothing is begun anew in its place either.
    StoreOptions alone = options_;
    alone.witness.clear();
    const auto store = Store::Open(alone);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kCorruption) << store.error().message;
    const auto repair = TryRepair();
    ASSERT_TRUE(repair) << repair.error().message;
    EXPECT_THAT(repair->done, testing::ElementsAre(HasSubstr("CURRENT was made anew")));
    ExpectWhole();
  }
}

TEST_F(RepairTest, BetweenTwoListsItDoesNotChoose) {
  Train(5);
  const std::string list = FilesIn(options_.path, "MANIFEST-").at(0);
  Overwrite(options_.path + "/MANIFEST-000001", BytesIn(list));
  Overwrite(options_.path + "/CURRENT", "x");
  const auto repair = TryRepair();
  ASSERT_FALSE(repair);
  EXPECT_EQ(repair.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(repair.error().message, HasSubstr("which one is in force cannot be told"));
  EXPECT_EQ(BytesIn(options_.path + "/CURRENT"), "x");
}

TEST_F(RepairTest, AValueThatFollowsFromOthersIsDropped) {
  Train(5);
  Damage(Family::kMeta, std::string(meta::kKnownTime));
  ASSERT_FALSE(Store::Open(options_));
  const auto repair = TryRepair();
  ASSERT_TRUE(repair) << repair.error().message;
  EXPECT_EQ(repair->done.size(), 1u);
  ExpectWhole();
}

TEST_F(RepairTest, WhatNothingTellsIsNotGuessed) {
  Train(5);
  Damage(Family::kLedger, SequenceKey(0));
  Damage(Family::kMeta, std::string(meta::kKnownTime));
  const auto repair = TryRepair();
  ASSERT_FALSE(repair);
  EXPECT_EQ(repair.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(repair.error().message, HasSubstr("ledger"));
}

TEST_F(RepairTest, ADamagedTableIsNotRepaired) {
  Train(9);
  const std::string table = FilesIn(options_.path, ".sst").at(0);
  Flip(table, fs::file_size(table) / 2, 3);
  const std::string damaged = BytesIn(table);
  const auto repair = TryRepair();
  ASSERT_FALSE(repair);
  EXPECT_THAT(repair.error().message, HasSubstr(table));
  EXPECT_EQ(BytesIn(table), damaged);
}

// A running store reads its own tables.
TEST_F(VerifyTest, ARunningStoreFindsADamagedTable) {
  Train(9);
  const auto store = MustOpen(options_);
  const auto none = store->FindDamage({});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  const std::string table = FilesIn(options_.path, ".sst").at(0);
  {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(table) / 2));
    const char byte = static_cast<char>(file.peek());
    file.put(static_cast<char>(byte ^ 1));
  }
  uint64_t read = 0;
  const auto found = store->FindDamage([&](uint64_t bytes, uint64_t) {
    read += bytes;
    return true;
  });
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].file, table);
  EXPECT_GT(read, 0u);
  const auto given_up = store->FindDamage([](uint64_t, uint64_t) { return false; });
  ASSERT_TRUE(given_up);
  EXPECT_LE(given_up->size(), 1u);
}

}  // namespace
}  // namespace tacit::store
