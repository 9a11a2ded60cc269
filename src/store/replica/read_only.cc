#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "store/replica/replica_store.h"
#include "store/store.h"
#include "store/users/allowance.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

// The owner may fold, compact and drop files during the read; a retry then finds the store whole
// again. While the witness moves, the owner is at work and more retries are worthwhile.
constexpr int kAttempts = 8;
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kPatience = std::chrono::seconds(20);

bool MayPass(const Error& error) {
  return error.code == ErrorCode::kIo || error.code == ErrorCode::kCorruption ||
         error.code == ErrorCode::kNotFound;
}

Result<std::optional<WitnessSight>> ReadWitness(const std::string& witness) {
  if (witness.empty()) return std::optional<WitnessSight>{};
  return WitnessFile::Read(witness);
}

// Undoes commits that the witness has not seen. `before` was read before the store and `after`
// after it, so a living owner has before <= store and folded <= after.
Status HoldAgainstWitness(const std::string& path, const std::string& witness,
                          const std::optional<WitnessSight>& before,
                          const std::optional<WitnessSight>& after, Loaded& loaded) {
  if (witness.empty()) return {};
  if (!after) {
    if (loaded.tip.seq.value == 0) return {};
    return Fail(ErrorCode::kRefused,
                fmt::format("store {} holds commits but its witness {} is missing: without it a "
                            "reader cannot know which commits it may show",
                            path, witness));
  }
  const WitnessPlace place{witness};
  const auto check = [&](const WitnessSight& seen) {
    return CheckWitness(seen.record, loaded.Chain(), place, path);
  };
  if (before) TACIT_RETURN_IF_ERROR(check(*before));
  // Restored, and not started since: the witness is still the lost store's.
  if (loaded.Chain().Continues(after->record)) return {};
  TACIT_RETURN_IF_ERROR(CheckDamage(*after, loaded.tip.seq, place, path));
  while (loaded.tip.seq > after->record.seq) {
    if (loaded.deltas.empty())
      return Fail(ErrorCode::kRefused,
                  fmt::format("store {} has folded commit {}, its witness {} has seen {}: a start "
                              "of tacitd, or tacit store migrate, writes the witness anew",
                              path, loaded.tip.seq.value, witness, after->record.seq.value));
    TACIT_RETURN_IF_ERROR(loaded.TakeBackLast());
  }
  return loaded.tip.seq == after->record.seq ? check(*after) : Status{};
}

Result<ReadOnlyStore> MakeReadOnly(const std::shared_ptr<Rocks>& rocks, Loaded loaded,
                                   const std::vector<LearnerLayout>& layouts) {
  privacy::Ledger::Promises promises;
  if (!loaded.ledger_state.empty()) {
    TACIT_ASSIGN(promises, privacy::Ledger::ReadPromises(loaded.ledger_state));
  }
  View view = loaded.MakeView();
  const std::vector<uint8_t> trained(loaded.records.size(), 1);
  auto directory =
      std::make_shared<LearnerDirectory>(loaded.shards, loaded.records, loaded.release);
  std::vector<LearnerLayout> configured = layouts;
  if (loaded.replica)
    for (LearnerLayout& layout : configured) layout.rows = ReplicaLayout(std::move(layout.rows));
  TACIT_RETURN_IF_ERROR(directory->Match(configured, trained));
  view.learners.resize(directory->records().size());
  privacy::AddAdvantages(loaded.entries, &view.tip.learners, &view.tip.total);
  view.ledger_tail = TailOf(loaded.entries, directory->records().size());
  const auto count = [rocks, directory](std::string_view learner) -> Result<UsersByUses> {
    for (const LearnerRecord& record : directory->records()) {
      if (record.name != learner) continue;
      TACIT_ASSIGN(CountedUses counted, CheckCounts(*rocks, record.key));
      return std::move(counted.by_used);
    }
    return UsersByUses{};
  };
  return ReadOnlyStore{std::make_shared<SnapshotImpl>(rocks, directory, std::move(view)),
                       std::move(loaded.entries),
                       std::move(promises),
                       {},
                       count,
                       std::move(loaded.terms)};
}

Result<ReadOnlyStore> TryOpen(const std::string& path, const std::string& witness,
                              const std::vector<LearnerLayout>& layouts, uint64_t reader_bytes) {
  TACIT_ASSIGN(const auto before, ReadWitness(witness));
  TACIT_ASSIGN(const auto rocks, Rocks::OpenReadOnly(path, reader_bytes));
  TACIT_ASSIGN(Loaded loaded, Load(*rocks));
  if (loaded.fresh())
    return Fail(ErrorCode::kNotFound, fmt::format("store {} has not been written yet", path));
  TACIT_ASSIGN(const auto after, ReadWitness(witness));
  TACIT_RETURN_IF_ERROR(HoldAgainstWitness(path, witness, before, after, loaded));
  return MakeReadOnly(rocks, std::move(loaded), layouts);
}

// A checkpoint is an older copy by design, and its manifest says of which commit: no witness is
// asked.
Result<ReadOnlyStore> OpenCheckpoint(const std::string& folder,
                                     const std::vector<LearnerLayout>& layouts,
                                     uint64_t reader_bytes) {
  TACIT_ASSIGN(const CheckpointManifest manifest,
               CheckCheckpoint(folder, CheckpointCheck::kAtOpen));
  TACIT_ASSIGN(const auto rocks, Rocks::OpenReadOnly(folder, reader_bytes));
  TACIT_ASSIGN(Loaded loaded, Load(*rocks));
  if (loaded.release != (manifest.kind == CheckpointKind::kRelease) ||
      loaded.tip.seq != manifest.commit || loaded.tip.head != manifest.head ||
      loaded.lineage != manifest.lineage)
    return Fail(ErrorCode::kCorruption,
                fmt::format("checkpoint {} holds commit {}, its manifest says {}", folder,
                            loaded.tip.seq.value, manifest.commit.value));
  TACIT_ASSIGN(ReadOnlyStore store, MakeReadOnly(rocks, std::move(loaded), layouts));
  store.checkpoint = manifest.kind;
  return store;
}

}  // namespace

Result<ReadOnlyStore> OpenReadOnly(const std::string& path, const std::string& witness,
                                   const std::vector<LearnerLayout>& layouts,
                                   uint64_t reader_bytes) {
  if (IsCheckpoint(path)) return OpenCheckpoint(path, layouts, reader_bytes);
  TACIT_ASSIGN(const bool there, Rocks::Exists(path));
  if (!there) return Fail(ErrorCode::kNotFound, fmt::format("there is no store at {}", path));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  uint64_t seen = 0;
  for (int attempt = 1;; ++attempt) {
    auto store = TryOpen(path, witness, layouts, reader_bytes);
    if (store || !MayPass(store.error())) return store;
    const auto record = ReadWitness(witness);
    const uint64_t now = record && *record ? (*record)->record.seq.value : 0;
    if (now != std::exchange(seen, now) && std::chrono::steady_clock::now() < deadline) attempt = 1;
    if (attempt >= kAttempts) return store;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace tacit::store
