// A store on a simulated disk whose power ends, or whose calls fail: no commit that a reader could
// have seen is lost, no checkpoint that was reported, and nothing is torn. Each run is drawn from
// its seed. Copies of the store's sources with a fault each have to be found.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../unit/store/recovered.h"
#include "../unit/store/script.h"
#include "sim/planted.h"
#include "sim/process.h"
#include "sim/scheduler.h"
#include "store/care/reshard.h"

namespace tacit::store {
namespace {

using sim::Act, sim::Disk, sim::Fault, sim::Left, sim::Mix;

const std::string kRoot = "/disk/tacit";
constexpr uint64_t kCommits = 9, kLives = 3;
constexpr int kReported = 3;  // exit code of a process that has reported a failure, and ended

// The store's owner has been told this. It lies in memory that processes share.
struct Told {
  uint64_t commits = 0, checkpoints = 0;
  std::array<std::array<char, 96>, kLives> checkpoint{};

  static Told& Make() {
    void* const memory =
        mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *new (memory) Told;
  }
};

// Follows script.h in a few lives: commits, folds, makes full checkpoints and cuts shards anew.
// Returns the first failure.
Status Work(Told& told) {
  StoreOptions options = TestOptionsAt(kRoot);
  options.shards = 0;
  for (uint32_t life = 0; life < kLives; ++life) {
    // Folds write files in one life, and go through the log in the next.
    options.fold_file_bytes = life == 1 ? 1 << 20 : 0;
    {
      TACIT_ASSIGN(const auto store, Store::Open(options));
      while (store->Latest()->version().value < (life + 1) * kCommits / kLives) {
        TACIT_RETURN_IF_ERROR(Script::Step(*store));
        told.commits = store->Latest()->version().value;
      }
      TACIT_ASSIGN(const auto made, store->MakeCheckpoint({.kind = CheckpointKind::kFull,
                                                           .parent = kRoot + "/checkpoints",
                                                           .schema = ""}));
      made.place.folder.copy(told.checkpoint[told.checkpoints++].data(), 95);
      if (life != 1) TACIT_RETURN_IF_ERROR(store->Settle());
    }
    const auto cut = Reshard({.path = options.path, .shards = 2 + life, .paths = {}});
    if (!cut) return Fail(cut.error());
  }
  return {};
}

// The exit code of a process that does this work.
int Report(const Status& done) {
  if (!done) std::printf("reported: %s\n", done.error().message.c_str());
  return done ? 0 : kReported;
}

// The exit code of a process that expects what was told, and goes on from there.
int Recover(const Told& told) {
  const auto witness = WitnessFile::Read(kRoot + "/witness");
  EXPECT_TRUE(witness);
  const uint64_t seen = witness && *witness ? (*witness)->record.seq.value : 0;
  EXPECT_GE(seen, told.commits) << "a commit was shown that the witness has not seen";
  for (uint64_t i = 0; i < told.checkpoints; ++i) {
    const std::string folder = told.checkpoint[i].data();
    const auto whole = CheckCheckpoint(folder, CheckpointCheck::kEveryByte);
    EXPECT_TRUE(whole) << folder << " was reported: " << whole.error().message;
  }
  ExpectRecovered(kRoot);
  return testing::Test::HasFailure() ? 1 : 0;
}

// A run from its seed.
class Scene {
 public:
  explicit Scene(uint64_t seed) : seed_(Mix(seed, 77)), told_(Told::Make()) {}
  ~Scene() { munmap(&told_, sizeof(Told)); }

