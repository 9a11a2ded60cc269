#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/siphash.h"
#include "privacy/ledger.h"
#include "store/catalog.h"
#include "store/rocks.h"
#include "store/snapshot_impl.h"
#include "store/witness.h"

namespace tacit::store {

// The store's format; raised when bytes change their meaning.
inline constexpr uint32_t kStoreFormat = 2;

// Everything a store holds but its folded rows, as read from the disk and found to hang together.
struct Loaded {
  std::string lineage;  // empty: created, but nothing was ever written
  Digest salt{};
  std::optional<SipHash::Key> user_key;  // nothing in a store that was made before there was one
  uint32_t shards = 0;
  std::vector<LearnerRecord> records;  // by key
  CommitTip tip;
  std::string ledger_state;
  std::vector<privacy::LedgerEntry> entries;
  std::string source_identity;
  std::vector<std::string> positions;                                // by key
  std::vector<std::shared_ptr<const std::string>> mechanism_states;  // by key; null: none
  std::vector<CommitSeq> mechanism_seqs;  // by key: that wrote them; 0 where older programs did
  CommitSeq folded;
  std::vector<DenseBase> bases;     // by key: dense state as of `folded`
  std::vector<DeltaRecord> deltas;  // commits folded + 1 .. tip, in order

  bool fresh() const { return lineage.empty(); }
  // The view as of the tip.
  View MakeView() const;
  // Takes back the newest commit. REQUIRES an unfolded one. Afterwards `positions`,
  // `mechanism_states`, `source_identity` and `ledger_state` are those of a later commit: for
  // readers that do not show them.
  Status TakeBackLast();
};

// kCorruption: a value is damaged, or the values do not belong together.
Result<Loaded> Load(const Rocks& rocks);

// `folded` in `meta`: the commit up to which rows are folded, and for every learner with a dense
// state by then, the commit that wrote it.
struct FoldedRecord {
  CommitSeq seq;
  std::vector<std::pair<uint16_t, CommitSeq>> dense;
};
std::string EncodeFolded(const FoldedRecord& record);
Result<FoldedRecord> DecodeFolded(std::string_view bytes);

inline WitnessRecord WitnessOf(const std::string& lineage, const CommitTip& tip) {
  return {lineage, tip.seq, tip.head};
}

}  // namespace tacit::store
