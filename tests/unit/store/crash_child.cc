// A process that follows script.h and dies where it is asked to; exits with 0 when all went as it
// should. It has its own CrashPoint.
//   store_crash_child crash ROOT POINT HIT COMMITS   SIGKILL at the HIT-th pass of POINT
//   store_crash_child checkpoint ROOT POINT KIND     SIGKILL at POINT of one made after commit 5
//   store_crash_child prune ROOT POINT               SIGKILL at POINT, removing all checkpoints
//   store_crash_child restore ROOT POINT             SIGKILL at POINT of restoring commits 4 to 9,
//                                                    without a store where POINT is reached
//   store_crash_child reshard ROOT POINT             SIGKILL at POINT of cutting five shards
//   store_crash_child forget ROOT POINT              SIGKILL at POINT of forgetting kAda of
//                                                    forget_script.h, whom a checkpoint knows
//   store_crash_child grow ROOT POINT                SIGKILL at POINT of taking a model over
//   store_crash_child nofold ROOT COMMITS            the disk is full for the fold after COMMITS
//   store_crash_child hold ROOT                      opens, says so, waits for its input to end
//   store_crash_child late ROOT                      the same, before it opens what it has seen
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/crash_point.h"
#include "forget_script.h"
#include "growth_script.h"
#include "restore_script.h"
#include "store/care/reshard.h"
#include "store/witness/witness.h"
#include "support/eventually.h"

