#include <fmt/format.h>
#include <openssl/rand.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "store/disk/seal.h"
#include "store/disk/unfinished_restore.h"
#include "store/growth.h"
#include "store/store_impl.h"
#include "store/users/allocation.h"
#include "store/users/allowance.h"
#include "store/view/fold.h"
#include "store/view/load.h"
#include "store/witness/price_tally.h"

namespace tacit::store {
namespace {

constexpr uint32_t kMaxShards = 128;  // the first byte of a row key stays below the marker's

template <size_t N>
std::array<uint8_t, N> RandomBytes() {
  std::array<uint8_t, N> bytes;
  TACIT_CHECK(RAND_bytes(bytes.data(), static_cast<int>(N)) == 1, "the system has no randomness");
  return bytes;
}

constexpr std::string_view kMark = "mark";

// The files that are checked at the start and written at every commit, in this order.
std::vector<WitnessPlace> PlacesOf(const StoreOptions& options) {
  std::vector<WitnessPlace> places;
  if (!options.witness.empty()) places.push_back({.path = options.witness});
  if (!options.mark.empty()) places.push_back({.path = options.mark, .kind = kMark});
  return places;
}

Result<std::filesystem::path> Canonical(const std::string& path) {
  std::error_code error;
  auto canonical = std::filesystem::weakly_canonical(path, error);
  if (!error) return canonical;
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, error.message()));
}

Status CheckOptions(const StoreOptions& options) {
  if (options.path.empty()) return Fail(ErrorCode::kInvalidArgument, "the store has no path");
  if (IsCheckpoint(options.path))
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is a checkpoint: commits in it would be of an older copy, without "
                            "the charges of what was learnt since. It can be served and asked "
                            "(--checkpoint)",
                            options.path));
  if (options.shards > kMaxShards)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("store {}: shards must be 1 to {}, not {}",
                                                         options.path, kMaxShards, options.shards));
  TACIT_CHECK(options.fold_after_commits > 0 && options.overlay_bytes > 0);
  for (const WitnessPlace& place : PlacesOf(options)) {
    TACIT_ASSIGN(const auto outer, Canonical(options.path));
    TACIT_ASSIGN(const auto inner, Canonical(place.path));
    const auto inside = inner.lexically_relative(outer);
    if (!inside.empty() && *inside.begin() != "..")
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} {} lies inside store {}: it would be copied and turned back "
                              "with it",
                              place.kind, place.path, options.path));
  }
  TACIT_ASSIGN(const auto mark, Canonical(options.mark));
  TACIT_ASSIGN(const auto witness, Canonical(options.witness));
  if (!options.mark.empty() && mark == witness)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the mark of store {} is the same file as its witness, {}: put the two "
                            "in different places",
                            options.path, options.witness));
  return {};
}

// A witness or mark of the store and what it held; no sight: no file.
struct Remembered {
  WitnessPlace place;
  std::optional<WitnessSight> sight;
};

Result<std::vector<Remembered>> ReadWitnesses(const StoreOptions& options) {
  std::vector<Remembered> found;
  for (WitnessPlace& place : PlacesOf(options)) {
    TACIT_ASSIGN(auto sight, WitnessFile::Read(place.path));
    found.push_back({std::move(place), std::move(sight)});
  }
  return found;
}

Status CheckMissing(const StoreOptions& options, const WitnessPlace& place, uint64_t commits) {
  if (place.kind == kMark) {
    spdlog::warn(
        "store {} holds {} commits but its mark {} is missing: this start cannot tell whether it "
        "was put back together with its witness. The mark is written from now on",
        options.path, commits, place.path);
    return {};
  }
  if (options.accept_missing_witness) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("store {} holds {} commits but its witness {} is missing: without it an "
                          "older copy cannot be told from the newest; if this is the newest copy, "
                          "tacit store accept-witness writes the witness anew",
                          options.path, commits, options.witness));
}

// Checks that the witnesses allow opening the store at this point.
Status CheckHistory(const StoreOptions& options, const std::vector<Remembered>& witnesses,
                    const Loaded& loaded) {
  const StoreChain chain = loaded.Chain();
  for (const auto& [place, sight] : witnesses) {
    if (sight && chain.Continues(sight->record)) {
      spdlog::info("store {} continues lineage {}, which its {} {} has seen: it takes it over",
                   options.path, sight->record.lineage, place.kind, place.path);
    } else if (sight) {
      TACIT_RETURN_IF_ERROR(CheckDamage(*sight, chain.seq, place, options.path));
      TACIT_RETURN_IF_ERROR(CheckWitness(sight->record, chain, place, options.path));
    } else if (chain.seq.value > 0) {
      TACIT_RETURN_IF_ERROR(CheckMissing(options, place, chain.seq.value));
    }
  }
  return {};
}

