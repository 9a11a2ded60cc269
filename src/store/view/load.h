#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/terms.h"
#include "privacy/ledger.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"
#include "store/view/snapshot_impl.h"
#include "store/witness/witness.h"

namespace tacit::store {

// The store's format. It is raised when bytes change their meaning, or when an older program would
// leave a new value wrong. The previous format is read, and upgraded in the first commit.
inline constexpr uint32_t kStoreFormat = 3, kOldestStoreFormat = 2;
// The format of a store that was restored: programs of format 3 would not know of its ancestors,
// and would let users begin anew whom it has lost (restore.h).
inline constexpr uint32_t kRestoredFormat = 4;
// The format of a store, restored or not, in which a model has grown (model_growth.h): programs of
// format 4 would look for its rows in the wrong places.
inline constexpr uint32_t kGrownFormat = 5;
// The least format that a store of these learners has, whose shards have families of their own
// (kShardedFormat, rocks.h) or not.
uint32_t FormatOf(std::span<const LearnerRecord> records, bool shards_apart);

// The contents of a store except its folded rows, read from disk and found consistent.
struct Loaded {
  uint32_t format = kStoreFormat;
  std::string lineage;  // empty: created, but nothing was ever written
  Digest salt{};
  std::optional<SipHash::Key> user_key;  // nothing in a store older than the key
  std::vector<Ancestor> ancestors;       // oldest first
  uint32_t shards = 0;
  bool release = false;  // a release checkpoint: without secrets, rows as they are served
  bool replica = false;  // a replica's store, without what learning resumes from
  std::vector<LearnerRecord> records;  // by key
  std::vector<std::string> forms;      // by key: LearnerLayout::form; empty: not noted
  CommitTip tip;
  Terms terms;
  std::string ledger_state;
  std::vector<privacy::LedgerEntry> entries;
  std::string source_identity;
  std::vector<std::string> positions;                        // by key
  std::vector<std::shared_ptr<const std::string>> released;  // by key; null: none
  std::vector<CommitSeq> mechanism_seqs;  // by key: the commit that wrote each; 0: an older program
  int64_t known_time_ms = 0;  // from RetentionClock, as of the last commit that kept histories
  CommitSeq folded;
  std::vector<DenseBase> bases;     // by key: dense state as of `folded`
  std::vector<DeltaRecord> deltas;  // commits folded + 1 .. tip, in order

  bool fresh() const { return lineage.empty(); }
  // The view as of the tip.
  View MakeView() const;
  // The chain as of the tip.
  StoreChain Chain() const;
  // Undoes the newest commit. REQUIRES an unfolded one. Afterwards `positions`, `released`,
  // `source_identity` and `ledger_state` are those of a later commit: for readers that do not show
  // them.
  Status TakeBackLast();
};

// Reads a store. kCorruption: a value is damaged, or the values do not belong together.
Result<Loaded> Load(const Rocks& rocks);
// Reads only what a restore charges by: identity, tip, terms, ledger, positions, and the most steps
// that users have used. It works where rows or deltas are damaged.
Result<Loaded> LoadAccount(const Rocks& rocks);

// `folded` in `meta`: the commit up to which rows are folded, and for every learner with a dense
// state by then, the commit that wrote it.
struct FoldedRecord {
  CommitSeq seq;
  std::vector<std::pair<uint16_t, CommitSeq>> dense;
};
std::string EncodeFolded(const FoldedRecord& record);
Result<FoldedRecord> DecodeFolded(std::string_view bytes);

// `ancestors` in `meta`: the lineages that a restored store continues.
std::string EncodeAncestors(std::span<const Ancestor> ancestors);
Result<std::vector<Ancestor>> DecodeAncestors(std::string_view bytes);

// Encodes a term; its first commit is in its key.
std::string EncodeTerm(const Term& term);

}  // namespace tacit::store
