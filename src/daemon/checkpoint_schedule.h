#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "serve/routes/checkpoint_route.h"
#include "store/store.h"

namespace tacit::daemon {

// Makes checkpoints of a running store, one at a time, on a thread of its own: those that operators
// ask for, and those that are due. The newest one of a kind on disk decides when the next is due,
// so that restarts do not move it; after a failure it is tried again within a minute. Its end gives
// up a checkpoint that is being made. Thread-safe. The store, clock and registry must outlive it.
class CheckpointSchedule {
 public:
  CheckpointSchedule(store::Store& store, const config::Checkpoints& options, std::string schema,
                     const Clock& clock, metrics::Registry& registry);

  // Goes on with this schedule: every, keep and kinds.
  void Change(const config::Checkpoints& options);

  // The operator's commands; valid as long as this object.
  serve::CheckpointCommands Commands();

 private:
  Result<serve::CheckpointJob> Start(store::CheckpointKind kind);
  Result<serve::CheckpointReport> Report() const;
  void Loop();
  serve::CheckpointJob Begin(store::CheckpointKind kind) TACIT_REQUIRES(mutex_);
  bool Make(serve::CheckpointJob job);
  void MakeAsked();
  void MakeDue();
  std::chrono::seconds BetweenLooks() const;
  Result<bool> IsDue(store::CheckpointKind kind, uint64_t every_s);
  void TellAhead(const store::CheckpointPlace& place);
  void Tell(const serve::CheckpointJob& job) const;

  store::Store& store_;
  const std::string path_;
  const std::string schema_;
  const Clock& clock_;
  const metrics::Counter made_, failed_;
  const metrics::Gauge last_time_;
  mutable Mutex mutex_;
  config::Checkpoints options_ TACIT_GUARDED_BY(mutex_);  // except the path
  std::optional<serve::CheckpointJob> last_ TACIT_GUARDED_BY(mutex_);
  bool asked_ TACIT_GUARDED_BY(mutex_) = false;  // last_ waits for the thread
  bool told_ahead_ = false;                      // the thread's
  PacedThread thread_;                           // the last member: it uses all others
};

}  // namespace tacit::daemon
