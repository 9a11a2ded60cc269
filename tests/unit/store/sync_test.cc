// A store syncs what a loss of power may not take: each batch of its log before the next one is
// written, so that the last one alone is torn, and the names of its files and folders.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "base/threads/mutex.h"
#include "replica_script.h"
#include "script.h"
#include "store/disk/rocks.h"
#include "store/outbox.h"

namespace tacit::store {
namespace {

thread_local uint64_t log_syncs = 0;   // by this thread: RocksDB's own threads sync logs, too
std::atomic<int> list_syncs_left = 0;  // of lists of tables: the last one fails; 0: none does
Mutex mutex;
std::set<std::string> synced_folders;

std::string PathOf(int fd) {
  std::string path(512, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return path.substr(0, static_cast<size_t>(std::max<ssize_t>(length, 0)));
}

bool Fails(int fd) {
  const std::string path = PathOf(fd);
  log_syncs += path.ends_with(".log");
  return path.find("/MANIFEST-") != path.npos && list_syncs_left > 0 && --list_syncs_left == 0;
}

void NoteFolder(int fd) {
  const MutexLock lock(mutex);
  synced_folders.insert(PathOf(fd));
}
bool HasSynced(const std::string& folder) {
  const MutexLock lock(mutex);
  return synced_folders.contains(folder);
}
void ForgetFolders() {
  const MutexLock lock(mutex);
  synced_folders.clear();
}

}  // namespace
}  // namespace tacit::store

extern "C" {

// RocksDB syncs its files by this call.
int fdatasync(int fd) {
  if (!tacit::store::Fails(fd)) return static_cast<int>(syscall(SYS_fdatasync, fd));
  errno = EIO;
  return -1;
}

int fsync(int fd) {
  tacit::store::NoteFolder(fd);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

}  // extern "C"

namespace tacit::store {
namespace {

TEST(SyncTest, DeltasThatThePublisherHasTakenAreDeletedBySyncedBatches) {
  const TestFolder folder;
  const auto rocks =
      Rocks::Open(folder.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>());
  ASSERT_TRUE(rocks) << rocks.error().message;
  rocksdb::WriteBatch deltas;
  for (const uint64_t seq : {1, 2})
    deltas.Put((*rocks)->family(Family::kDeltas), SequenceKey(seq), "delta");
  ASSERT_TRUE((*rocks)->WriteSynced(deltas));
  Outbox outbox;
  ASSERT_TRUE(outbox.Find(**rocks));
  for (const uint64_t taken : {1, 2}) {
    const uint64_t before = log_syncs;
    ASSERT_TRUE(outbox.Trim(**rocks, CommitSeq(taken), 1 << 20));
    EXPECT_EQ(log_syncs - before, 1u) << "the batch that deletes delta " << taken;
  }
  EXPECT_EQ(outbox.bytes(), 0u);
}

// A first version with more rows than a batch may have, some of which were taken ahead.
TEST(SyncTest, EachBatchOfAReplicasFirstVersionIsSynced) {
  constexpr uint64_t kRows = 500'000;
  constexpr uint32_t kDim = 32;
  const TestFolder folder;
  ReplicaOptions options = ReplicaTestOptions(folder.root() + "/replica");
  options.learners = {MakeLearner("ctr", {{"item", kRows, kDim, 0}})};
  const auto store = ReplicaStore::Open(options);
  ASSERT_TRUE(store) << store.error().message;
  ReplicaOrigin origin = ReplicaTestOrigin();
  origin.learners = {{0, "ctr", options.learners[0].promise.model_fingerprint,
                      ReplicaLayout(options.learners[0].rows)}};
  ASSERT_TRUE((*store)->Begin(origin));
  const auto rows_to = [](uint64_t end) {
    auto rows = std::make_shared<RowDelta>();
    for (uint64_t row = 0; row < end; ++row) {
      rows->rows.push_back(row);
      rows->floats.resize(rows->floats.size() + kDim, static_cast<float>(row));
      rows->end.push_back(rows->floats.size());
    }
    return rows;
  };
  ASSERT_TRUE((*store)->Fill({{.key = 0, .rows = rows_to(1)}}));
  ReplicaVersion version = ReplicaVersionOf(2);
  version.learners = {{.key = 0, .rows = rows_to(kRows)}};
  const uint64_t before = log_syncs;
  const Status applied = (*store)->Apply(std::move(version));
  ASSERT_TRUE(applied) << applied.error().message;
  // 64 MB of values and 6.5 MB of keys, by 32 MiB.
  EXPECT_EQ(log_syncs - before, 3u);
}

// A process that was killed may have made the file, and not have synced its name.
TEST(SyncTest, AStartSyncsTheNameOfItsWitness) {
  const TestFolder folder;
  const std::string there = folder.root() + "/there";
  StoreOptions options = TestOptions(folder);
  options.witness = there + "/witness";
  { MustOpen(options); }
  options.witness = folder.witness();
  std::filesystem::create_symlink(there + "/witness", options.witness);
  ForgetFolders();
  { MustOpen(options); }
  EXPECT_TRUE(HasSynced(there));
}

// The call that fails may have written all the same, and the list names them.
TEST(SyncTest, TablesStayWhereTheListOfTablesCannotBeSynced) {
  const TestFolder folder, copy;
  {
    StoreOptions options = TestOptions(folder);
    options.shards = 1;  // so that one sync is of all that a fold writes to the list
    options.fold_after_commits = 100;
    const auto store = MustOpen(options);
    ASSERT_TRUE(Script::Step(*store));
    list_syncs_left = 2;  // of the file's number, and of the file
    EXPECT_FALSE(store->Settle());
    EXPECT_EQ(list_syncs_left, 0);
  }
  // The store that failed stays open in this process.
  std::filesystem::copy(folder.root(), copy.root(), std::filesystem::copy_options::recursive);
  StoreOptions options = TestOptions(copy);
  options.shards = 1;
  const auto store = Store::Open(options);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->Latest()->version().value, 1u);
  Script::ExpectStore(**store);
}

// The same of folders, which hold all that the store promises.
TEST(SyncTest, AStartSyncsTheNamesOfItsFolders) {
  const TestFolder folder;
  const std::string above = folder.root() + "/one/two";
  std::filesystem::create_directories(above + "/store");
  ForgetFolders();
  { MustOpen(TestOptionsAt(above)); }
  for (const std::string& synced : {above, folder.root() + "/one", folder.root()})
    EXPECT_TRUE(HasSynced(synced)) << synced;
}

}  // namespace
}  // namespace tacit::store
