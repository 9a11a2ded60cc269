#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "forget_script.h"
#include "growth_script.h"
#include "script.h"
#include "store/care/reshard.h"
#include "store/disk/row_families.h"
#include "store/witness/witness.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

// A running store_crash_child with pipes to its input and from its output.
class Child {
 public:
  explicit Child(const std::vector<std::string>& arguments) {
    std::array<int, 2> in, out;
    TACIT_CHECK(pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0);
    std::vector<std::string> words{TACIT_CRASH_CHILD};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    TACIT_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  ~Child() {
    CloseInput();
    close(output_);
    if (pid_ > 0) Wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for one line of output.
  std::string ReadLine() {
    std::string line;
    for (char c; read(output_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void CloseInput() {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }
  // The wait status.
  int Wait() {
    // Unread output must not hold the child up.
    for (char c; read(output_, &c, 1) == 1;) said_ += c;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  const std::string& said() const { return said_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
  std::string said_;
};

void CrashAt(const TestFolder& folder, const std::string& point, int hit, int commits) {
  Child child({"crash", folder.root(), point, std::to_string(hit), std::to_string(commits)});
  const int status = child.Wait();
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << point << " was not passed " << hit << " times\n"
      << child.said();
}

// Held against the script: first as a reader, who changes nothing, then as the owner, who then goes
// on. `reader` and `owner` are the commits they must see; -1: any.
void ExpectRecovery(const TestFolder& folder, int64_t reader_sees, int64_t owner_sees) {
  const StoreOptions options = TestOptions(folder);
  const auto witness = WitnessFile::Read(folder.witness());
  ASSERT_TRUE(witness && *witness);
  {
    const auto reader = OpenReadOnly(folder.store(), folder.witness(), options.learners);
    ASSERT_TRUE(reader) << reader.error().message;
    Script::ExpectSnapshot(*reader->snapshot);
    ASSERT_EQ(reader->snapshot->version(), (*witness)->record.seq);
    ASSERT_EQ(reader->snapshot->head(), (*witness)->record.head);
    if (reader_sees >= 0) {
      ASSERT_EQ(reader->snapshot->version().value, uint64_t(reader_sees));
    }
    ASSERT_EQ(reader->entries.size(), reader->snapshot->ledger_entries());
    ASSERT_TRUE(privacy::VerifyChain(reader->entries));
  }
  for (int again = 0; again < 2; ++again) {
    const auto store = MustOpen(options);
    Script::ExpectStore(*store);
    ASSERT_GE(store->Latest()->version(), (*witness)->record.seq);
    if (owner_sees >= 0 && again == 0) {
      ASSERT_EQ(store->Latest()->version().value, uint64_t(owner_sees));
    }
    for (int commit = 0; commit < 3; ++commit) ASSERT_TRUE(Script::Step(*store));
    Script::ExpectStore(*store);
  }
}

TEST(CrashTest, AKillDuringACommitLeavesTheStateBeforeOrAfterIt) {
  struct Case {
    const char* point;
    int64_t reader_sees, owner_sees;  // for a kill in commit 5
  };
  for (const Case& c : {Case{"commit.begin", 4, 4},
                        {"commit.written", 4, 5},
                        {"commit.synced", 4, 5},
                        {"commit.witnessed", 5, 5},
                        {"commit.published", 5, 5}}) {
    SCOPED_TRACE(c.point);
    const TestFolder folder;
    CrashAt(folder, c.point, 5, 20);
    ExpectRecovery(folder, c.reader_sees, c.owner_sees);
    if (HasFatalFailure()) return;
  }
}

// Once the deletion is on disk the user stays forgotten, and the next run erases what is left.
TEST(CrashTest, AKillWhileAUserIsForgottenLeavesTheUserForgotten) {
  for (const char* point :
       {"forget.written", "forget.erased", "checkpoint.manifest_written", "forget.noted"}) {
    SCOPED_TRACE(point);
    const TestFolder folder;
    Child child({"forget", folder.root(), point});
    const int status = child.Wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << child.said();
    const auto store = MustOpen(TestOptions(folder));
    const std::string checkpoints = folder.root() + "/checkpoints";
    EXPECT_TRUE(store->Latest()->History(LearnerIndex(0), ForgetScript::kAda)->empty());
    EXPECT_EQ(store->Latest()->History(LearnerIndex(0), ForgetScript::kBen)->size(), 3u);
    ASSERT_TRUE(store->Forgotten(ForgetScript::kAda));
    std::atomic<bool> given_up = false;
    const auto erased = store->EraseForgotten(checkpoints, &given_up);
    ASSERT_TRUE(erased) << erased.error().message;
    EXPECT_EQ(*erased, 1u);
    EXPECT_FALSE(
        ForgetScript::IsInFiles(folder.store(), ForgetScript::ItemOf(ForgetScript::kAda, 1)));
    const auto places = ListCheckpoints(checkpoints, nullptr);
    ASSERT_TRUE(places && places->size() == 1);
    EXPECT_TRUE(CheckCheckpoint(places->front().folder, CheckpointCheck::kEveryByte));
    ASSERT_EQ(places->front().manifest.forgotten.size(), 1u);
    EXPECT_EQ(places->front().manifest.forgotten[0].user, ForgetScript::kAda);
  }
}

// Killed at any moment of taking a model over, a store has the model before or the model after it.
TEST(CrashTest, AKillWhileAModelIsTakenOverLeavesOneOfTheTwo) {
  GrowthScript::Rows was;
  std::vector<uint32_t> read;
  double epsilon = 0;
  for (const char* point : {"growth.spread", "growth.written", "growth.witnessed"}) {
    SCOPED_TRACE(point);
    const TestFolder folder;
    Child child({"grow", folder.root(), point});
    const int status = child.Wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << child.said();
    const LearnerLayout before = GrowthScript::Before(), after = GrowthScript::Renamed();
    if (was.empty()) {  // the first is killed before anything can be seen of it
      const auto store = MustOpen(GrowthScript::Options(folder.root(), before));
      EXPECT_EQ(store->Latest()->version().value, 5u);
      was = GrowthScript::RowsOf(*store, before.rows);
      read = GrowthScript::Read(*store);
      ASSERT_EQ(read.size(), 5u);
      EXPECT_EQ(store->Latest()->learners()[0].learner, "ctr");
      epsilon = store->Latest()->learners()[0].epsilon;
    }
    const auto store = MustOpen(GrowthScript::RenamedOptions(folder.root()));
    std::vector<uint32_t> moved;
    for (const uint32_t item : read) moved.push_back(GrowthScript::MovedItem(item));
    EXPECT_EQ(GrowthScript::Read(*store), moved) << "moved once, with the model";
    ASSERT_EQ(store->Latest()->learners().size(), 1u);
    EXPECT_EQ(store->Latest()->learners()[0].learner, "ads");
    EXPECT_EQ(store->Latest()->learners()[0].epsilon, epsilon);
    EXPECT_EQ(store->Latest()->version().value, 6u);
    GrowthScript::ExpectChain(*store);
    EXPECT_EQ(
        std::ranges::count_if(GrowthScript::Entries(*store), &privacy::LedgerEntry::is_growth), 1);
    EXPECT_EQ(GrowthScript::RowsOf(*store, after.rows),
              GrowthScript::Grown(was, before.rows, after.rows));
  }
}

TEST(CrashTest, AKillDuringAFoldLosesNothing) {
  for (const char* point : {"fold.ingested", "fold.trimmed"})
    for (int hit = 1; hit <= 3; ++hit) {
      SCOPED_TRACE(point);
      const TestFolder folder;
      // A commit waits when eight are unfolded: there are three folds at least, however late.
      CrashAt(folder, point, hit, 3 * 8 + 1);
      ExpectRecovery(folder, -1, -1);
      if (HasFatalFailure()) return;
    }
}

// The fold of a start is killed too, after a kill that left deltas unfolded.
TEST(CrashTest, AKillDuringTheFoldOfAStartLosesNothing) {
  for (const char* point : {"fold.ingested", "fold.trimmed"}) {
    SCOPED_TRACE(point);
    const TestFolder folder;
    CrashAt(folder, "commit.published", 1, 20);
    CrashAt(folder, point, 1, 20);
    ExpectRecovery(folder, 1, 1);
    if (HasFatalFailure()) return;
  }
}

// The whole checkpoints there are, each checked byte by byte.
std::vector<CheckpointPlace> WholeCheckpoints(const TestFolder& folder) {
  std::vector<std::string> unreadable;
  auto places = ListCheckpoints(folder.root() + "/checkpoints", &unreadable);
  EXPECT_TRUE(places);
  EXPECT_TRUE(unreadable.empty());
  for (const CheckpointPlace& place : *places) {
    const auto checked = CheckCheckpoint(place.folder, CheckpointCheck::kEveryByte);
    EXPECT_TRUE(checked) << checked.error().message;
  }
  return *std::move(places);
}

// The store is as it was, a checkpoint is there as a whole or not at all, and the next one is made.
TEST(CrashTest, AKillWhileACheckpointIsMadeLeavesAllOrNothing) {
  struct Case {
    const char *point, *kind;
    size_t made;
  };
  for (const Case& c :
       {Case{"checkpoint.begun", "full", 0}, Case{"checkpoint.listed", "full", 0},
        Case{"checkpoint.linked", "full", 0}, Case{"checkpoint.written", "full", 0},
        Case{"checkpoint.named", "full", 1}, Case{"checkpoint.begun", "release", 0},
        Case{"checkpoint.linked", "release", 0}, Case{"checkpoint.written", "release", 0},
        Case{"checkpoint.named", "release", 1}}) {
    SCOPED_TRACE(std::string(c.point) + " of a " + c.kind + " one");
    const TestFolder folder;
    Child child({"checkpoint", folder.root(), c.point, c.kind});
    const int status = child.Wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << child.said();
    EXPECT_EQ(WholeCheckpoints(folder).size(), c.made);
    ExpectRecovery(folder, 5, 5);
    const auto store = MustOpen(TestOptions(folder));
    const auto next = store->MakeCheckpoint(
        {*CheckpointKindOf(c.kind), folder.root() + "/checkpoints", "a schema"});
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ(WholeCheckpoints(folder).size(), c.made + 1);
    EXPECT_FALSE(fs::exists(folder.root() + "/checkpoints/.making"));
  }
}

TEST(CrashTest, AKillWhileACheckpointIsRemovedLeavesAllOrNothing) {
  const TestFolder folder;
  const auto make = [&](Store& store) {
    return store.MakeCheckpoint({CheckpointKind::kFull, folder.root() + "/checkpoints", ""});
  };
  {
    const auto store = MustOpen(TestOptions(folder));
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(Script::Step(*store));
      ASSERT_TRUE(make(*store));
    }
  }
  Child child({"prune", folder.root(), "checkpoint.removing"});
  const int status = child.Wait();
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << child.said();
  EXPECT_EQ(WholeCheckpoints(folder).size(), 1u);
  ASSERT_TRUE(PruneCheckpoints(folder.root() + "/checkpoints", 0));
  EXPECT_TRUE(WholeCheckpoints(folder).empty());
  ExpectRecovery(folder, 2, 2);
}

// Killed before it decides, cutting shards anew leaves the old ones, and after that the new ones.
TEST(CrashTest, AKillWhileShardsAreCutLeavesTheOldOrTheNew) {
  const struct {
    const char* point;
    uint32_t shards;
  } cases[] = {{"reshard.begun", 4}, {"reshard.copied", 4}, {"reshard.switched", 5}};
  for (const auto& [point, shards] : cases) {
    SCOPED_TRACE(point);
    const TestFolder folder;
    StoreOptions options = TestOptions(folder);
    options.fold_after_commits = 3;
    {
      const auto store = MustOpen(options);
      for (int i = 0; i < 5; ++i) ASSERT_TRUE(Script::Step(*store));
    }
    Child child({"reshard", folder.root(), point});
    const int status = child.Wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << child.said();
    const auto reader = OpenReadOnly(folder.store(), folder.witness(), options.learners);
    ASSERT_TRUE(reader) << reader.error().message;
    Script::ExpectSnapshot(*reader->snapshot);
    options.shards = shards;
    {
      const auto store = MustOpen(options);
      Script::ExpectStore(*store);
      ASSERT_TRUE(Script::Step(*store));
      Script::ExpectStore(*store);
    }
    EXPECT_EQ(FoldersOf(folder.store())->size(), 1 + shards) << "the others are removed";
    ASSERT_TRUE(Reshard({.path = folder.store(), .shards = 2, .paths = {}}));
    options.shards = 2;
    Script::ExpectStore(*MustOpen(options));
  }
}

// A restore leaves either nothing under the store's name or all of it, and is done over.
TEST(CrashTest, ARestoreThatDiedIsBegunAnew) {
  const struct {
    const char* point;
    bool named;
  } cases[] = {{"restore.copied", false},
               {"restore.charged_users", false},
               {"restore.committed", false},
               {"restore.named", true}};
  for (const auto& [point, named] : cases) {
    SCOPED_TRACE(point);
    const TestFolder folder;
    const StoreOptions options = TestOptions(folder);
    double epsilon = 0;
    {
      const auto store = MustOpen(options);
      const auto train = [&](uint64_t through) {
        while (store->Latest()->version().value < through) ASSERT_TRUE(Script::Step(*store));
      };
      train(3);
      ASSERT_TRUE(store->MakeCheckpoint(
          {CheckpointKind::kFull, folder.root() + "/checkpoints", "a schema"}));
      train(9);
      epsilon = store->Latest()->total().epsilon;
    }
    fs::rename(folder.store(), folder.root() + "/lost");
    // Killed twice: what the first left is not taken for a part of the second.
    for (int again = 0; again < (named ? 1 : 2); ++again) {
      Child child({"restore", folder.root(), point});
      const int status = child.Wait();
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << child.said();
      ASSERT_EQ(fs::exists(folder.store()), named);
    }
    if (!named) {
      Child child({"restore", folder.root(), "none"});
      ASSERT_EQ(child.Wait(), 0) << child.said();
    }
    const auto store = MustOpen(options);
    EXPECT_EQ(store->Latest()->version().value, 4u);
    EXPECT_DOUBLE_EQ(store->Latest()->total().epsilon, epsilon);
    std::vector<UserUses> users;
    for (uint64_t u = 0; u < Script::kUsers; ++u) users.push_back({.user = {u, ~u}});
    ASSERT_TRUE(store->ReadAllowances(LearnerIndex(0), users));
    for (uint64_t u = 0; u < Script::kUsers; ++u) {
      EXPECT_EQ(users[u].used, Script::UsesOf(0, 9).used) << "user " << u;  // each has used six
    }
  }
}

TEST(CrashTest, AFullDiskDuringAFoldFailsTheNextCommitAndLosesNothing) {
  const TestFolder folder;
  {
    Child child({"nofold", folder.root(), "4"});
    const int status = child.Wait();
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << child.said();
  }
  ExpectRecovery(folder, 4, 4);
}

TEST(CrashTest, AStoreHeldByAnotherProcessIsUnavailableButReadable) {
  const TestFolder folder;
  { ASSERT_TRUE(Script::Step(*MustOpen(TestOptions(folder)))); }
  Child child({"hold", folder.root()});
  ASSERT_EQ(child.ReadLine(), "open");
  const auto store = Store::Open(TestOptions(folder));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(store.error().message, testing::HasSubstr(folder.store()));
  const auto reader = OpenReadOnly(folder.store(), folder.witness(), TestLearners());
  ASSERT_TRUE(reader) << reader.error().message;
  Script::ExpectSnapshot(*reader->snapshot);
  child.CloseInput();
  EXPECT_EQ(child.Wait(), 0);
}

// Two of them wait for a store, as standbys do. The second one looks before the first has made it.
TEST(CrashTest, AStoreThatAnotherProcessHasMadeMeanwhileIsOpened) {
  const TestFolder folder;
  Child child({"late", folder.root()});
  ASSERT_EQ(child.ReadLine(), "open.listed");
  { ASSERT_TRUE(Script::Step(*MustOpen(TestOptions(folder)))); }
  child.CloseInput();
  EXPECT_EQ(child.Wait(), 0) << child.said();
}

}  // namespace
}  // namespace tacit::store
