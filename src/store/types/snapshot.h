#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/terms.h"
#include "privacy/ledger.h"
#include "store/types/delta.h"
#include "store/types/history.h"

namespace tacit::store {

// The model as of one commit, for serving to read. Immutable and thread-safe. It keeps its rows on
// disk while it lives, so release it after the request.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  virtual CommitSeq version() const = 0;
  virtual const Digest& head() const = 0;  // ledger head: the snapshot's hash
  virtual std::string lineage() const = 0;
  virtual std::span<const Ancestor> ancestors() const { return {}; }  // of a restored store
  virtual TermId term() const { return kNoTerm; }                     // the term of this commit
  // Spending per learner and in total, as of this commit.
  virtual const std::vector<privacy::LedgerTotal>& learners() const = 0;
  virtual const privacy::LedgerTotal& total() const = 0;
  virtual uint64_t ledger_entries() const = 0;
  // The encoded entries [from, from + count) of the chain as of this commit, in order; fewer if it
  // ends earlier. Reads the disk.
  virtual Result<std::vector<std::string>> LedgerEntries(uint64_t from, uint64_t count) const = 0;

  // Null before the learner's first commit.
  virtual std::shared_ptr<const DenseState> Dense(LearnerIndex learner) const = 0;
  // The parameters to serve with: their moving average if the learner keeps one. Empty before the
  // learner's first commit. Valid as long as the snapshot.
  virtual std::span<const float> ServedDense(LearnerIndex) const { return {}; }
  // The released state of the learner's mechanism as of this commit, encoded; null if there is
  // none. Also null for a reader of a store whose owner died while committing a newer state, until
  // the owner is started again.
  virtual std::shared_ptr<const std::string> Released(LearnerIndex) const { return nullptr; }
  // A user's recent items as of this commit, oldest first; empty for an unknown user. Not covered
  // by any epsilon: only for that user's own requests. Reads the disk.
  virtual Result<std::vector<HistoryItem>> History(LearnerIndex, const Hash128& /*user*/) const {
    return std::vector<HistoryItem>{};
  }
  // Writes the embeddings to serve with (without optimiser state) of these rows end to end to
  // `out`, which has the length of all their dims: moving averages as of this commit if the learner
  // keeps them. Unwritten rows have their initial value. Any order, repeats allowed.
  virtual Status Rows(LearnerIndex learner, std::span<const uint64_t> rows,
                      std::span<float> out) const = 0;
  // Calls each(row, floats) for every row of the table that was ever written, with its state, in no
  // order; of a release checkpoint or replica without the optimiser's own floats. All of them have
  // been released. Reads the disk. kRefused: a snapshot of another kind.
  using EachRow = std::function<void(uint64_t row, std::span<const float> floats)>;
  virtual Status ForWritten(LearnerIndex, uint32_t /*table*/, const EachRow&) const {
    return Fail(ErrorCode::kRefused, "this snapshot cannot list its rows");
  }
};

}  // namespace tacit::store
