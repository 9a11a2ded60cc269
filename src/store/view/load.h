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

// The contents of a store except its folded rows, read from disk and found consistent.
struct Loaded {
  std::string lineage;  // if empty, created, but nothing was ever written
  Digest salt{};
  SipHash::Key user_key{};          // like the salt, zero in a release or a replica's store
  std::vector<Ancestor> ancestors;  // oldest first
  uint32_t shards = 0;
  bool release = false;  // a release checkpoint: without secrets, rows as they are served
  bool replica = false;  // a replica's store, without what learning resumes from
  std::vector<LearnerRecord> records;  // by key
  std::vector<std::string> forms;      // by key: LearnerLayout::form; empty if not noted
  CommitTip tip;
  Terms terms;
  std::string ledger_state;
  std::vector<privacy::LedgerEntry> entries;
  std::string source_identity;
  std::vector<LearnerState> learners;  // by key; dense states as of `folded`, the rest of the tip
  int64_t known_time_ms = 0;  // from RetentionClock, as of the last commit that kept histories
  CommitSeq folded;
  std::vector<DeltaRecord> deltas;  // commits folded + 1 .. tip, in order

  bool fresh() const { return lineage.empty(); }
  // The view as of the tip.
  View MakeView() const;
  // The chain as of the tip.
  StoreChain Chain() const;
  // Undoes the newest commit. REQUIRES an unfolded one. Afterwards positions, released states,
  // `source_identity` and `ledger_state` are of a later commit: for readers that do not show them.
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
