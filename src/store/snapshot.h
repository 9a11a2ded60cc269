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
  // The embeddings that serving goes by (without optimiser state) of these rows, end to end in
  // `out`, which is as long as their dims together: their moving averages as of this commit where
  // the learner keeps them. Unwritten rows have their initial value. Any order, repeats allowed.
  virtual Status Rows(LearnerIndex learner, std::span<const uint64_t> rows,
                      std::span<float> out) const = 0;
};

}  // namespace tacit::store
