#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "config/config.h"
#include "privacy/anchor.h"
#include "store/store.h"

namespace tacit::daemon {

// Writes the ledger's head into the file of anchors, on a thread of its own: one at the start, one
// each interval in which there was a commit, and one at the end. If that fails it tries again, and
// training goes on. Thread-safe; the store outlives it.
class LedgerAnchorer {
 public:
  // Null where the configuration names no file. kInvalidArgument: the key cannot be used.
  // kCorruption: the anchors are damaged, or the store is older than they are or another one.
  static Result<std::unique_ptr<LedgerAnchorer>> Open(const store::Store& store,
                                                      const config::Anchors& options,
                                                      const Clock& clock);

  // The reason why the last head could not be written; "": it was.
  std::string trouble() const;
  // Writes the last head, if there is a new one. Call once nothing commits any more.
  void Finish();

 private:
  LedgerAnchorer(const store::Store& store, const config::Anchors& options, const Clock& clock)
      : store_(store), path_(options.path), every_(options.every_s), clock_(clock) {}
  Status CheckStore();
  Status WriteHead();
  bool TryWriteHead();
  void Loop();

  const store::Store& store_;
  const std::string path_;
  const std::chrono::seconds every_;
  const Clock& clock_;
  std::optional<privacy::AnchorSigner> signer_;
  uint64_t written_ = 0;      // anchors that the file has
  uint64_t last_commit_ = 0;  // of the last of them
  mutable Mutex mutex_;
  std::string trouble_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