  // The power ends at a change of the first process, and perhaps at one of the second. Returns an
  // error's words, empty if there was none.
  std::string LosePower() {
    Disk& disk = *disk_;
    disk.sync_time_ns = int64_t{1} << Draw(1) % 35;
    disk.EndPowerAt(1 + Draw(2) % 1300);
    const sim::Life work = Live(10, [&] { return Report(Work(told_)); });
    if (work.exit_code != 0 && work.exit_code != sim::kPowerEnded) return Words("work", work);
    EndPower();
    if (Draw(3) % 2 == 0) {
      disk.EndPowerAt(1 + Draw(4) % 400);
      const sim::Life life = Live(11, [&] { return Recover(told_); });
      if (life.exit_code != 0 && life.exit_code != sim::kPowerEnded)
        return Words("the first recovery", life);
      EndPower();
    }
    return RecoverAtLast();
  }

  // A call fails, and perhaps the power ends after that.
  std::string Break() {
    static constexpr std::array kActs = {Act::kOpen, Act::kRead, Act::kWrite, Act::kWrite,
                                         Act::kSync, Act::kSync, Act::kName};
    static constexpr std::array kFiles = {"",        ".log",     ".sst",        "MANIFEST",
                                          "CURRENT", "/witness", "checkpoints", ".dbtmp"};
    static constexpr std::array kErrors = {EIO, ENOSPC, EINTR, Fault::kShort};
    Fault fault{.act = kActs[Draw(1) % kActs.size()],
                .files = kFiles[Draw(2) % kFiles.size()],
                .call = 1 + Draw(3) % (uint64_t{1} << Draw(4) % 9),
                .error = kErrors[Draw(5) % kErrors.size()]};
    const bool moves_bytes = fault.act == Act::kRead || fault.act == Act::kWrite;
    if (!moves_bytes && (fault.error == EINTR || fault.error == Fault::kShort)) fault.error = EIO;
    if (fault.act == Act::kRead && fault.error == ENOSPC) fault.error = EIO;
    fault.lasting = fault.error == ENOSPC;
    disk_->Plan(fault);
    const sim::Life work = Live(10, [&] { return Report(Work(told_)); });
    met_ = disk_->fault_calls() >= fault.call;
    const bool harmless = !met_ || fault.error == EINTR || fault.error == Fault::kShort;
    // RocksDB of Debian has assertions where a disk fails while it opens or closes.
    aborted_ = work.signal == SIGABRT;
    const bool may_fail = work.exit_code == kReported || aborted_;
    if (work.exit_code != 0 && (harmless || !may_fail)) return Words("work", work);
    disk_->Plan({});
    if (Draw(6) % 2 == 0) EndPower();
    return RecoverAtLast();
  }

  // The store is made, and makes one commit, on a disk whose power ends at this change.
  std::string LosePowerInFirstCommit(uint64_t change) {
    disk_->EndPowerAt(change);
    const sim::Life work = Live(10, [&] { return Report(FirstCommit()); });
    met_ = work.exit_code == sim::kPowerEnded;
    if (work.exit_code != 0 && !met_) return Words("the first commit", work);
    EndPower();
    return RecoverAtLast();
  }

  bool met() const { return met_; }
  bool aborted() const { return aborted_; }
  uint64_t Digest() const { return disk_->Digest(); }
  uint64_t changes() const { return disk_->changes(); }

 private:
  Status FirstCommit() {
    TACIT_ASSIGN(const auto store, Store::Open(TestOptionsAt(kRoot)));
    TACIT_RETURN_IF_ERROR(Script::Step(*store));
    told_.commits = 1;
    return {};
  }

  uint64_t Draw(uint64_t what) const { return Mix(seed_, what); }

  sim::Life Live(uint64_t which, const std::function<int()>& body) {
    return sim::Live({.seed = Draw(which), .disk = disk_.get()}, body);
  }

  void EndPower() {
    disk_->EndPowerAt(0);
    const uint64_t draw = Mix(seed_, disk_->changes());
    disk_->LosePower(draw, static_cast<Left>(Mix(draw, 1) % sim::kLefts),
                     static_cast<Left>(Mix(draw, 2) % sim::kLefts));
  }

  std::string RecoverAtLast() {
    disk_->sync_time_ns = 0;
    const sim::Life life = Live(12, [&] { return Recover(told_); });
    return life.exit_code == 0 ? "" : Words("the recovery", life);
  }

