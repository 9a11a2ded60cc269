#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "privacy/ledger.h"
#include "store/types/delta.h"

namespace tacit::store {

// The end of the chain of commits, as a snapshot reports it.
struct CommitTip {
  CommitSeq seq;
  Digest head{};
  uint64_t ledger_entries = 0;
  std::vector<privacy::LedgerTotal> learners;
  privacy::LedgerTotal total;
};

std::string EncodeTip(const CommitTip& tip);
Result<CommitTip> DecodeTip(std::string_view bytes);

// One learner's part of a delta. Null members are unchanged.
struct LearnerDelta {
  uint16_t learner = 0;  // its key in the store
  std::string position;
  std::shared_ptr<const RowDelta> rows;
  std::shared_ptr<const DenseState> dense;
  // Not in the blob: the state is read from its own key, like the position.
  std::shared_ptr<const std::string> released = nullptr;
  // Not in the blob either: these have keys of their own.
  std::optional<AllowanceCommit> allowances = {};
  std::optional<HistoryCommit> histories = {};
  std::optional<std::string> allocation = {};
};

// All changes of one commit. `previous` and `previous_entries` (the last entries of the ledger
// before it, encoded: all that the commit may have changed) let a reader undo the commit: a reader
// must not show commits that the witness has not seen.
struct DeltaRecord {
  CommitTip previous, tip;
  std::vector<std::string> previous_entries;
  std::vector<std::string> entries;  // ledger entries changed or new, encoded
  std::string source_identity;
  std::vector<LearnerDelta> learners;
};

// The sealed blob in pieces, so that megabytes of floats are copied only once, into the write
// batch. Holds views into the record, which must outlive it.
class DeltaBlob {
 public:
  explicit DeltaBlob(const DeltaRecord& record);
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  size_t bytes() const;

 private:
  void Own(ByteWriter writer);
  template <class T>
  void View(const std::vector<T>& values);

  std::deque<std::string> owned_;
  std::vector<std::string_view> pieces_;
};

// Decodes the blob of commit `seq`.
Result<DeltaRecord> DecodeDelta(std::string_view sealed, CommitSeq seq);

// A learner's dense state as of commit `seq`, stored in `meta` once its delta is folded.
struct DenseBase {
  CommitSeq seq;
  std::shared_ptr<const DenseState> state;
};
std::string EncodeDenseBase(CommitSeq seq, const DenseState& state);
Result<DenseBase> DecodeDenseBase(std::string_view bytes);

}  // namespace tacit::store
