#include <fmt/format.h>
#include <openssl/rand.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "store/allowance.h"
#include "store/fold.h"
#include "store/load.h"
#include "store/seal.h"
#include "store/store_impl.h"

namespace tacit::store {
namespace {

constexpr uint32_t kMaxShards = 128;  // the first byte of a row key stays below the marker's

template <size_t N>
std::array<uint8_t, N> RandomBytes() {
  std::array<uint8_t, N> bytes;
  TACIT_CHECK(RAND_bytes(bytes.data(), static_cast<int>(N)) == 1, "the system has no randomness");
  return bytes;
}

Status CheckOptions(const StoreOptions& options) {
  if (options.path.empty()) return Fail(ErrorCode::kInvalidArgument, "the store has no path");
  if (options.shards == 0 || options.shards > kMaxShards)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("store {}: shards must be 1 to {}, not {}",
                                                         options.path, kMaxShards, options.shards));
  TACIT_CHECK(options.fold_after_commits > 0 && options.overlay_bytes > 0);
  if (options.witness.empty()) return {};
  const auto inside = std::filesystem::weakly_canonical(options.witness)
                          .lexically_relative(std::filesystem::weakly_canonical(options.path));
  if (!inside.empty() && *inside.begin() != "..")
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("witness {} lies inside store {}: it would be copied and turned back "
                            "with it",
                            options.witness, options.path));
  return {};
}

Result<std::optional<WitnessRecord>> ReadWitness(const StoreOptions& options) {
  if (options.witness.empty()) return std::optional<WitnessRecord>{};
  return WitnessFile::Read(options.witness);
}

// Whether a store at this point may be opened at all. `witness` is nothing where there is no file.
Status CheckHistory(const StoreOptions& options, const std::optional<WitnessRecord>& witness,
                    const Loaded& loaded) {
  if (witness)
    return CheckWitness(*witness, WitnessOf(loaded.lineage, loaded.tip), options.witness,
                        options.path);
  if (options.witness.empty() || loaded.tip.seq.value == 0 || options.accept_missing_witness)
    return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("store {} holds {} commits but its witness {} is missing: without it an "
                          "older copy cannot be told from the newest; if this is the newest copy, "
                          "open it once with --accept-missing-witness",
                          options.path, loaded.tip.seq.value, options.witness));
}

Status MatchShards(const StoreOptions& options, const Loaded& loaded) {
  if (loaded.shards == options.shards) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("store {} was created with {} shards, the configuration says {}",
                          options.path, loaded.shards, options.shards));
}

// A learner was trained once a commit has moved its position.
Result<std::vector<uint16_t>> MatchLearners(const StoreOptions& options, Catalog& catalog,
                                            const View& view) {
  std::vector<uint8_t> trained;
  for (const LearnerValue& learner : view.learners)
    trained.push_back(learner.dense != nullptr || !learner.position.empty());
  return catalog.Match(options.learners, trained);
}

Status DeclareLearners(const StoreOptions& options, privacy::Ledger& ledger) {
  for (const LearnerLayout& learner : options.learners) {
    TACIT_CHECK(learner.promise.learner == learner.name, "a promise must name its learner");
    TACIT_RETURN_IF_ERROR(ledger.Declare(learner.promise));
  }
  if (options.total_budget) return ledger.DeclareTotal(*options.total_budget);
  if (ledger.total_budget()) {
    spdlog::warn(
        "store {}: it was under a budget of epsilon {:g} for all learners together, which the "
        "configuration no longer has: nobody holds them to it from now on",
        options.path, ledger.total_budget()->epsilon);
    ledger.ClearTotal();
  }
  return {};
}

// Writes who this store is and which learners it has, where that is new.
Status WriteIdentity(const Rocks& rocks, const Loaded& loaded, bool fresh, bool new_user_key,
                     const Catalog& catalog, const std::vector<uint16_t>& changed) {
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
    batch.Put(family, AsSlice(meta::kLineage), Seal(loaded.lineage));
    batch.Put(family, AsSlice(meta::kSalt),
              Seal({reinterpret_cast<const char*>(loaded.salt.data()), loaded.salt.size()}));
  }
  if (new_user_key)
    batch.Put(
        family, AsSlice(meta::kUserKey),
        Seal({reinterpret_cast<const char*>(loaded.user_key->data()), loaded.user_key->size()}));
  for (uint16_t key : changed)
    batch.Put(family, LearnerKey(meta::kLearnerPrefix, key),
              Seal(EncodeLearner(catalog.records()[key])));
  return batch.Count() == 0 ? Status{} : rocks.WriteSynced(batch);
}

