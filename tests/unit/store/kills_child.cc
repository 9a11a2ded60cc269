// A process that does what a store's owner does, at random, until it is killed: it follows script.h
// and says in lines on its output what it has been promised. TACIT_TEST_CRASH_AT names a moment at
// which it dies by itself.
//   store_kills_child walk ROOT SEED LIKED       commits, makes and removes checkpoints, forgets,
//                                                cuts shards anew, repairs, closes and opens; half
//                                                of the time what LIKED names
//   store_kills_child restore ROOT FROM THROUGH USER...
//                                                restores the full checkpoint of commit FROM,
//                                                charges the commits through THROUGH, and forgets
//                                                these users
//   store_kills_child grow ROOT COMMITS          makes a store of growth_script.h with this many
//                                                commits, and takes its model over
// Exits with 0 when it is done, and with 1 when something failed.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "growth_script.h"
#include "restore_script.h"
#include "store/care/repair.h"
#include "store/care/reshard.h"
#include "store/witness/witness.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

void Say(const char* what, uint64_t number = 0) {
  std::printf("%s %llu\n", what, static_cast<unsigned long long>(number));
  std::fflush(stdout);
}

class Walk {
 public:
  Walk(const std::string& root, uint64_t seed, std::string_view liked)
      : options_(TestOptionsAt(root)), checkpoints_(root + "/checkpoints"), random_(seed) {
    options_.shards = 0;
    for (size_t i = 0; i < kDeeds.size(); ++i)
      if (kDeeds[i].name == liked) liked_ = &kDeeds[i];
  }

  // Returns the first failure, if nobody kills it.
  Status Run() {
    if (IsUnnamed()) TACIT_RETURN_IF_ERROR(RepairIt());
    TACIT_RETURN_IF_ERROR(Open());
    for (;;) TACIT_RETURN_IF_ERROR((this->*Choose().act)());
  }

 private:
  struct Deed {
    std::string_view name;
    unsigned weight;
    Status (Walk::*act)();
  };
  static const std::array<Deed, 9> kDeeds;

  const Deed& Choose() {
    if (liked_ != nullptr && random_() % 2 == 0) return *liked_;
    unsigned all = 0;
    for (const Deed& deed : kDeeds) all += deed.weight;
    unsigned left = static_cast<unsigned>(random_() % all);
    for (const Deed& deed : kDeeds) {
      if (left < deed.weight) return deed;
      left -= deed.weight;
    }
    return kDeeds[0];
  }

  Status Open() {
    store_.reset();
    // Folds write files, or go through the log.
    options_.fold_file_bytes = random_() % 2 == 0 ? 0 : 1 << 20;
    options_.fold_after_commits = 1 + static_cast<uint32_t>(random_() % 4);
    TACIT_ASSIGN(store_, Store::Open(options_));
    Say("committed", store_->Latest()->version().value);
    return {};
  }
  Status Commit() {
    TACIT_RETURN_IF_ERROR(Script::Step(*store_));
    Say("committed", store_->Latest()->version().value);
    return {};
  }
  Status Checkpoint(CheckpointKind kind) {
    if (store_->Latest()->version().value == 0) return {};
    const auto made = store_->MakeCheckpoint({.kind = kind, .parent = checkpoints_, .schema = ""});
    if (!made) return Fail(made.error());
    if (!made->existed) Say(kind == CheckpointKind::kFull ? "full" : "release");
    return {};
  }
  Status MakeFull() { return Checkpoint(CheckpointKind::kFull); }
  Status MakeRelease() { return Checkpoint(CheckpointKind::kRelease); }
  Status Prune() {
    const uint64_t keep = random_() % 3;
    Say("pruning", keep);
    const auto removed = PruneCheckpoints(checkpoints_, keep);
    return removed ? Status() : Fail(removed.error());
  }
  Status Forget() {
    const uint64_t u = random_() % Script::kUsers;
    const Hash128 user{u, ~u};
    Say("forgetting", u);
    TACIT_RETURN_IF_ERROR(store_->ForgetUsers({&user, 1}));
    Say("forgot", u);
    std::atomic<bool> given_up = false;
    const auto erased = store_->EraseForgotten(checkpoints_, &given_up);
    return erased ? Status() : Fail(erased.error());
  }
  Status Cut() {
    store_.reset();
    const auto cut = Reshard(
        {.path = options_.path, .shards = 1 + static_cast<uint32_t>(random_() % 6), .paths = {}});
    if (!cut) return Fail(cut.error());
    return Open();
  }
  Status LoseAndRepair() {
    store_.reset();
    Say("unnamed");
    fs::remove(options_.path + "/CURRENT");
    TACIT_RETURN_IF_ERROR(RepairIt());
    Say("named");
    return Open();
  }
  Status Settle() { return store_->Settle(); }
  Status Reopen() { return Open(); }

