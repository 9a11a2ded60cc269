// Commands that keep a store, on a simulated disk that is full from some write on: each is refused
// by name and loses nothing, and is done once there is room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "../unit/store/growth_script.h"
#include "sim/process.h"
#include "store/care/repair.h"
#include "store/care/reshard.h"
#include "store/care/verify.h"
#include "store/checkpoint/checkpoint_archive.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kRoot = "/disk/tacit", kStore = kRoot + "/store";
const std::string kPacked = kRoot + "/packed.tar.zst", kThere = kRoot + "/there";
constexpr uint64_t kCommits = 5;
constexpr int kRefused = 3;  // exit code of a process whose command was refused

template <class T>
Status StatusOf(const Result<T>& done) {
  if (!done) return Fail(done.error());
  return {};
}

Result<std::string> CheckpointIn(const std::string& parent) {
  for (const fs::directory_entry& one : fs::directory_iterator(parent))
    if (IsCheckpoint(one.path())) return one.path().string();
  return Fail(ErrorCode::kNotFound, "no checkpoint in " + parent);
}

Status Train() {
  const LearnerLayout before = GrowthScript::Before();
  TACIT_ASSIGN(const auto store, Store::Open(GrowthScript::Options(kRoot, before)));
  for (uint64_t commit = 1; commit <= kCommits; ++commit)
    TACIT_RETURN_IF_ERROR(GrowthScript::Step(*store, before.rows, Script::RowsOf(commit)));
  const auto made = store->MakeCheckpoint(
      {.kind = CheckpointKind::kFull, .parent = kRoot + "/checkpoints", .schema = ""});
  if (!made) return Fail(made.error());
  return PackCheckpoint(made->place.folder, kRoot + "/first.tar.zst");
}

struct Command {
  const char* name;
  Status (*run)();
  bool grows = false;  // the store has the new layout afterwards
};
constexpr Command kCommands[] = {
    {"reshard", [] { return StatusOf(Reshard({.path = kStore, .shards = 7, .paths = {}})); }},
    {"migrate",
     [] {
       StoreOptions options = GrowthScript::Options(kRoot, GrowthScript::After());
       options.may_lose = true;
       return StatusOf(Store::Open(options));
     },
     true},
    {"repair",
     [] {
       fs::remove(kStore + "/CURRENT");
       return StatusOf(RepairStore(kStore, {}));
     }},
    {"pack",
     []() -> Status {
       TACIT_ASSIGN(const std::string folder, CheckpointIn(kRoot + "/checkpoints"));
       return PackCheckpoint(folder, kPacked);
     }},
    {"unpack", [] { return StatusOf(UnpackCheckpoint(kRoot + "/first.tar.zst", kThere)); }},
};

// The store is whole and has all commits, and a checkpoint or archive under its name is whole.
Status Look(bool grown) {
  if (!fs::exists(kStore + "/CURRENT")) {  // a repair that was refused
    TACIT_RETURN_IF_ERROR(StatusOf(RepairStore(kStore, {})));
  }
  const LearnerLayout layout = grown ? GrowthScript::After() : GrowthScript::Before();
  {
    StoreOptions options = GrowthScript::Options(kRoot, layout);
    options.shards = 0;  // as many as there are: a cut that could not tidy up is one
    TACIT_ASSIGN(const auto store, Store::Open(options));
    EXPECT_EQ(store->Latest()->version().value, kCommits + (grown ? 1 : 0));
    EXPECT_GT(store->Latest()->total().epsilon, 0);
    GrowthScript::ExpectChain(*store);
  }
  TACIT_ASSIGN(const StoreCheck check, VerifyStore(kStore, {.witness = kRoot + "/witness"}));
  for (const Damage& damage : check.damage) ADD_FAILURE() << damage.file << " " << damage.what;
  for (const std::string& parent : {kRoot + "/checkpoints", kThere}) {
    if (!fs::exists(parent)) continue;
    const auto folder = CheckpointIn(parent);
    EXPECT_TRUE(!folder || CheckCheckpoint(*folder, CheckpointCheck::kEveryByte)) << parent;
  }
  EXPECT_TRUE(!fs::exists(kPacked) || UnpackCheckpoint(kPacked, kRoot + "/again"));
  return {};
}

TEST(SimulatedCare, ACommandOnAFullDiskIsRefusedByNameAndLosesNothing) {
  for (const Command& command : kCommands) {
    const sim::Disk::Owned disk = sim::Disk::Make();
    uint64_t lives = 0;
    const auto live = [&](const std::function<Status()>& act) {
      return sim::Live({.seed = ++lives, .disk = disk.get()}, [&] {
        const Status done = act();
        if (!done) std::printf("refused: %s\n", done.error().message.c_str());
        if (testing::Test::HasFailure()) return 1;
        return done ? 0 : kRefused;
      });
    };
    const auto must = [&](const char* what, const std::function<Status()>& act) {
      const sim::Life life = live(act);
      ASSERT_EQ(life.exit_code, 0) << what << " of " << command.name << ": " << life.words;
    };
    must("the training", Train);
    disk->SyncAll();
    uint64_t refused = 0, aborted = 0;
    for (uint64_t call = 1; call < 1000; call += 1 + call / 8) {
      disk->Plan({.call = call, .error = ENOSPC, .lasting = true});
      const sim::Life life = live(command.run);
      const bool met = disk->fault_calls() >= call;
      disk->Mend();
      if (life.exit_code == 0) break;
      ASSERT_TRUE(met) << command.name << ", without a fault: " << life.words;
      SCOPED_TRACE(std::string(command.name) + " at write " + std::to_string(call));
      // RocksDB of Debian has assertions where a disk fails while it opens or closes.
      if (life.signal == SIGABRT) {
        ++aborted;
      } else {
        ASSERT_EQ(life.exit_code, kRefused) << life.words;
        EXPECT_THAT(life.words, HasSubstr("refused: "));
        EXPECT_THAT(life.words, HasSubstr(kRoot));
        ++refused;
      }
      must("a look", [] { return Look(false); });
      if (HasFatalFailure()) return;
    }
    std::printf("%s: refused %d times, %d aborts of RocksDB\n", command.name,
                static_cast<int>(refused), static_cast<int>(aborted));
    EXPECT_GT(refused, 0u) << command.name;
    must("a look at the end", [&] { return Look(command.grows); });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tacit::store
