#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/threads/heartbeat.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "config/config.h"
#include "feed/publisher.h"
#include "metrics/registry.h"
#include "store/releaser.h"

namespace tacit::daemon {

// Publishes a running store's commits to the feed's topic, on a thread of its own: one version in
// feed.interval_ms at most, each the newest commit of its moment. Training never waits for it, and
// goes on where it fails. Thread-safe. Store, clock and registry must outlive it.
class FeedSender {
 public:
  FeedSender(store::Releaser& store, const config::Feed& feed, feed::PublisherOptions options,
             const Clock& clock, metrics::Registry& registry);
  ~FeedSender();
  FeedSender(const FeedSender&) = delete;
  FeedSender& operator=(const FeedSender&) = delete;

  // The patience for the last commit of a daemon that was told to stop, and of one that has come to
  // the end of its source: nobody else publishes that.
  static constexpr std::chrono::seconds kOnStop{4}, kAtTheEnd{60};
  // Publishes the last commit now, without waiting for the next interval.
  void PublishNow() { thread_.Wake(); }
  // Tries for so long to publish the last commit, and ends: a version that is begun is given up
  // then, with the answer of the brokers that it waits for.
  void Finish(std::chrono::seconds patience);
  // A sign of life: each version is a piece of work, and a large one several.
  const Heartbeat& heartbeat() const { return heartbeat_; }
  // Says why commits stay unpublished for longer than feed.max_age_ms, or for good; empty if
  // they do not.
  std::string trouble() const;

 private:
  feed::PublisherOptions WithStop(feed::PublisherOptions options);
  // Tells whether a version that is begun is still waited for.
  bool KeepsGoing() const;
  void Loop();
  // Returns true if there is nothing more to publish at present, or never will be.
  bool PublishOnce();
  void NoteFailure(const Error& error);
  void Tell(const feed::PublishedVersion& version);
  void NoteLag();

  store::Releaser& store_;
  const config::Feed feed_;
  const Clock& clock_;
  std::atomic<bool> given_up_ = false;
  Heartbeat heartbeat_;
  feed::Publisher publisher_;  // used by the thread
  const metrics::Gauge published_version_, lag_versions_, lag_seconds_, failing_;
  const metrics::Counter versions_, whole_, records_, bytes_;
  mutable Mutex mutex_;
  // Set before the thread is told to stop.
  std::chrono::steady_clock::time_point deadline_ TACIT_GUARDED_BY(mutex_);
  std::string failure_ TACIT_GUARDED_BY(mutex_);   // of the last try; if empty, it succeeded
  bool refused_ TACIT_GUARDED_BY(mutex_) = false;  // and it stays
  // Steady; since when a commit is unpublished; -1: all are published.
  int64_t behind_since_ms_ TACIT_GUARDED_BY(mutex_) = -1;
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
