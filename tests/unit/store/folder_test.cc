// Tests which error is given when a store cannot be opened: by what the system says, not by words.
#include "store/disk/folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "script.h"
#include "store/care/reshard.h"
#include "store/disk/rocks.h"
#include "support/files_below.h"
#include "support/stranger.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using test::Stranger;
using testing::HasSubstr;
using testing::Not;

Error FailureOf(const StoreOptions& options) {
  const auto store = Store::Open(options);
  EXPECT_FALSE(store);
  return store ? Error{} : store.error();
}

// A process that holds the lock of a store as RocksDB does, until it is asked to end.
class LockedElsewhere {
 public:
  explicit LockedElsewhere(const std::string& store) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      const int fd = open((store + "/LOCK").c_str(), O_RDWR | O_CREAT, 0644);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      const bool held = fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
      [[maybe_unused]] const auto told = write(ready[1], held ? "y" : "n", 1);
      for (;;) pause();
    }
    char held = 'n';
    EXPECT_EQ(read(ready[0], &held, 1), 1);
    EXPECT_EQ(held, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~LockedElsewhere() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  pid_t pid() const { return child_; }

 private:
  pid_t child_;
};

// Stops, as a kill does, where RocksDB is about to give a new database its CURRENT: nothing is
// renamed or removed from then on. All is in this process, because a forked one lacks RocksDB's
// threads.
class KilledBeforeCurrent : public rocksdb::FileSystemWrapper {
 public:
  KilledBeforeCurrent() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "killed before CURRENT"; }
  bool killed() const { return killed_; }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (to.ends_with("/CURRENT")) killed_ = true;
    return killed_ ? Killed() : FileSystemWrapper::RenameFile(from, to, options, debug);
  }
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    return killed_ ? Killed() : FileSystemWrapper::DeleteFile(name, options, debug);
  }

 private:
  static rocksdb::IOStatus Killed() { return rocksdb::IOStatus::IOError("killed"); }
  std::atomic<bool> killed_ = false;
};

// Leaves in a folder what a daemon leaves that is killed while RocksDB makes its store.
void BeginStore(const std::string& path) {
  const auto files = std::make_shared<KilledBeforeCurrent>();
  const auto env = rocksdb::NewCompositeEnv(files);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  rocksdb::DB* db = nullptr;
  ASSERT_FALSE(rocksdb::DB::Open(options, path, &db).ok());
  ASSERT_TRUE(files->killed());
  ASSERT_TRUE(fs::exists(path + "/MANIFEST-000001"));
  ASSERT_FALSE(fs::exists(path + "/CURRENT"));
}

TEST(FolderTest, AStoreWhoseMakingWasCutShortIsMadeAnew) {
  const TestFolder folder;
  fs::create_directories(folder.store());
  BeginStore(folder.store());
  ASSERT_TRUE(Script::Step(*MustOpen(TestOptions(folder))));
  Script::ExpectStore(*MustOpen(TestOptions(folder)));
}

// One file of records is enough: then CURRENT was there, and is lost.
TEST(FolderTest, WhereRecordsLieNoStoreIsMade) {
  for (const char* name : {"000012.sst", "000013.blob", "000014.log"}) {
    const TestFolder folder;
    fs::create_directories(folder.store());
    BeginStore(folder.store());
    std::ofstream(folder.store() + "/" + name) << "x";
    const Error error = FailureOf(TestOptions(folder));
    EXPECT_EQ(error.code, ErrorCode::kCorruption) << name << ": " << error.message;
    EXPECT_THAT(error.message, HasSubstr("/CURRENT is damaged"));
    EXPECT_TRUE(fs::exists(folder.store() + "/" + name));
  }
}

TEST(FolderTest, ALockOfAnotherProcessIsToldWithItsNumber) {
  const TestFolder folder;
  { ASSERT_TRUE(Script::Step(*MustOpen(TestOptions(folder)))); }
  EXPECT_FALSE(IsHeldByAnother(folder.store()).value());
  {
    const LockedElsewhere holder(folder.store());
    const Error error = FailureOf(TestOptions(folder));
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message,
                HasSubstr("is locked: process " + std::to_string(holder.pid()) + " has it open"));
    EXPECT_TRUE(IsHeldByAnother(folder.store()).value());
  }
  EXPECT_FALSE(IsHeldByAnother(folder.store()).value());
  Script::ExpectStore(*MustOpen(TestOptions(folder)));
}

// To find out must not give up the lock that this process has.
TEST(FolderTest, ALockOfThisProcessIsToldAndKept) {
  const TestFolder folder;
  const auto store = MustOpen(TestOptions(folder));
  const Error error = FailureOf(TestOptions(folder));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("this process has it open"));
  const pid_t child = fork();
  if (child == 0) _exit(IsHeldByAnother(folder.store()).value_or(false) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the lock is gone";
}