namespace tacit {
namespace {

struct Plan {
  std::string point;
  int hit = 0;
  std::atomic<int> passes = 0;
  bool fills_disk = false;  // instead of a kill: no file may grow from here on
  bool waits = false;       // instead of a kill: for the end of its input
};
// CrashPoint is a free function: this is how it knows what to do. The store's threads read it.
std::atomic<Plan*> the_plan = nullptr;

void SayAndWait(const char* what) {
  std::puts(what);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

// A file-size limit stands in for a full disk: writes fail the same way, without privileges.
void LimitFileSize(rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

}  // namespace

void CrashPoint(const char* name) {
  Plan* const plan = the_plan;
  if (plan == nullptr) return;
  if (plan->point != name || ++plan->passes < plan->hit) return;
  if (plan->waits) return SayAndWait(name);
  if (plan->fills_disk) {
    LimitFileSize(8192);  // the witness fits
    return;
  }
  kill(getpid(), SIGKILL);
  pause();
}

namespace store {
namespace {

int Crash(const std::string& root, const std::string& point, int hit, uint64_t commits) {
  Plan here{.point = point, .hit = hit};
  the_plan = &here;
  const auto store = MustOpen(TestOptionsAt(root));
  while (store->Latest()->version().value < commits) EXPECT_TRUE(Script::Step(*store));
  return 0;
}

int CrashCheckpoint(const std::string& root, const std::string& point, const std::string& kind) {
  const auto store = MustOpen(TestOptionsAt(root));
  while (store->Latest()->version().value < 5) EXPECT_TRUE(Script::Step(*store));
  Plan here{.point = point, .hit = 1};
  the_plan = &here;
  const auto made =
      store->MakeCheckpoint({*CheckpointKindOf(kind), root + "/checkpoints", "a schema"});
  EXPECT_TRUE(made) << made.error().message;
  return 0;
}

int CrashPrune(const std::string& root, const std::string& point) {
  Plan here{.point = point, .hit = 1};
  the_plan = &here;
  EXPECT_TRUE(PruneCheckpoints(root + "/checkpoints", 0));
  return 0;
}

int CrashReshard(const std::string& root, const std::string& point) {
  Plan here{.point = point, .hit = 1};
  the_plan = &here;
  EXPECT_TRUE(Reshard({.path = root + "/store", .shards = 5, .paths = {}}));
  return 0;
}

// The store is lost before this: all there is are its last commit's head and a checkpoint.
int CrashRestore(const std::string& root, const std::string& point) {
  const auto places = ListCheckpoints(root + "/checkpoints", nullptr);
  const auto lost = WitnessFile::Read(root + "/witness");
  if (!places || places->empty() || !lost || !*lost) return 1;
  Plan here{.point = point, .hit = 1};
  the_plan = &here;
  const auto restored = RestoreStore(
      RestoreOfScript(TestOptionsAt(root), places->back().folder, 3, 9, (*lost)->record.head));
  EXPECT_TRUE(restored) << restored.error().message;
  return 0;
}

int CrashForget(const std::string& root, const std::string& point) {
  const auto store = MustOpen(TestOptionsAt(root));
  EXPECT_TRUE(ForgetScript::Append(*store, {ForgetScript::HistoryOf(ForgetScript::kAda),
                                            ForgetScript::HistoryOf(ForgetScript::kBen)}));
  EXPECT_TRUE(
      store->MakeCheckpoint({.kind = CheckpointKind::kFull, .parent = root + "/checkpoints"}));
  Plan here{.point = point, .hit = 1};
  the_plan = &here;
  EXPECT_TRUE(store->ForgetUsers({&ForgetScript::kAda, 1}));
  std::atomic<bool> given_up = false;
  EXPECT_TRUE(store->EraseForgotten(root + "/checkpoints", &given_up));
  return 0;
}

int CrashGrowth(const std::string& root, const std::string& point) {
  const LearnerLayout before = GrowthScript::Before();
  {
    const auto store = MustOpen(GrowthScript::Options(root, before));
    for (uint64_t seq = 1; seq <= 5; ++seq)
      EXPECT_TRUE(GrowthScript::Step(*store, before.rows, Script::RowsOf(seq)));
  }
  Plan here{.point = point, .hit = 1};
  the_plan = &here;
  MustOpen(GrowthScript::RenamedOptions(root));
  return 0;
}

// The store is dead for good, and still answers.
void ExpectOnlyReaders(Store& store, const std::shared_ptr<const Snapshot>& last) {
  bool called = false;
  const Status later = store.Commit({}, [&](Status) { called = true; });
  EXPECT_FALSE(later);
  if (!later) {
    EXPECT_EQ(later.error().code, ErrorCode::kIo) << later.error().message;
  }
  EXPECT_FALSE(called);
  EXPECT_FALSE(store.Flush());
  EXPECT_EQ(store.Latest()->version(), last->version());
  Script::ExpectSnapshot(*store.Latest());
  Script::ExpectSnapshot(*last);
}

int FullDiskForAFold(const std::string& root, int commits) {
  Plan here{.point = "commit.witnessed", .hit = commits, .fills_disk = true};
  the_plan = &here;
  StoreOptions options = TestOptionsAt(root);
  options.fold_after_commits = static_cast<uint32_t>(commits);
  const auto store = MustOpen(options);
  for (int commit = 0; commit < commits; ++commit) (void)Script::Step(*store);
  EXPECT_TRUE(test::Eventually("the fold has failed", [&] { return !store->Flush(); }));
  const auto last = store->Latest();
  EXPECT_EQ(last->version().value, static_cast<uint64_t>(commits));
  the_plan = nullptr;
  LimitFileSize(RLIM_INFINITY);
  ExpectOnlyReaders(*store, last);
  return 0;
}

int Hold(const std::string& root) {
  const auto store = MustOpen(TestOptionsAt(root));
  SayAndWait("open");
  return 0;
}

int OpenLate(const std::string& root) {
  Plan here{.point = "open.listed", .hit = 1, .waits = true};
  the_plan = &here;
  Script::ExpectStore(*MustOpen(TestOptionsAt(root)));
  return 0;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "", root = argc > 2 ? argv[2] : "";
  if (mode == "crash" && argc == 6)
    return Crash(root, argv[3], std::atoi(argv[4]), std::strtoull(argv[5], nullptr, 10));
  if (mode == "checkpoint" && argc == 5) return CrashCheckpoint(root, argv[3], argv[4]);
  if (mode == "prune" && argc == 4) return CrashPrune(root, argv[3]);
  if (mode == "reshard" && argc == 4) return CrashReshard(root, argv[3]);
  if (mode == "restore" && argc == 4) return CrashRestore(root, argv[3]);
  if (mode == "forget" && argc == 4) return CrashForget(root, argv[3]);
  if (mode == "grow" && argc == 4) return CrashGrowth(root, argv[3]);
  if (mode == "nofold" && argc == 4) return FullDiskForAFold(root, std::atoi(argv[3]));
  if (mode == "hold") return Hold(root);
  if (mode == "late") return OpenLate(root);
  return 2;
}

}  // namespace
}  // namespace store
}  // namespace tacit

int main(int argc, char** argv) {
  signal(SIGXFSZ, SIG_IGN);
  const int status = tacit::store::Main(argc, argv);
  return testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : status;
}