// A store without its witness may be an older copy, even if --accept-missing-witness was given.
bool IsTakenOnTrust(const std::vector<Remembered>& witnesses, const Loaded& loaded) {
  return loaded.tip.seq.value > 0 && std::ranges::any_of(witnesses, [](const Remembered& witness) {
           return !witness.sight && witness.place.kind != kMark;
         });
}

Status MatchShards(const StoreOptions& options, const Loaded& loaded) {
  if (options.shards == 0 || loaded.shards == options.shards) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("store {} has {} shards, the configuration says {}: tacit store reshard "
                          "makes it so",
                          options.path, loaded.shards, options.shards));
}

// Declares all learners but those that are taken over later.
Status DeclareLearners(const StoreOptions& options, std::span<const size_t> later,
                       privacy::Ledger& ledger) {
  for (size_t i = 0; i < options.learners.size(); ++i) {
    const LearnerLayout& learner = options.learners[i];
    TACIT_CHECK(learner.promise.learner == learner.name, "a promise must name its learner");
    if (std::ranges::find(later, i) == later.end())
      TACIT_RETURN_IF_ERROR(ledger.Declare(learner.promise));
  }
  if (options.total_budget) return ledger.DeclareTotal(*options.total_budget);
  if (ledger.total_budget()) {
    spdlog::warn(
        "store {}: it had a budget of epsilon {:g} for all learners together, which the "
        "configuration no longer has: from now on that budget is not enforced",
        options.path, ledger.total_budget()->epsilon);
    ledger.ClearTotal();
  }
  return {};
}

// Notes the forms of the configured learners, but of those that are taken over later.
void PutForms(const Rocks& rocks, const Loaded& loaded, const StoreOptions& options,
              const LearnerDirectory& directory, std::span<const size_t> later,
              rocksdb::WriteBatch* batch) {
  for (size_t i = 0; i < options.learners.size(); ++i) {
    const uint16_t key = directory.KeyOf(LearnerIndex(static_cast<uint16_t>(i)));
    const std::string& form = options.learners[i].form;
    if (std::ranges::find(later, i) != later.end() || FormOf(loaded.forms, key) == form) continue;
    batch->Put(rocks.family(Family::kMeta), LearnerKey(meta::kFormPrefix, key), Seal(form));
  }
}

// Writes the store's identity and its learners' records, if they are new.
Status WriteIdentity(const Rocks& rocks, const Loaded& loaded, const StoreOptions& options,
                     bool fresh, const LearnerDirectory& directory,
                     const LearnerDirectory::Matched& matched) {
  rocksdb::WriteBatch batch;
  auto* family = rocks.family(Family::kMeta);
  const auto put_number = [&](std::string_view key, uint32_t number) {
    ByteWriter writer;
    writer.Put(number);
    batch.Put(family, AsSlice(key), Seal(writer.bytes()));
  };
  if (fresh) {
    put_number(meta::kFormat, kStoreFormat);
    put_number(meta::kShards, loaded.shards);
    put_number(meta::kRows, rocks.row_generation());
    batch.Put(family, AsSlice(meta::kLineage), Seal(loaded.lineage));
    batch.Put(family, AsSlice(meta::kSalt),
              Seal({reinterpret_cast<const char*>(loaded.salt.data()), loaded.salt.size()}));
    batch.Put(
        family, AsSlice(meta::kUserKey),
        Seal({reinterpret_cast<const char*>(loaded.user_key.data()), loaded.user_key.size()}));
  }
  for (uint16_t key : matched.changed)
    batch.Put(family, LearnerKey(meta::kLearnerPrefix, key),
              Seal(EncodeLearner(directory.records()[key])));
  PutForms(rocks, loaded, options, directory, matched.others, &batch);
  return batch.Count() == 0 ? Status{} : rocks.WriteSynced(batch);
}

