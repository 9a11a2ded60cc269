#include "store/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <thread>

#include "script.h"
#include "store/checkpoint/checkpoint_full.h"
#include "store/checkpoint/checkpoint_hold.h"
#include "store/disk/file_digest.h"
#include "store/disk/rocks.h"
#include "store/users/user_values.h"
#include "support/eventually.h"
#include "support/files_below.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void WriteWhole(const std::string& path, const std::string& bytes) {
  fs::remove(path);  // it may be linked
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string AllBytes(const std::string& folder) {
  std::string bytes;
  for (const fs::path& file : test::FilesBelow(folder)) bytes += ReadWhole(file);
  return bytes;
}

class CheckpointTest : public testing::TestWithParam<CheckpointKind> {
 protected:
  CheckpointTest() : options_(TestOptions(folder_)) {}

  std::string parent() const { return folder_.root() + "/checkpoints"; }
  static void Train(Store& store, int commits) {
    for (int i = 0; i < commits; ++i) {
      const Status step = Script::Step(store);
      ASSERT_TRUE(step) << step.error().message;
    }
  }
  CheckpointMade Make(Store& store, CheckpointKind kind) {
    auto made = store.MakeCheckpoint({.kind = kind, .parent = parent(), .schema = "a schema"});
    if (!made) ADD_FAILURE() << made.error().message;
    TACIT_CHECK(made.has_value());
    return *std::move(made);
  }
  ReadOnlyStore Read(const std::string& folder) {
    auto read = OpenReadOnly(folder, "", options_.learners);
    if (!read) ADD_FAILURE() << read.error().message;
    TACIT_CHECK(read.has_value());
    return *std::move(read);
  }
  // A copy that shares no file with the store.
  std::string CopyOf(const std::string& folder) {
    const std::string copy = folder_.root() + "/copy";
    fs::remove_all(copy);
    fs::copy(folder, copy, fs::copy_options::recursive);
    return copy;
  }

  const TestFolder folder_;
  StoreOptions options_;
};

// Everything that serving reads, bit for bit.
void ExpectServesTheSame(const Snapshot& got, const Snapshot& expected,
                         const std::vector<LearnerLayout>& learners) {
  ASSERT_EQ(got.version(), expected.version());
  ASSERT_EQ(got.head(), expected.head());
  ASSERT_EQ(got.lineage(), expected.lineage());
  for (uint16_t l = 0; l < learners.size(); ++l) {
    const LearnerIndex learner(l);
    const RowSpace& space = learners[l].rows.space;
    std::vector<uint64_t> rows(space.rows());
    size_t floats = 0;
    for (size_t row = 0; row < rows.size(); ++row) {
      rows[row] = row;
      floats += space.tables()[space.TableOf(row)].dim;
    }
    std::vector<float> a(floats), b(floats);
    ASSERT_TRUE(got.Rows(learner, rows, a));
    ASSERT_TRUE(expected.Rows(learner, rows, b));
    ASSERT_EQ(a, b);
    const auto x = got.ServedDense(learner), y = expected.ServedDense(learner);
    ASSERT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end()));
    const auto state = got.Released(learner), other = expected.Released(learner);
    ASSERT_EQ(state != nullptr, other != nullptr);
    if (state) {
      ASSERT_EQ(*state, *other);
    }
  }
  ASSERT_EQ(*got.LedgerEntries(0, ~uint64_t{0}), *expected.LedgerEntries(0, ~uint64_t{0}));
  ASSERT_EQ(got.total().epsilon, expected.total().epsilon);
  ASSERT_EQ(got.learners().size(), expected.learners().size());
  Script::ExpectLedger(got);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CheckpointTest,
                         testing::Values(CheckpointKind::kFull, CheckpointKind::kRelease),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

