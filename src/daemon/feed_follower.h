#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/threads/heartbeat.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "config/config.h"
#include "feed/replica.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "store/replica/replica_store.h"

namespace tacit::daemon {

// Follows the feed into a replica's store, on a thread of its own. After a failure there, what is
// shown goes on being shown. Thread-safe. Store, clock and registry must outlive it.
class FeedFollower {
 public:
  // `on_version` is called on the thread after each version that is shown, with the time at which
  // it was published.
  FeedFollower(store::ReplicaStore& store, const config::Feed& feed,
               std::vector<store::LearnerLayout> layouts, feed::ReplicaSource source,
               const Clock& clock, metrics::Registry& registry,
               std::function<void(int64_t published_ms)> on_version);

  // Ready: a whole version is shown. Degraded: it is older than feed.max_age_ms, or nothing more
  // comes until a new start: the feed is refused, or the store has failed.
  serve::Readiness readiness() const;
  // A sign of life: each look at the feed is a piece of work.
  const Heartbeat& heartbeat() const { return heartbeat_; }
  // Ends the thread.
  void Stop() { thread_.Stop(); }

 private:
  void Loop();
  // Returns true if nothing more comes.
  bool Note(const Result<bool>& stepped);
  void ShowLag();

  store::ReplicaStore& store_;
  const config::Feed feed_;
  const Clock& clock_;
  const std::function<void(int64_t)> on_version_;
  Heartbeat heartbeat_;
  feed::Replica replica_;  // used by the thread
  const metrics::Gauge version_, lag_versions_, lag_seconds_, lag_records_, lag_bytes_, age_,
      failing_;
  const metrics::Counter versions_, records_, bytes_;
  mutable Mutex mutex_;
  std::string failure_ TACIT_GUARDED_BY(mutex_);  // of the last try; if empty, it succeeded
  // The reason why nothing more comes until a new start, in short; if empty, it does.
  std::string ended_ TACIT_GUARDED_BY(mutex_);
  feed::ReplicaSight sight_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
