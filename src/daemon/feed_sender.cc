#include "daemon/feed_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

constexpr std::chrono::milliseconds kBetweenLastTries(50);  // once it is to finish

int64_t SteadyMillis(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now().time_since_epoch())
      .count();
}

}  // namespace

FeedSender::FeedSender(store::Releaser& store, const config::Feed& feed,
                       feed::PublisherOptions options, const Clock& clock,
                       metrics::Registry& registry)
    : store_(store),
      feed_(feed),
      clock_(clock),
      publisher_(store, clock, WithStop(std::move(options))),
      published_version_(registry.AddGauge("tacit_feed_published_version")),
      lag_versions_(registry.AddGauge("tacit_feed_unpublished_commits")),
      lag_seconds_(registry.AddGauge("tacit_feed_unpublished_seconds")),
      failing_(registry.AddGauge("tacit_feed_failing")),
      versions_(registry.AddCounter("tacit_feed_versions_total")),
      whole_(registry.AddCounter("tacit_feed_whole_versions_total")),
      records_(registry.AddCounter("tacit_feed_records_total")),
      bytes_(registry.AddCounter("tacit_feed_bytes_total")) {
  thread_.Start("tacit-feed", [this] { Loop(); });
}

FeedSender::~FeedSender() {
  given_up_ = true;
  Finish(kOnStop);
}

void FeedSender::Finish(std::chrono::seconds patience) {
  {
    const MutexLock lock(mutex_);
    deadline_ = std::chrono::steady_clock::now() + patience;
  }
  thread_.Stop();
}

// Only its thread calls what the options get here.
feed::PublisherOptions FeedSender::WithStop(feed::PublisherOptions options) {
  options.keep_going = [this] { return KeepsGoing(); };
  options.on_progress = [this] { heartbeat_.Work(); };
  return options;
}

bool FeedSender::KeepsGoing() const {
  if (given_up_) return false;
  if (!thread_.stopping()) return true;
  const MutexLock lock(mutex_);
  return std::chrono::steady_clock::now() < deadline_;
}

std::string FeedSender::trouble() const {
  const MutexLock lock(mutex_);
  if (refused_) return failure_;
  if (behind_since_ms_ < 0) return "";
  const int64_t behind_ms = SteadyMillis(clock_) - behind_since_ms_;
  if (behind_ms <= int64_t{feed_.max_age_ms}) return "";
  return fmt::format("the newest commit is unpublished for {:.1f} s{}{}",
                     static_cast<double>(behind_ms) / 1000, failure_.empty() ? "" : ": ", failure_);
}

void FeedSender::Loop() {
  const std::chrono::milliseconds interval(feed_.interval_ms);
  std::chrono::steady_clock::time_point next;
  do {
    next = std::chrono::steady_clock::now() + interval;
    heartbeat_.Work();
    PublishOnce();
    heartbeat_.Rest();
  } while (thread_.Await(next - std::chrono::steady_clock::now()));
  // The last commit is in the topic if brokers answer now, else after the next start.
  while (!given_up_ && !PublishOnce()) {
    if (KeepsGoing()) {
      std::this_thread::sleep_for(kBetweenLastTries);
      continue;
    }
    spdlog::warn("commit {} is not published: the next start goes on with it",
                 store_.Latest()->version().value);
    return;
  }
}

bool FeedSender::PublishOnce() {
  {
    const MutexLock lock(mutex_);
    if (refused_) return true;
  }
  NoteLag();
  const auto published = publisher_.Publish();
  failing_.Set(published ? 0 : 1);
  if (!published) {
    NoteFailure(published.error());
    return published.error().code != ErrorCode::kUnavailable;
  }
  {
    const MutexLock lock(mutex_);
    if (!failure_.empty()) spdlog::info("the feed is published again");
    failure_.clear();
  }
  if (*published) Tell(**published);
  NoteLag();
  return true;
}

void FeedSender::NoteFailure(const Error& error) {
  const bool stays = error.code != ErrorCode::kUnavailable;
  const MutexLock lock(mutex_);
  refused_ = stays;
  if (failure_ == error.message) return;
  failure_ = error.message;
  if (stays) {
    spdlog::error("the feed is not published any more, and training goes on: {}", failure_);
  } else {
    spdlog::warn("the feed cannot be published at present: {}", failure_);
  }
}

void FeedSender::Tell(const feed::PublishedVersion& version) {
  versions_.Add();
  records_.Add(static_cast<double>(version.records));
  bytes_.Add(static_cast<double>(version.bytes));
  if (!version.whole) return;
  whole_.Add();
  spdlog::info("topic '{}' has all of version {}: {}, {} bytes", feed_.topic, version.version.value,
               Counted(version.records, "record"), WithThousands(version.bytes));
}

void FeedSender::NoteLag() {
  const uint64_t committed = store_.Latest()->version().value;
  const auto known = publisher_.published();
  const uint64_t published = known ? known->value : 0;
  published_version_.Set(static_cast<double>(published));
  const MutexLock lock(mutex_);
  const bool behind = committed > published;
  if (!behind) behind_since_ms_ = -1;
  if (behind && behind_since_ms_ < 0) behind_since_ms_ = SteadyMillis(clock_);
  lag_versions_.Set(behind ? static_cast<double>(committed - published) : 0);
  lag_seconds_.Set(behind ? static_cast<double>(SteadyMillis(clock_) - behind_since_ms_) / 1000
                          : 0);
}

}  // namespace tacit::daemon