  std::string Words(const std::string& what, const sim::Life& life) {
    return what + " ended with " + std::to_string(life.exit_code) + ", signal " +
           std::to_string(life.signal) + ", after " + std::to_string(told_.commits) +
           " commits: " + life.words;
  }

  const uint64_t seed_;
  Told& told_;
  const Disk::Owned disk_ = Disk::Make();
  bool met_ = false, aborted_ = false;
};

uint64_t Runs(uint64_t usual) {
  const char* const runs = std::getenv("TACIT_SIM_RUNS");
  return runs == nullptr ? usual : std::strtoull(runs, nullptr, 10);
}

// Names up to three seeds with what they found.
class Found {
 public:
  void Add(uint64_t seed, const std::string& failure) {
    if (failure.empty() || ++count_ > 3) return;
    words_ += "seed " + std::to_string(seed) + ": " + failure + "\n";
  }
  bool none() const { return count_ == 0; }
  std::string words() const { return std::to_string(count_) + " seeds find\n" + words_; }

 private:
  int count_ = 0;
  std::string words_;
};

TEST(SimulatedStore, KeepsWhatWasSeenThroughLossesOfPower) {
  Found found;
  for (uint64_t seed = 1; seed <= Runs(40); ++seed) found.Add(seed, Scene(seed).LosePower());
  EXPECT_TRUE(found.none()) << found.words();
}

TEST(SimulatedStore, ReportsFailuresOfItsDiskAndKeepsWhatWasSeen) {
  uint64_t met = 0, aborted = 0;
  Found found;
  for (uint64_t seed = 1; seed <= Runs(40); ++seed) {
    Scene scene(seed);
    found.Add(seed, scene.Break());
    met += scene.met(), aborted += scene.aborted();
  }
  EXPECT_TRUE(found.none()) << found.words();
  std::printf("%d faults met, %d aborts of RocksDB\n", static_cast<int>(met),
              static_cast<int>(aborted));
  EXPECT_GT(met, Runs(40) / 3);
}

TEST(SimulatedStore, LosesItsPowerAtEveryChangeOfItsFirstCommit) {
  Found found;
  uint64_t change = 0;
  for (bool met = true; met && change < 1000;) {
    Scene scene(++change);
    found.Add(change, scene.LosePowerInFirstCommit(change));
    met = scene.met();
  }
  EXPECT_GT(change, 50);
  EXPECT_TRUE(found.none()) << found.words();
}

TEST(SimulatedStore, OneSeedLeavesTheSameDisk) {
  Scene first(3), second(3);
  EXPECT_EQ(first.LosePower(), second.LosePower());
  EXPECT_EQ(first.changes(), second.changes());
  EXPECT_EQ(first.Digest(), second.Digest());
}

class PlantedFault : public testing::TestWithParam<sim::Planted> {};

TEST_P(PlantedFault, IsFoundWithinFiftySeeds) {
  sim::planted = GetParam();
  std::string failure;
  uint64_t seed = 0;
  while (failure.empty() && seed < 50) {
    Scene scene(++seed);
    failure = scene.LosePower();
  }
  sim::planted = sim::Planted::kNothing;
  std::printf("seed %d: %s\n", static_cast<int>(seed), failure.c_str());
  EXPECT_NE(failure, "");
}

INSTANTIATE_TEST_SUITE_P(
    Store, PlantedFault,
    testing::Values(sim::Planted::kLogNotSynced, sim::Planted::kWitnessBeforeSync,
                    sim::Planted::kWitnessNotSynced, sim::Planted::kWitnessNotNamed,
                    sim::Planted::kCheckpointNotNamed, sim::Planted::kDeltasDeletedFirst,
                    sim::Planted::kFoldersNotNamed, sim::Planted::kTablesNotNamed),
    [](const auto& fault) { return std::to_string(static_cast<int>(fault.param)); });

}  // namespace
}  // namespace tacit::store