// The store goes on, folds and is closed; the checkpoint stays at its commit.
TEST_P(CheckpointTest, IsTheStoreAtItsCommit) {
  auto store = MustOpen(options_);
  for (const int commits : {1, 1, 1, 3, 2}) {
    Train(*store, commits);
    const auto then = store->Latest();
    const CheckpointMade made = Make(*store, GetParam());
    EXPECT_FALSE(made.existed);
    EXPECT_EQ(made.files_read, 0u);
    const CheckpointManifest& manifest = made.place.manifest;
    EXPECT_EQ(manifest.commit, then->version());
    EXPECT_EQ(manifest.epsilon, then->total().epsilon);
    EXPECT_EQ(manifest.schema, "a schema");
    EXPECT_EQ(manifest.learners[0].model_fingerprint,
              options_.learners[0].promise.model_fingerprint);
    Train(*store, 3);
    const auto checked = CheckCheckpoint(made.place.folder, CheckpointCheck::kEveryByte);
    ASSERT_TRUE(checked) << checked.error().message;
    const ReadOnlyStore one = Read(made.place.folder), two = Read(made.place.folder);
    EXPECT_EQ(one.checkpoint, GetParam());
    EXPECT_EQ(one.promises.learners.size(), options_.learners.size());
    ExpectServesTheSame(*one.snapshot, *then, options_.learners);
    ExpectServesTheSame(*two.snapshot, *then, options_.learners);
    if (GetParam() == CheckpointKind::kFull) Script::ExpectSnapshot(*one.snapshot);
  }
  store.reset();
  const auto places = ListCheckpoints(parent(), nullptr);
  EXPECT_EQ(places->size(), 5u);
  for (const CheckpointPlace& place : *places)
    EXPECT_EQ(Read(place.folder).snapshot->version(), place.manifest.commit);
}

TEST_P(CheckpointTest, OfTheSameCommitIsTheSame) {
  const auto store = MustOpen(options_);
  const auto none = store->MakeCheckpoint({GetParam(), parent(), ""});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  Train(*store, 2);
  const CheckpointMade first = Make(*store, GetParam());
  const CheckpointMade again = Make(*store, GetParam());
  EXPECT_TRUE(again.existed);
  EXPECT_EQ(again.place.folder, first.place.folder);
}

TEST_P(CheckpointTest, IsMadeWhileCommitsGoOn) {
  const auto store = MustOpen(options_);
  Train(*store, 1);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) ASSERT_TRUE(Script::Step(*store));
  });
  double paused_ms = 0;
  for (int i = 0; i < 8; ++i) {
    const uint64_t before = store->Latest()->version().value;
    const CheckpointMade made = Make(*store, GetParam());
    paused_ms = std::max(paused_ms, made.paused_ms);
    EXPECT_GE(made.place.manifest.commit.value, before);
    EXPECT_EQ(made.files_read, 0u);
    const auto checked = CheckCheckpoint(made.place.folder, CheckpointCheck::kEveryByte);
    EXPECT_TRUE(checked) << checked.error().message;
    const ReadOnlyStore read = Read(made.place.folder);
    if (GetParam() == CheckpointKind::kFull) Script::ExpectSnapshot(*read.snapshot);
    Script::ExpectLedger(*read.snapshot);
    EXPECT_TRUE(test::Eventually("commits go on", [&] {
      return store->Latest()->version().value > made.place.manifest.commit.value;
    }));
  }
  stop = true;
  writer.join();
  RecordProperty("paused_ms_most", std::to_string(paused_ms));
}