Status MakeShards(Rocks& rocks, const StoreOptions& options, uint32_t shards) {
  const auto made = rocks.MakeRows(1, shards, options.shard_paths);
  return made ? rocks.UseRows(1, shards) : Fail(made.error());
}

Result<privacy::Ledger> RestoreLedger(const StoreOptions& options, const Loaded& loaded) {
  if (loaded.tip.seq.value == 0) return privacy::Ledger();
  auto ledger = privacy::Ledger::Restore(loaded.entries, loaded.ledger_state);
  if (!ledger) return Fail(std::move(ledger.error()).Context("store " + options.path));
  if (ledger->head() != loaded.tip.head)
    return Fail(ErrorCode::kCorruption,
                fmt::format("store {}: the ledger's state is not of its last entry", options.path));
  return ledger;
}

Status BringUpWitnesses(OpenedStore& store) {
  const WitnessRecord now = WitnessOf(store);
  for (const WitnessPlace& place : PlacesOf(store.options)) {
    TACIT_ASSIGN(auto file, WitnessFile::OpenAt(place.path, now));
    store.witnesses.push_back(std::move(file));
  }
  return {};
}

// Beginning afresh comes last: it throws the account of the lost store away.
std::string AdviceOnMissing(const std::string& path, std::string_view kind) {
  std::error_code error;
  const std::string work = WorkFolder(path);
  std::string half;
  if (std::filesystem::exists(work, error))
    half = fmt::format(
        "{} is what a restore has left that did not end: make the same restore again. ", work);
  return fmt::format(
      "{}Perhaps its disk is not mounted. If the store is lost, tacit checkpoint restore makes it "
      "of a checkpoint and charges what was learnt since. To start afresh, without the account of "
      "what was spent, name another {}",
      half, kind);
}

// A new store must not overwrite the witness of a lost store in its place.
Status CheckNotReplaced(const StoreOptions& options, const std::vector<Remembered>& witnesses) {
  TACIT_ASSIGN(const bool there, Rocks::Exists(options.path));
  if (there) return {};
  for (const auto& [place, sight] : witnesses)
    if (sight && sight->record.seq.value > 0)
      return Fail(ErrorCode::kRefused,
                  fmt::format("there is no store at {}, but {} {} has seen {} commits of one. {}",
                              options.path, place.kind, place.path, sight->record.seq.value,
                              AdviceOnMissing(options.path, place.kind)));
  return {};
}

Status Ask(const StoreOptions& options, const OpenProgress& progress) {
  if (!options.on_open || options.on_open(progress)) return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("opening store {} was given up", options.path));
}

// Folds all commits. They are on disk and witnessed, so they may be folded. The row caches then
// need not know of earlier deltas.
Status FoldEverything(const OpenedStore& store, const KeepFolding& keep) {
  TACIT_RETURN_IF_ERROR(ClearFoldFiles(store.options.path));
  const auto deltas = store.options.outbox_bytes > 0 ? FoldedDeltas::kKept : FoldedDeltas::kDeleted;
  const auto folded = FoldView(*store.rocks, *store.directory, store.view,
                               store.options.fold_file_bytes, deltas, keep);
  return folded ? Status() : Fail(folded.error());
}

// Passes on to the store's owner how far the opening is, and whether it is given up.
KeepFolding KeepOn(const StoreOptions& options, std::string_view doing) {
  if (!options.on_open) return {};
  return [&options, doing](uint64_t done, uint64_t rows) {
    return options.on_open({.doing = doing, .done = done, .of = rows});
  };
}

// Starts at the newest time that the store knows; a new store trusts the clock.
void StartRetention(const Rocks& rocks, const Loaded& loaded) {
  const bool knows = loaded.known_time_ms > 0;
  rocks.retention().Start(knows ? loaded.known_time_ms : rocks.clock().UnixMillis());
}

}  // namespace

WitnessRecord WitnessOf(const OpenedStore& store) {
  const View& view = store.view;
  const auto& records = store.directory->records();
  std::vector<std::string> positions;
  for (const LearnerState& learner : view.learners) positions.push_back(learner.position);
  positions.resize(records.size());
  return {.lineage = view.lineage,
          .seq = view.tip.seq,
          .head = view.tip.head,
          .term = view.terms->At(view.tip.seq),
          .learners = WitnessLearners(records, positions, store.ledger,
                                      PriceTally(store.ledger.entries()))};
}