// Draws the secret that users are counted under, where there is none yet. Under another one every
// user would begin anew.
Result<bool> DrawUserKey(const Rocks& rocks, Loaded& loaded) {
  if (loaded.user_key) return false;
  TACIT_ASSIGN(const bool counted, HasAllowances(rocks));
  if (counted)
    return Fail(ErrorCode::kCorruption,
                fmt::format("store {}: users are counted in it, but '{}' is missing", rocks.path(),
                            meta::kUserKey));
  loaded.user_key = RandomBytes<16>();
  return true;
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

Status BringUpWitness(OpenedStore& store) {
  const WitnessRecord now = WitnessOf(store.view.lineage, store.view.tip);
  TACIT_ASSIGN(store.witness, WitnessFile::OpenOrCreate(store.options.witness, now));
  TACIT_ASSIGN(const auto seen, WitnessFile::Read(store.options.witness));
  if (seen && seen->lineage == now.lineage && seen->seq == now.seq) return {};
  return store.witness->Write(now);
}

// The witness of a store that is gone must not be overwritten by a new one in its place.
Status CheckNotReplaced(const StoreOptions& options, const std::optional<WitnessRecord>& witness) {
  if (!witness || witness->seq.value == 0 || Rocks::Exists(options.path)) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("there is no store at {}, but witness {} has seen {} commits of one; to "
                          "start afresh, name another witness",
                          options.path, options.witness, witness->seq.value));
}

}  // namespace

Result<std::unique_ptr<EmbeddingStore>> EmbeddingStore::Open(StoreOptions options) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  TACIT_ASSIGN(const auto witness, ReadWitness(options));
  TACIT_RETURN_IF_ERROR(CheckNotReplaced(options, witness));

  OpenedStore store;
  store.latch = std::make_shared<FailureLatch>();
  TACIT_ASSIGN(store.rocks,
               Rocks::Open(options.path, options.memory_bytes, store.latch, options.clock));
  TACIT_ASSIGN(Loaded loaded, Load(*store.rocks));
  const bool fresh = loaded.fresh();
  if (fresh) {
    loaded.lineage = ToHex(RandomBytes<16>());
    loaded.salt = RandomBytes<32>();
    loaded.shards = options.shards;
  }
  TACIT_RETURN_IF_ERROR(CheckHistory(options, witness, loaded));
  TACIT_RETURN_IF_ERROR(MatchShards(options, loaded));

  store.view = loaded.MakeView();
  auto catalog = std::make_shared<Catalog>(loaded.shards, loaded.records);
  TACIT_ASSIGN(const auto changed, MatchLearners(options, *catalog, store.view));
  TACIT_ASSIGN(store.ledger, RestoreLedger(options, loaded));
  TACIT_RETURN_IF_ERROR(DeclareLearners(options, store.ledger));
  TACIT_ASSIGN(const bool new_user_key, DrawUserKey(*store.rocks, loaded));
  TACIT_RETURN_IF_ERROR(
      WriteIdentity(*store.rocks, loaded, fresh, new_user_key, *catalog, changed));
  store.catalog = std::move(catalog);
  store.view.ledger_tail = TailOf(loaded.entries, store.catalog->records().size());
  store.salt = loaded.salt;
  store.user_key = *loaded.user_key;
  store.options = std::move(options);
  if (!store.options.witness.empty()) TACIT_RETURN_IF_ERROR(BringUpWitness(store));

  // Everything here is on the disk and witnessed, so it may be folded: the row caches then need not
  // know of deltas that were there before them.
  TACIT_RETURN_IF_ERROR(ClearFoldFiles(store.options.path));
  TACIT_RETURN_IF_ERROR(FoldView(*store.rocks, *store.catalog, store.view));
  store.view.overlay.clear();
  store.view.learners.resize(store.catalog->records().size());
  store.view.tip.learners = store.ledger.Learners();
  store.view.tip.total = store.ledger.Total();
  return std::unique_ptr<EmbeddingStore>(std::make_unique<StoreImpl>(std::move(store)));
}

}  // namespace tacit::store