// RocksDB stops all writes while too much waits to be written out, and refuses to begin more.
TEST(WriteOutMemoryTest, WaitsWhereRocksDbHasStoppedWrites) {
  const TestFolder folder;
  const auto latch = std::make_shared<FailureLatch>();
  const auto rocks = *Rocks::Open(folder.root() + "/rocks", 32 << 20, latch);
  rocksdb::DB& db = rocks->db();
  rocksdb::FlushOptions at_once;
  at_once.wait = false;
  at_once.allow_write_stall = true;
  ASSERT_TRUE(db.PauseBackgroundWork().ok());
  for (const char* value : {"a", "b"}) {
    ASSERT_TRUE(db.Put({}, rocks->family(Family::kRows), "key", value).ok());
    ASSERT_TRUE(db.Flush(at_once, rocks->family(Family::kRows)).ok());
  }
  const rocksdb::Status refused = db.Flush(at_once, rocks->family(Family::kRows));
  ASSERT_TRUE(refused.IsTryAgain()) << refused.ToString();

  int asked = 0;
  CheckpointRequest request;
  request.keep_going = [&] { return ++asked < 3; };
  double paused_ms = 0;
  const Status canceled = WriteOutMemory(*rocks, request, &paused_ms);
  ASSERT_FALSE(canceled);
  EXPECT_EQ(canceled.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(asked, 3);

  asked = 0;
  request.keep_going = [&] { return ++asked != 3 || db.ContinueBackgroundWork().ok(); };
  const Status written = WriteOutMemory(*rocks, request, &paused_ms);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_GE(asked, 3);
  std::string waiting;
  ASSERT_TRUE(db.GetProperty(rocks->family(Family::kRows),
                             rocksdb::DB::Properties::kNumImmutableMemTable, &waiting));
  EXPECT_EQ(waiting, "0");
}

// The averages are served, which are written nowhere in the store.
TEST_P(CheckpointTest, ServesTheMovingAverage) {
  constexpr uint32_t kDim = 3, kRows = 50, kState = kDim + 1;
  options_.learners = {MakeLearner("ctr", {{"site", kRows, kDim, kState}})};
  options_.learners[0].rows.average = MovingAverage(0.9);
  const auto store = MustOpen(options_);
  std::mt19937 random(3);
  const auto number = [&] { return static_cast<float>(random() % 1000) / 100; };
  for (uint32_t step = 1; step <= 5; ++step) {
    std::vector<uint64_t> rows;
    for (uint64_t row = random() % 5; row < kRows; row += 1 + random() % 9) rows.push_back(row);
    std::vector<float*> places(rows.size());
    WorkingRows& working = store->working_rows(LearnerIndex(0));
    ASSERT_TRUE(working.Gather(rows, places));
    for (float* place : places) {
      std::generate(place, place + kDim + kState, number);
      place[kDim + kState - 1] = CountAsFloat(step);
    }
    working.MarkChanged(rows);
    auto dense = std::make_shared<DenseState>();
    dense->parameters = {1, 2};
    dense->optimizer = {5, number(), CountAsFloat(step)};
    CommitRequest request;
    request.learners.push_back(
        {LearnerIndex(0), working.TakeDelta(), dense, "p", {TestCharge("ctr", step)}});
    ASSERT_TRUE(store->Commit(std::move(request), {}));
    ASSERT_TRUE(store->Flush());
    ExpectServesTheSame(*Read(Make(*store, GetParam()).place.folder).snapshot, *store->Latest(),
                        options_.learners);
  }
}

TEST_P(CheckpointTest, NoStoreIsOpenedInOne) {
  {
    const auto store = MustOpen(options_);
    Train(*store, 3);
    options_.path = Make(*store, GetParam()).place.folder;
  }
  const auto refused = Store::Open(options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("is a checkpoint"));
  if (GetParam() == CheckpointKind::kFull) return;
  options_.path = CopyOf(options_.path);
  fs::remove(options_.path + "/" + kCheckpointManifestName);
  options_.witness = "";
  const auto still = Store::Open(options_);
  ASSERT_FALSE(still);
  EXPECT_EQ(still.error().code, ErrorCode::kRefused);
}

TEST_P(CheckpointTest, AnotherModelIsRefused) {
  const auto store = MustOpen(options_);
  Train(*store, 1);
  const CheckpointMade made = Make(*store, GetParam());
  options_.learners[0].promise.model_fingerprint.fill(77);
  const auto refused = OpenReadOnly(made.place.folder, "", options_.learners);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
}

// All rows of the first learner.
Result<std::vector<float>> AllRows(const Snapshot& snapshot) {
  std::vector<uint64_t> rows(240);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> floats(40 * 4 + 200 * 8);
  TACIT_RETURN_IF_ERROR(snapshot.Rows(LearnerIndex(0), rows, floats));
  return floats;
}

// One flipped bit anywhere: a whole check names the file. Opening sees it too, unless it lies in a
// table, whose blocks RocksDB checks as it reads them.
TEST_P(CheckpointTest, AFlippedBitIsFound) {
  std::string made;
  {
    const auto store = MustOpen(options_);
    Train(*store, 5);
    made = Make(*store, GetParam()).place.folder;
  }
  std::mt19937_64 random(5);
  size_t flips = 0, refused = 0, tables = 0, met = 0;
  const std::vector<float> expected = *AllRows(*Read(made).snapshot);
  for (const fs::path& file : test::FilesBelow(made)) {
    const std::string name = file.lexically_relative(made);
    const bool manifest = name == kCheckpointManifestName;
    const std::string copy = CopyOf(made), path = copy + "/" + name, whole = ReadWhole(path);
    const size_t tries = manifest ? whole.size() : std::min<size_t>(whole.size(), 12);
    for (size_t i = 0; i < tries; ++i) {
      std::string bytes = whole;
      const size_t place = manifest ? i : random() % bytes.size();
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
      WriteWhole(path, bytes);
      const auto checked = CheckCheckpoint(copy, CheckpointCheck::kEveryByte);
      ASSERT_FALSE(checked) << name << " at " << place;
      ASSERT_THAT(checked.error().message, HasSubstr(name));
      flips += 1;
      if (manifest && i % 40 != 0) continue;
      const auto opened = OpenReadOnly(copy, "", options_.learners);
      const bool table = name.ends_with(".sst") || name.ends_with(".blob");
      tables += table;
      refused += !opened;
      if (!table) {
        ASSERT_FALSE(opened) << name << " at " << place;
      }
      // A table's damage that opening passed over is met when it is read, or changes no answer.
      if (!opened) continue;
      const auto rows = AllRows(*opened->snapshot);
      if (rows) {
        ASSERT_EQ(*rows, expected);
      }
      met += !rows;
    }
  }
  EXPECT_GT(flips, 500u);
  EXPECT_GT(tables, 20u);
  RecordProperty("flips", std::to_string(flips));
  RecordProperty("refused_at_open", std::to_string(refused));
  RecordProperty("met_when_read", std::to_string(met));
}

TEST_P(CheckpointTest, AMissingOrShortOrAddedFileIsRefused) {
  const auto store = MustOpen(options_);
  Train(*store, 5);
  const std::string made = Make(*store, GetParam()).place.folder;
  const auto expect = [&](const std::string& copy, const std::string& says) {
    const auto opened = OpenReadOnly(copy, "", options_.learners);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(opened.error().message, HasSubstr(says));
  };
  for (const fs::path& file : test::FilesBelow(made)) {
    const std::string name = file.lexically_relative(made);
    if (name == kCheckpointManifestName) continue;
    std::string copy = CopyOf(made);
    fs::remove(copy + "/" + name);
    expect(copy, name + " is missing");
    copy = CopyOf(made);
    if (fs::file_size(copy + "/" + name) == 0) continue;
    fs::resize_file(copy + "/" + name, fs::file_size(copy + "/" + name) - 1);
    expect(copy, name + " has ");
  }
  const std::string copy = CopyOf(made);
  WriteWhole(copy + "/999999.log", "");
  expect(copy, "999999.log is not in the manifest");
}

// A table that was damaged on the disk goes into the checkpoint with the checksum it was written
// with: making one reads no table, and checking it finds the damage.
// A damaged table is linked with the checksum of what was written, which is how a check finds it.
TEST_F(CheckpointTest, ReadsNoTableWhenItIsMade) {
  {
    const auto store = MustOpen(options_);
    Train(*store, 6);
    ASSERT_TRUE(store->Settle());
  }
  const auto rocks =
      *Rocks::Open(folder_.store(), options_.memory_bytes, std::make_shared<FailureLatch>());
  // A compaction would read the tables.
  ASSERT_TRUE(rocks->db().PauseBackgroundWork().ok());
  const KeepFiles keep(*rocks);
  const auto files = ListLiveFiles(*rocks);
  ASSERT_TRUE(files) << files.error().message;
  for (const fs::path& table : test::FilesBelow(folder_.store())) {
    if (table.extension() != ".sst") continue;
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    const char byte = static_cast<char>(file.get());
    file.seekp(0);
    file.put(static_cast<char>(byte ^ 1));
  }
  const std::string linked = folder_.root() + "/linked";
  CheckpointMade made;
  fs::create_directory(linked);
  const auto links = LinkFiles(*rocks, *files, {}, linked, &made);
  ASSERT_TRUE(links) << links.error().message;
  EXPECT_EQ(made.files_read, 0u);
  size_t tables = 0;
  for (const CheckpointFile& file : *links) {
    const bool is_table = file.name.ends_with(".sst");
    tables += is_table;
    EXPECT_EQ(*DigestOfFile(linked + "/" + file.name, file.bytes) != file.sha256, is_table);
  }
  EXPECT_GT(tables, 0u);
}

constexpr Hash128 kPlanted{0x0123456789abcdef, 0xfedcba9876543210};

// Raw values are found in a full checkpoint, so the search can find it, and not in a
// release.
TEST_F(CheckpointTest, AReleaseHoldsNothingRaw) {
  std::vector<std::pair<std::string, std::string>> secrets;
  std::string full, release;
  {
    const auto store = MustOpen(options_);
    Train(*store, 7);
    const LearnerState state = store->State(LearnerIndex(0));
    CommitRequest request;
    request.source_identity = "planted source";
    request.learners.push_back(
        {LearnerIndex(0), nullptr, state.dense, "planted position", {TestCharge("ctr", 8)}});
    request.learners.back().allowances =
        AllowanceCommit{.step = 8, .uses = {{.user = kPlanted, .used = 1}}};
    request.learners.back().histories = HistoryCommit{
        .step = 8, .appended = {{.user = kPlanted, .items = {{0xfeedbeef, 0x1234567890}}}}};
    request.learners.back().histories->items_most = 10;
    ASSERT_TRUE(store->Commit(std::move(request), {}));
    ASSERT_TRUE(store->Flush());
    full = Make(*store, CheckpointKind::kFull).place.folder;
    release = Make(*store, CheckpointKind::kRelease).place.folder;
    const SipHash::Key key = store->user_key();
    secrets.emplace_back("user key", std::string(key.begin(), key.end()));
  }
  {
    const auto rocks = Rocks::OpenReadOnly(full);
    ASSERT_TRUE(rocks) << rocks.error().message;
    secrets.emplace_back("salt", **(*rocks)->Get(Family::kMeta, meta::kSalt));
  }
  secrets.emplace_back("position", "planted position");
  secrets.emplace_back("source", "planted source");
  secrets.emplace_back("half of a user", UserKey(0, kPlanted).substr(2, 8));
  secrets.emplace_back("other half of a user", UserKey(0, kPlanted).substr(10));
  secrets.emplace_back("item of a history", "\xef\xbe\xed\xfe");
  secrets.emplace_back("topic of the ranges", "events");
  const std::string in_full = AllBytes(full), in_release = AllBytes(release);
  for (const auto& [name, secret] : secrets) {
    EXPECT_NE(in_full.find(secret), std::string::npos) << name;
    EXPECT_EQ(in_release.find(secret), std::string::npos) << name;
  }
  // Keys in a table leave out what they share with the key before them, so look for the ends.
  size_t users_in_full = 0;
  for (uint64_t u = 1; u < Script::kUsers; ++u) {  // user 0 is of zeros and ones, as other values
    const std::string user = UserKey(0, {u, ~u}).substr(2);
    users_in_full += in_full.find(user) != std::string::npos;
    EXPECT_EQ(in_release.find(user), std::string::npos) << "user " << u;
    EXPECT_EQ(in_release.find(user.substr(8)), std::string::npos) << "user " << u;
  }
  EXPECT_GT(users_in_full, 0u);
  const ReadOnlyStore reader = Read(release);
  for (uint64_t u = 0; u < Script::kUsers; ++u)
    EXPECT_TRUE(reader.snapshot->History(LearnerIndex(0), {u, ~u})->empty());
}

TEST_F(CheckpointTest, TheOldestArePrunedPerKind) {
  const auto store = MustOpen(options_);
  for (int i = 0; i < 4; ++i) {
    Train(*store, 1);
    Make(*store, CheckpointKind::kFull);
    if (i < 2) Make(*store, CheckpointKind::kRelease);
  }
  fs::create_directories(parent() + "/.making");
  fs::create_directories(parent() + "/.removing-x");
  const auto removed = PruneCheckpoints(parent(), 2);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->size(), 2u);
  std::vector<std::pair<CheckpointKind, uint64_t>> left;
  const auto places = ListCheckpoints(parent(), nullptr);
  for (const CheckpointPlace& place : *places)
    left.emplace_back(place.manifest.kind, place.manifest.commit.value);
  using Left = std::pair<CheckpointKind, uint64_t>;
  EXPECT_THAT(left, testing::UnorderedElementsAre(
                        Left(CheckpointKind::kRelease, 1), Left(CheckpointKind::kRelease, 2),
                        Left(CheckpointKind::kFull, 3), Left(CheckpointKind::kFull, 4)));
  EXPECT_FALSE(fs::exists(parent() + "/.making"));
  EXPECT_FALSE(fs::exists(parent() + "/.removing-x"));
}

