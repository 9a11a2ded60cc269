// A store is restored, from a checkpoint or out of an older copy, on a simulated disk whose power
// ends on the way: there is the lost store or the restored one, and that is charged for all that
// was lost.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "../unit/store/restore_script.h"
#include "sim/planted.h"
#include "sim/process.h"
#include "sim/scheduler.h"
#include "sim/seeds.h"
#include "store/witness/witness.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using sim::Disk, sim::Left, sim::Mix, sim::Planted;

const std::string kRoot = "/disk/tacit", kOlder = kRoot + "/older";

// Memory that processes share.
struct Lost {
  uint64_t from = 0, through = 0;  // the copy's commit, and the last one
  double epsilon = 0;              // of the last one
  std::array<char, 96> checkpoint{};
  bool restored = false;  // the operator has been told so
};

StoreOptions Options() {
  StoreOptions options = TestOptionsAt(kRoot);
  options.shards = 0;
  return options;
}

void CopyFolder(const std::string& from, const std::string& to) {
  fs::create_directories(to);
  for (const auto& file : fs::recursive_directory_iterator(from)) {
    const std::string copy = to + file.path().string().substr(from.size());
    if (file.is_directory())
      fs::create_directories(copy);
    else
      std::ofstream(copy, std::ios::binary) << std::ifstream(file.path()).rdbuf();
  }
}

// Trains a store, copies it, goes on and loses it; the older copy takes its place, or nothing does.
Status TrainAndLose(Lost& lost, bool older) {
  {
    TACIT_ASSIGN(const auto store, Store::Open(Options()));
    while (store->Latest()->version().value < lost.from)
      TACIT_RETURN_IF_ERROR(Script::Step(*store));
    TACIT_ASSIGN(const auto made, store->MakeCheckpoint({.kind = CheckpointKind::kFull,
                                                         .parent = kRoot + "/checkpoints",
                                                         .schema = ""}));
    made.place.folder.copy(lost.checkpoint.data(), 95);
  }
  CopyFolder(Options().path, kOlder);
  {
    TACIT_ASSIGN(const auto store, Store::Open(Options()));
    while (store->Latest()->version().value < lost.through)
      TACIT_RETURN_IF_ERROR(Script::Step(*store));
    lost.epsilon = store->Latest()->total().epsilon;
  }
  fs::rename(Options().path, kRoot + "/lost");
  if (older) fs::rename(kOlder, Options().path);
  return {};
}

Status Restore(Lost& lost, bool older) {
  TACIT_ASSIGN(const auto witness, WitnessFile::Read(Options().witness));
  if (!witness) return Fail(ErrorCode::kNotFound, "the witness is gone");
  const std::string from = older ? Options().path : std::string(lost.checkpoint.data());
  const auto restored =
      RestoreStore(RestoreOfScript(Options(), from, lost.from, lost.through, witness->record.head));
  if (!restored) return Fail(restored.error());
  lost.restored = true;
  return {};
}

// A restore that was reported is there; without one the operator restores again.
Status Look(Lost& lost, bool older) {
  const bool there = fs::exists(Options().path);
  if (!there || !Store::Open(Options())) {
    EXPECT_FALSE(lost.restored) << "it was reported, and is gone";
    TACIT_RETURN_IF_ERROR(Restore(lost, older));
  }
  TACIT_ASSIGN(const auto store, Store::Open(Options()));
  EXPECT_EQ(store->Latest()->version().value, lost.from + 1);
  EXPECT_EQ(store->Latest()->total().epsilon, lost.epsilon);
  std::vector<UserUses> users;
  for (uint64_t u = 0; u < Script::kUsers; ++u) users.push_back({.user = {u, ~u}});
  const auto step = store->ReadAllowances(LearnerIndex(0), users);
  if (!step) return Fail(step.error());
  for (uint64_t u = 0; u < Script::kUsers; ++u)
    EXPECT_GE(users[u].used, Script::UsesOf(u, lost.through).used) << "user " << u;
  return {};
}

// Returns an error's words, empty if there was none.
std::string LosePowerInRestore(uint64_t seed) {
  void* const memory =
      mmap(nullptr, sizeof(Lost), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Lost& lost = *new (memory) Lost{.from = 1 + Mix(seed, 1) % 4};
  lost.through = lost.from + 1 + Mix(seed, 2) % 4;
  const bool older = Mix(seed, 3) % 2 == 0;
  const Disk::Owned disk = Disk::Make();
  const auto live = [&](uint64_t which, Status (*act)(Lost&, bool)) {
    return sim::Live({.seed = Mix(seed, which), .disk = disk.get()}, [&] {
      const Status done = act(lost, older);
      if (!done) std::printf("%s\n", done.error().message.c_str());
      return done && !testing::Test::HasFailure() ? 0 : 1;
    });
  };
  const auto words = [&](const sim::Life& life) {
    const bool well = life.exit_code == 0 || life.exit_code == sim::kPowerEnded;
    return well ? "" : (older ? "older copy: " : "checkpoint: ") + life.words;
  };
  std::string failure = words(live(10, TrainAndLose));
  disk->SyncAll();
  for (uint64_t loss = 0; failure.empty() && loss <= Mix(seed, 4) % 2; ++loss) {
    disk->EndPowerAt(1 + Mix(seed, 20 + loss) % 700);
    failure = words(live(30 + loss, loss == 0 ? Restore : Look));
    disk->Mend();
    disk->LosePower(Mix(seed, 40 + loss), static_cast<Left>(Mix(seed, 50 + loss) % sim::kLefts),
                    static_cast<Left>(Mix(seed, 60 + loss) % sim::kLefts));
  }
  if (failure.empty()) failure = words(live(70, Look));
  munmap(memory, sizeof(Lost));
  return failure;
}

TEST(SimulatedRestore, LosesNothingOfWhatIsChargedWithThePower) {
  const uint64_t first = sim::FirstSeed();
  for (uint64_t seed = first; seed < first + 15; ++seed)
    ASSERT_EQ(LosePowerInRestore(seed), "") << "--gtest_random_seed=" << seed;
}

TEST(SimulatedRestore, ARestoreThatIsNamedBeforeItsFoldersAreSyncedIsFound) {
  sim::planted = Planted::kRestoreNotNamed;
  std::string failure;
  uint64_t seed = 0;
  while (failure.empty() && seed < 50) failure = LosePowerInRestore(++seed);
  sim::planted = Planted::kNothing;
  EXPECT_NE(failure, "");
}

}  // namespace
}  // namespace tacit::store