  bool IsUnnamed() const {
    if (!fs::exists(options_.path) || fs::exists(options_.path + "/CURRENT")) return false;
    for (const auto& file : fs::directory_iterator(options_.path))
      if (file.path().extension() == ".log") return true;
    return false;
  }
  Status RepairIt() const {
    const auto repair = RepairStore(options_.path, {.witness = options_.witness});
    return repair ? Status() : Fail(repair.error());
  }

  StoreOptions options_;
  const std::string checkpoints_;
  std::mt19937_64 random_;
  const Deed* liked_ = nullptr;
  std::unique_ptr<Store> store_;
};

const std::array<Walk::Deed, 9> Walk::kDeeds = {{{"commit", 60, &Walk::Commit},
                                                 {"full", 8, &Walk::MakeFull},
                                                 {"release", 5, &Walk::MakeRelease},
                                                 {"prune", 4, &Walk::Prune},
                                                 {"forget", 5, &Walk::Forget},
                                                 {"reshard", 6, &Walk::Cut},
                                                 {"repair", 4, &Walk::LoseAndRepair},
                                                 {"settle", 4, &Walk::Settle},
                                                 {"reopen", 4, &Walk::Reopen}}};

Status RestoreIt(const std::string& root, uint64_t from, uint64_t through,
                 std::vector<ForgottenUser> forgotten) {
  const auto places = ListCheckpoints(root + "/checkpoints", nullptr);
  TACIT_ASSIGN(const auto lost, WitnessFile::Read(root + "/witness"));
  if (!places || !lost) return Fail(ErrorCode::kNotFound, "no checkpoint, or no witness");
  std::string folder;
  for (const CheckpointPlace& place : *places)
    if (place.manifest.kind == CheckpointKind::kFull && place.manifest.commit.value == from)
      folder = place.folder;
  StoreOptions options = TestOptionsAt(root);
  options.shards = 0;
  RestoreRequest request = RestoreOfScript(options, folder, from, through, lost->record.head);
  request.forgotten = std::move(forgotten);
  const auto restored = RestoreStore(request);
  return restored ? Status() : Fail(restored.error());
}

Status GrowIt(const std::string& root, uint64_t commits) {
  const LearnerLayout before = GrowthScript::Before();
  {
    TACIT_ASSIGN(const auto store, Store::Open(GrowthScript::Options(root, before)));
    while (store->Latest()->version().value < commits)
      TACIT_RETURN_IF_ERROR(GrowthScript::Step(
          *store, before.rows, Script::RowsOf(store->Latest()->version().value + 1)));
  }
  Say("growing");
  StoreOptions options = GrowthScript::Options(root, GrowthScript::After());
  options.may_lose = true;
  const auto grown = Store::Open(options);
  return grown ? Status() : Fail(grown.error());
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 3 ? argv[1] : "", root = argc > 3 ? argv[2] : "";
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  Status done = Fail(ErrorCode::kInternal, "no such mode");
  if (mode == "walk" && argc == 5) done = Walk(root, number(3), argv[4]).Run();
  if (mode == "restore" && argc >= 5) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::vector<ForgottenUser> forgotten;
    for (int i = 5; i < argc; ++i)
      forgotten.push_back({.user = {number(i), ~number(i)}, .before_ms = now / 1ms});
    done = RestoreIt(root, number(3), number(4), std::move(forgotten));
  }
  if (mode == "grow" && argc == 4) done = GrowIt(root, number(3));
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}

}  // namespace
}  // namespace tacit::store

int main(int argc, char** argv) { return tacit::store::Main(argc, argv); }