TEST_F(CheckpointTest, OneThatIsHeldStaysWhereItIs) {
  const auto store = MustOpen(options_);
  std::vector<std::string> made;
  for (int i = 0; i < 3; ++i) {
    Train(*store, 1);
    made.push_back(Make(*store, CheckpointKind::kFull).place.folder);
  }
  {
    const auto hold = CheckpointHold::Take(made[0]);
    ASSERT_TRUE(hold) << hold.error().message;
    EXPECT_TRUE(CheckpointHold::Take(made[0])) << "two may serve it";
    std::vector<std::string> held;
    const auto removed = PruneCheckpoints(parent(), 1, &held);
    ASSERT_TRUE(removed);
    EXPECT_THAT(*removed, testing::ElementsAre(made[1]));
    EXPECT_THAT(held, testing::ElementsAre(made[0]));
    EXPECT_TRUE(CheckCheckpoint(made[0], CheckpointCheck::kEveryByte));
  }
  EXPECT_THAT(*PruneCheckpoints(parent(), 1), testing::ElementsAre(made[0]));
  EXPECT_EQ(CheckpointHold::Take(made[0]).error().code, ErrorCode::kNotFound);
  // A checkpoint that is about to be removed cannot be taken into use.
  const auto claim = ClaimForRemoval(made[2]);
  ASSERT_TRUE(claim);
  EXPECT_EQ(CheckpointHold::Take(made[2]).error().code, ErrorCode::kUnavailable);
}

