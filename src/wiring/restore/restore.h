#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/care/restore.h"
#include "wiring/assembly.h"

// Restores a store whose newest copy is lost, from a checkpoint or from an older copy: finds out
// what was learnt after that copy, and has it charged.
namespace tacit::wiring {

struct RestoreOptions {
  std::string from;  // a full checkpoint; or the older copy at the store's own path
  // Folders that may know more of what was learnt: the damaged store, other checkpoints of either
  // kind. Those in store.checkpoints.path are looked at too.
  std::vector<std::string> remains;
  // Reads the records after the copy again, to charge their users alone. Otherwise, and where the
  // source has them no more, every user is charged.
  bool read_again = true;
};

struct RestoreReport {
  store::Restored restored;
  std::string remembered_by;    // the path of the witness or mark
  CommitSeq through;            // its commit, up to which everything is charged
  std::string charged_by;       // the folder whose ledger was read beyond the copy's; empty if none
  CommitSeq charged_by_commit;  // how far that ledger goes
  std::string users_by;         // the folder whose counts of users were taken over; empty if none
  std::string not_read_again;   // why every user is charged; if empty, they are not
  std::vector<std::string> passed_over;  // remains that were of no use, with the reason
  std::vector<store::LearnerGap> gaps;
  std::vector<std::string> begun_anew;          // learners that the copy does not know
  std::vector<store::ForgottenUser> forgotten;  // by the copy and all remains; some more than once
};

// Makes the configuration's store out of `options.from`. What was learnt after it is told, in this
// order, by the ledger in the remains that reach furthest, and by the totals of witness or mark. A
// learner that the copy does not know begins anew where the lost one stood, with all its charges.
// kRefused: there is neither witness nor mark of the lost store, or they are older than the copy,
// or contradict each other; or some learner's steps cannot be priced, or it cannot have come to its
// position. kUnavailable: another process restores the store.
Result<RestoreReport> RestoreStore(const Assembly& assembly, const RestoreOptions& options);

// Restores the store at the configuration's path in its own place, if it is older than its witness
// or mark; nothing if it is not, or if there is no store or neither of them. Of two that try at
// once one restores, and the other gets kUnavailable.
Result<std::optional<RestoreReport>> AcceptOlderCopy(const Assembly& assembly);

// A line for each thing that an operator should know of it.
std::vector<std::string> DescribeRestore(const Assembly& assembly, const RestoreReport& report);

}  // namespace tacit::wiring
