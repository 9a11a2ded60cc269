#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// All changes of one commit. `previous` and `previous_entries` (the last entries of the ledger
// before it, encoded: all that the commit may have changed) let a reader undo the commit: a reader
// must not show commits that the witness has not seen.
struct DeltaRecord {
  CommitTip previous, tip;
  std::vector<std::string> previous_entries;
  std::vector<std::string> entries;  // ledger entries changed or new, encoded
  std::string source_identity;
  std::vector<std::pair<uint16_t, LearnerCommit>> learners;  // each with its key in the store
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

// Decodes the blob of commit `seq`. It has positions, rows and dense states of the learners; the
// rest of their parts has keys of its own.
Result<DeltaRecord> DecodeDelta(std::string_view sealed, CommitSeq seq);

// A learner's dense state as of commit `seq`, stored in `meta` once its delta is folded.
std::string EncodeDenseBase(CommitSeq seq, const DenseState& state);
// Fills in the dense state and its commit.
Status DecodeDenseBase(std::string_view bytes, LearnerState* learner);

}  // namespace tacit::store