TEST_F(CheckpointTest, AnUnreadableManifestIsNamedInTheList) {
  const auto store = MustOpen(options_);
  Train(*store, 1);
  const std::string made = Make(*store, CheckpointKind::kFull).place.folder;
  const std::string manifest = made + "/" + kCheckpointManifestName;
  WriteWhole(manifest, ReadWhole(manifest) + "x");
  std::vector<std::string> unreadable;
  EXPECT_TRUE(ListCheckpoints(parent(), &unreadable)->empty());
  EXPECT_THAT(unreadable, testing::ElementsAre(HasSubstr(manifest)));
}

TEST(CheckpointManifestTest, TextsOfAnyBytesComeBack) {
  CheckpointManifest manifest;
  manifest.kind = CheckpointKind::kRelease;
  manifest.lineage = std::string(32, 'a');
  manifest.commit = CommitSeq(7);
  manifest.epsilon = INFINITY;
  manifest.schema = "two\nlines, 100 % of them \xff";
  manifest.learners.resize(2);
  manifest.learners[1].name = "a learner";
  manifest.learners[1].unit = privacy::Unit::kUser;
  manifest.learners[1].epsilon = 0.1;
  manifest.learners[1].tables = {{"", 3, 4, 5}};
  manifest.files = {{"000001.sst", 77, Digest{1}}, {"CURRENT", 16, Digest{2}}};
  const auto read = DecodeManifest(EncodeManifest(manifest));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(EncodeManifest(*read), EncodeManifest(manifest));
  EXPECT_EQ(read->schema, manifest.schema);
  EXPECT_EQ(read->learners[1].tables, manifest.learners[1].tables);
  EXPECT_EQ(read->learners[1].unit, privacy::Unit::kUser);
  EXPECT_EQ(read->files, manifest.files);
}