TEST(FolderTest, AStoreOfAnotherUserIsNotLocked) {
  const TestFolder folder;
  { ASSERT_TRUE(Script::Step(*MustOpen(TestOptions(folder)))); }
  chmod(folder.root().c_str(), 0755);
  chmod(folder.store().c_str(), 0555);
  chmod(folder.witness().c_str(), 0644);
  const auto try_it = [&] {
    const Stranger stranger;
    return FailureOf(TestOptions(folder));
  };
  const Error error = try_it();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.message;
  EXPECT_THAT(error.message, HasSubstr("Permission denied"));
  EXPECT_THAT(error.message, HasSubstr("must belong to the user"));
  EXPECT_THAT(error.message, Not(HasSubstr("locked")));
  // One file is enough.
  chmod(folder.store().c_str(), 0777);
  chmod((folder.store() + "/LOCK").c_str(), 0444);
  const Error file = try_it();
  EXPECT_EQ(file.code, ErrorCode::kInvalidArgument) << file.message;
  EXPECT_THAT(file.message, HasSubstr("/LOCK: Permission denied"));
  chmod(folder.store().c_str(), 0755);
  chmod((folder.store() + "/LOCK").c_str(), 0644);
  Script::ExpectStore(*MustOpen(TestOptions(folder)));
}

// The store's own user could not read the files that root writes there.
TEST(FolderTest, AStoreOfAnotherUserIsNotWrittenByRoot) {
  const TestFolder folder;
  { ASSERT_TRUE(Script::Step(*MustOpen(TestOptions(folder)))); }
  const std::string current = folder.store() + "/CURRENT", own = folder.root() + "/own";
  uid_t owner = 65534;
  if (geteuid() == 0) {
    ASSERT_EQ(chown(current.c_str(), owner, owner), 0);
  } else {  // only root gives files away, and a file of root's is what others find
    owner = 0;
    fs::rename(current, own);
    fs::create_symlink("/etc/passwd", current);
  }
  const auto files = test::FilesBelow(folder.store());
  std::vector<Status> refused;
  refused.push_back(Fail(FailureOf(TestOptions(folder))));
  const auto resharded = Reshard({.path = folder.store(), .shards = 2, .paths = {}});
  refused.push_back(resharded ? Status() : Fail(resharded.error()));
  for (const Status& status : refused) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument) << status.error().message;
    EXPECT_THAT(status.error().message,
                HasSubstr("belongs to user " + std::to_string(owner) +
                          ", and this program is run by user " + std::to_string(geteuid())));
  }
  EXPECT_EQ(test::FilesBelow(folder.store()), files);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(current.c_str(), 0, 0), 0);
  } else {
    fs::rename(own, current);
  }
  Script::ExpectStore(*MustOpen(TestOptions(folder)));
}

// The letters "lock" in a path say nothing.
TEST(FolderTest, AFailureInAFolderCalledClockIsToldAsItIs) {
  const TestFolder folder;
  fs::create_directories(folder.root() + "/clock");
  StoreOptions options = TestOptionsAt(folder.root() + "/clock");
  { ASSERT_TRUE(Script::Step(*MustOpen(options))); }
  fs::remove(options.path + "/CURRENT");
  fs::create_directory(options.path + "/CURRENT");
  const Error error = FailureOf(options);
  EXPECT_NE(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, Not(HasSubstr("is locked")));
  EXPECT_THAT(error.message, HasSubstr("CURRENT"));
}

TEST(FolderTest, AFileInTheStoresPlaceIsAMistake) {
  const TestFolder folder;
  std::ofstream(folder.root() + "/file") << "x";
  StoreOptions options = TestOptions(folder);
  for (const char* below : {"/file", "/file/store"}) {
    options.path = folder.root() + below;
    const Error error = FailureOf(options);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.message;
    EXPECT_THAT(error.message, HasSubstr("must name a folder"));
  }
}

TEST(FolderTest, EachErrorHasItsClassAndAdvice) {
  const struct {
    int error;
    ErrorCode code;
    const char* advice;
  } cases[] = {{EACCES, ErrorCode::kInvalidArgument, "must belong to the user"},
               {EPERM, ErrorCode::kInvalidArgument, "must belong to the user"},
               {EROFS, ErrorCode::kInvalidArgument, "may be written"},
               {ENOTDIR, ErrorCode::kInvalidArgument, "must name a folder"},
               {ENOSPC, ErrorCode::kIo, "make room"},
               {EDQUOT, ErrorCode::kIo, "make room"},
               {EIO, ErrorCode::kIo, "Input/output error"},
               {EMFILE, ErrorCode::kIo, "Too many open files"}};
  for (const auto& one : cases) {
    const Error error = FolderError(one.error, "opening store", "/blocks/clock");
    EXPECT_EQ(error.code, one.code) << error.message;
    EXPECT_THAT(error.message, HasSubstr("opening store /blocks/clock: "));
    EXPECT_THAT(error.message, HasSubstr(one.advice));
    EXPECT_FALSE(MeansHeld(one.error, "/blocks/clock"));
  }
  EXPECT_TRUE(MeansHeld(EAGAIN, "/blocks/clock"));
  EXPECT_FALSE(MeansHeld(ENOLCK, "/blocks/clock")) << "a file system without locks";
}

}  // namespace
}  // namespace tacit::store
