#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "privacy/ledger.h"
#include "store/delta.h"
#include "store/history.h"

namespace tacit::store {

// The model as of one commit: what serving reads. Immutable and thread-safe; holds its rows in
// place for as long as it lives, so let go of it after the request.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  virtual CommitSeq version() const = 0;
  virtual const Digest& head() const = 0;  // ledger head: the snapshot's hash
  virtual std::string lineage() const = 0;
  // Per learner and in total, as of this commit.
  virtual const std::vector<privacy::LedgerTotal>& learners() const = 0;
  virtual const privacy::LedgerTotal& total() const = 0;
  virtual uint64_t ledger_entries() const = 0;
  // The encoded entries [from, from + count) of the chain as of this commit, in order; fewer where
  // it ends before. Reads the disk.
  virtual Result<std::vector<std::string>> LedgerEntries(uint64_t from, uint64_t count) const = 0;

  // Null before the learner's first commit.
  virtual std::shared_ptr<const DenseState> Dense(LearnerIndex learner) const = 0;
  // The parameters that serving goes by: their moving average where the learner keeps one. Empty
  // before the learner's first commit. Valid as long as the snapshot.
  virtual std::span<const float> ServedDense(LearnerIndex) const { return {}; }
  // What the learner's mechanism had released as of this commit, encoded by it; null where it had
  // released nothing that is kept, and in a store whose owner died while it was being changed,
  // until that is started again.
  virtual std::shared_ptr<const std::string> Released(LearnerIndex) const { return nullptr; }
  // A user's recent items as of this commit, oldest first; empty for one who is not known. Not
  // covered by any epsilon: for that user's own eyes. Reads the disk.
  virtual Result<std::vector<HistoryItem>> History(LearnerIndex, const Hash128& /*user*/) const {
    return std::vector<HistoryItem>{};
  }
  // The embeddings that serving goes by (without optimiser state) of these rows, end to end in
  // `out`, which is as long as their dims together: their moving averages as of this commit where
  // the learner keeps them. Unwritten rows have their initial value. Any order, repeats allowed.
  virtual Status Rows(LearnerIndex learner, std::span<const uint64_t> rows,
                      std::span<float> out) const = 0;
};

}  // namespace tacit::store