// A name that leads elsewhere, or is taken, is none, with any digest.
TEST(CheckpointManifestTest, AFileOutsideTheFolderIsRefused) {
  for (const char* name : {"../x", "/etc/passwd", "", "..", ".hidden", "rows", "rows/1-0",
                           "rows/1-0/../x", kCheckpointManifestName}) {
    CheckpointManifest manifest;
    manifest.files = {{"CURRENT", 1, Digest{}}, {name, 1, Digest{}}};
    std::ranges::sort(manifest.files, {}, &CheckpointFile::name);
    const auto read = DecodeManifest(EncodeManifest(manifest));
    ASSERT_FALSE(read) << name;
    EXPECT_THAT(read.error().message, HasSubstr("which is no file of a store")) << name;
  }
}

TEST(CheckpointManifestTest, OneWithoutAStoresFilesIsRefused) {
  for (const bool with_a_table : {false, true}) {
    CheckpointManifest manifest;
    if (with_a_table) manifest.files = {{"000001.sst", 77, Digest{1}}};
    const auto read = DecodeManifest(EncodeManifest(manifest));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("it names no file CURRENT"));
  }
}

TEST(CheckpointManifestTest, OneFromBeforeTheFirstFormatIsRefused) {
  const auto read = ReadManifest(TACIT_SOURCE_DIR "/tests/fixtures/before-0.1.0/checkpoint");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kRefused);
  EXPECT_THAT(read.error().message,
              HasSubstr("before-0.1.0/checkpoint/checkpoint.manifest: the checkpoint was written "
                        "before 0.1.0"));
}

TEST(CheckpointManifestTest, ALaterFormatIsRefusedByItsNumber) {
  const auto later = DecodeManifest("tacit checkpoint 2\nanything\n");
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::kRefused);
  EXPECT_THAT(later.error().message, HasSubstr("2"));
}

}  // namespace
}  // namespace tacit::store
