#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/user_uses.h"
#include "store/types/history.h"
#include "store/types/snapshot.h"

namespace tacit::store {

// A store's knowledge of its users. All of it is secret, and no epsilon covers it. Any method may
// be called from any thread.
class UserBook {
 public:
  virtual ~UserBook() = default;

  // The secret that users are counted under: drawn when the store is created, never revealed.
  virtual SipHash::Key user_key() const = 0;
  // Fills in how much of the learner's allowance each of these users (named by `user`) has used,
  // and returns the step it is as of. Both are from one commit, which may be written but not yet
  // published.
  virtual Result<uint64_t> ReadAllowances(LearnerIndex learner,
                                          std::span<UserUses> users) const = 0;
  // Counts the learner's users by what they have used, as of a moment between two commits. Reads
  // all counts: some seconds a million users. `keep` is asked now and then; kUnavailable once it
  // says no.
  virtual Result<UsersByUses> CountUsers(LearnerIndex learner,
                                         const std::function<bool()>& keep) const = 0;
  // Fills in each user's recent items (named by `user`) as ReadAllowances does.
  virtual Result<uint64_t> ReadHistories(LearnerIndex learner,
                                         std::span<UserHistory> users) const = 0;

  // Forgets users, named by their keyed hash: deletes their histories with all learners and
  // publishes that at once, between two commits. What they did until now, by its own time or
  // without one, is not remembered again, even if it is read again. Their allowances stay. On disk
  // when it returns.
  virtual Status ForgetUsers(std::span<const Hash128> users) = 0;
  // The user's last request; nothing if there was none.
  virtual std::optional<ForgottenUser> Forgotten(const Hash128& user) const = 0;
  // Rewrites the files that still hold bytes of forgotten histories, and has the full checkpoints
  // in `checkpoints` (may be empty) list these users, so that a restore forgets them again. Returns
  // their number. Commits go on. kUnavailable: `given_up` was set, or another process works in the
  // folder of checkpoints; nothing is lost, and the next call goes on.
  virtual Result<uint64_t> EraseForgotten(const std::string& checkpoints,
                                          const std::atomic<bool>* given_up) = 0;

  // The last published snapshot; never null.
  virtual std::shared_ptr<const Snapshot> Latest() const = 0;
};

}  // namespace tacit::store
