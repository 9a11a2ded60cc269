#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "serve/routes/checkpoint_route.h"
#include "store/store.h"

namespace tacit::daemon {

// Makes checkpoints of a running store, one at a time, on a thread of its own: those that operators
// ask for, and those that are due. The newest one of a kind on disk decides when the next is due,
// so that restarts do not move it; after a failure it is tried again within a minute. Thread-safe.
// The store, clock and registry must outlive it.
class CheckpointSchedule {
 public:
  CheckpointSchedule(store::Store& store, const config::Checkpoints& options, std::string schema,
                     const Clock& clock, metrics::Registry& registry);
  // Gives up a checkpoint that is being made.
  ~CheckpointSchedule();
  CheckpointSchedule(const CheckpointSchedule&) = delete;
  CheckpointSchedule& operator=(const CheckpointSchedule&) = delete;

  // Goes on with this schedule: every, keep and kinds.
  void Change(const config::Checkpoints& options);

  // The operator's commands; valid as long as this object.
  serve::CheckpointCommands Commands();

 private:
  Result<serve::CheckpointJob> Start(store::CheckpointKind kind);
  Result<serve::CheckpointReport> Report() const;
  void Loop();
  serve::CheckpointJob Begin(store::CheckpointKind kind);
  void Make(std::unique_lock<std::mutex>& lock);
  void MakeDue(std::unique_lock<std::mutex>& lock);
  Result<bool> IsDue(store::CheckpointKind kind, uint64_t every_s);
  void TellAhead(const store::CheckpointPlace& place);
  void Tell(const serve::CheckpointJob& job) const;

  store::Store& store_;
  const std::string path_;
  const std::string schema_;
  const Clock& clock_;
  const metrics::Counter made_, failed_;
  const metrics::Gauge last_time_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  config::Checkpoints options_;  // but for the path
  bool rescheduled_ = false;     // options_ have changed, and the thread has not seen it
  std::optional<serve::CheckpointJob> last_;
  bool asked_ = false;       // last_ waits for the thread
  bool told_ahead_ = false;  // the thread's
  std::thread thread_;       // the last member: it uses all others
};

}  // namespace tacit::daemon