std::vector<uint8_t> TrainedOf(const View& view) {
  std::vector<uint8_t> trained;
  for (const LearnerState& learner : view.learners)
    trained.push_back(learner.dense != nullptr || !learner.position.empty());
  return trained;
}

Result<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  TACIT_ASSIGN(auto witnesses, ReadWitnesses(options));
  TACIT_RETURN_IF_ERROR(CheckNotReplaced(options, witnesses));

  OpenedStore store;
  store.latch = std::make_shared<FailureLatch>();
  TACIT_RETURN_IF_ERROR(Ask(options, {.doing = "replaying the log"}));
  TACIT_ASSIGN(store.rocks,
               Rocks::Open(options.path, options.memory_bytes, store.latch, options.clock,
                           options.open_files_most, options.direct_reads));
  // The process that had the store until now may have committed since they were read.
  TACIT_ASSIGN(witnesses, ReadWitnesses(options));
  if (const Status cleared = RemoveUnfinishedRestore(options.path); !cleared)
    spdlog::warn("store {}: what a restore has left is not removed: {}", options.path,
                 cleared.error().message);
  TACIT_RETURN_IF_ERROR(Ask(options, {.doing = "reading what is not folded"}));
  TACIT_RETURN_IF_ERROR(BringUp(*store.rocks, options.format_steps));
  TACIT_ASSIGN(Loaded loaded, Load(*store.rocks));
  if (loaded.release)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} was a release checkpoint: it lacks what learning resumes from",
                            options.path));
  if (loaded.replica)
    return Fail(ErrorCode::kRefused,
                fmt::format("store {} is a replica's (tacitd --replica): it lacks what learning "
                            "resumes from, and is never trained on",
                            options.path));
  StartRetention(*store.rocks, loaded);
  const bool fresh = loaded.fresh();
  if (fresh) {
    loaded.lineage = ToHex(RandomBytes<16>());
    loaded.salt = RandomBytes<32>();
    loaded.shards = options.shards == 0 ? kNewShards : options.shards;
    loaded.user_key = RandomBytes<16>();
    TACIT_RETURN_IF_ERROR(MakeShards(*store.rocks, options, loaded.shards));
  }
  TACIT_RETURN_IF_ERROR(CheckHistory(options, witnesses, loaded));
  TACIT_RETURN_IF_ERROR(MatchShards(options, loaded));
  if (IsTakenOnTrust(witnesses, loaded)) TACIT_RETURN_IF_ERROR(ForgetAllocations(*store.rocks));

  store.view = loaded.MakeView();
  auto directory = std::make_shared<LearnerDirectory>(loaded.shards, loaded.records);
  TACIT_ASSIGN(const auto matched, directory->Match(options.learners, TrainedOf(store.view),
                                                    loaded.forms, options.renames));
  TACIT_ASSIGN(auto growths,
               PlanGrowths(*directory, store.view, loaded.forms, options.learners, matched.others));
  if (!options.may_lose) TACIT_RETURN_IF_ERROR(CheckLosses(growths));
  TACIT_ASSIGN(store.ledger, RestoreLedger(options, loaded));
  TACIT_RETURN_IF_ERROR(DeclareLearners(options, matched.others, store.ledger));
  TACIT_RETURN_IF_ERROR(WriteIdentity(*store.rocks, loaded, options, fresh, *directory, matched));
  store.directory = std::move(directory);
  store.term = RandomBytes<16>();
  TACIT_ASSIGN(store.forgotten, ReadForgotten(*store.rocks));
  store.view.ledger_tail = TailOf(loaded.entries, store.directory->records().size());
  store.salt = loaded.salt;
  store.user_key = loaded.user_key;
  store.options = std::move(options);
  TACIT_RETURN_IF_ERROR(BringUpWitnesses(store));

  TACIT_RETURN_IF_ERROR(FoldEverything(store, KeepOn(store.options, "folding rows")));
  store.view.overlay.clear();
  TACIT_RETURN_IF_ERROR(store.outbox.Find(*store.rocks));
  store.view.learners.resize(store.directory->records().size());
  TACIT_RETURN_IF_ERROR(TakeOver(growths, KeepOn(store.options, "taking models over"), store));
  store.view.tip.learners = store.ledger.Learners();
  store.view.tip.total = store.ledger.Total();
  return std::unique_ptr<Store>(std::make_unique<StoreImpl>(std::move(store)));
}

}  // namespace tacit::store
