#include "daemon/feed_follower.h"

#include <fmt/format.h>

#include <utility>

#include "base/files/log.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

constexpr std::chrono::milliseconds kReadSlice(100);
// Between two tries where brokers refuse at once.
constexpr std::chrono::milliseconds kFollowPause(200);

double SecondsBetween(int64_t from_ms, int64_t to_ms) {
  return to_ms > from_ms ? static_cast<double>(to_ms - from_ms) / 1000 : 0;
}

}  // namespace

FeedFollower::FeedFollower(store::ReplicaStore& store, const config::Feed& feed,
                           std::vector<store::LearnerLayout> layouts, feed::ReplicaSource source,
                           const Clock& clock, metrics::Registry& registry,
                           std::function<void(int64_t)> on_version)
    : store_(store),
      feed_(feed),
      clock_(clock),
      on_version_(std::move(on_version)),
      replica_(store, std::move(layouts), std::move(source)),
      version_(registry.AddGauge("tacit_replica_version")),
      lag_versions_(registry.AddGauge("tacit_replica_lag_versions")),
      lag_seconds_(registry.AddGauge("tacit_replica_lag_seconds")),
      lag_records_(registry.AddGauge("tacit_replica_lag_records")),
      lag_bytes_(registry.AddGauge("tacit_replica_lag_bytes")),
      age_(registry.AddGauge("tacit_replica_age_seconds")),
      failing_(registry.AddGauge("tacit_replica_failing")),
      versions_(registry.AddCounter("tacit_replica_versions_total")),
      records_(registry.AddCounter("tacit_replica_records_total")),
      bytes_(registry.AddCounter("tacit_replica_bytes_total")),
      sight_(replica_.sight()) {
  thread_.Start("tacit-replica", [this] { Loop(); });
}

void FeedFollower::Loop() {
  bool ended = false;
  while (!thread_.stopping()) {
    heartbeat_.Work();
    const auto stepped = ended ? Result<bool>(false) : replica_.Step(kReadSlice);
    if (!ended) ended = Note(stepped);
    ShowLag();
    if (stepped && *stepped) on_version_(replica_.sight().served_time_ms);
    if (ended || !stepped) thread_.Rest(kFollowPause);
  }
  heartbeat_.Rest();
}

bool FeedFollower::Note(const Result<bool>& stepped) {
  failing_.Set(stepped ? 0 : 1);
  const feed::ReplicaSight sight = replica_.sight();
  const MutexLock lock(mutex_);
  versions_.Add(static_cast<double>(sight.versions - sight_.versions));
  records_.Add(static_cast<double>(sight.records - sight_.records));
  bytes_.Add(static_cast<double>(sight.bytes - sight_.bytes));
  sight_ = sight;
  if (stepped) {
    if (!failure_.empty()) spdlog::info("the feed is read again");
    failure_.clear();
    return false;
  }
  const ErrorCode code = stepped.error().code;
  if (code == ErrorCode::kIo) {
    ended_ = "the replica's store has failed";
  } else if (code != ErrorCode::kUnavailable) {
    ended_ = "the feed is refused";
  }
  const bool ended = !ended_.empty();
  if (failure_ == stepped.error().message) return ended;
  failure_ = stepped.error().message;
  if (ended) {
    spdlog::error("the feed is not followed any more, and version {} goes on being served: {}: {}",
                  sight.served.value, ended_, failure_);
  } else {
    spdlog::warn("the feed cannot be read at present: {}", failure_);
  }
  return ended;
}

void FeedFollower::ShowLag() {
  const MutexLock lock(mutex_);
  const feed::ReplicaSight& sight = sight_;
  version_.Set(static_cast<double>(sight.served.value));
  lag_versions_.Set(static_cast<double>(sight.newest.value - sight.served.value));
  lag_seconds_.Set(SecondsBetween(sight.served_time_ms, sight.newest_time_ms));
  lag_records_.Set(static_cast<double>(sight.records_behind));
  const double each = sight.records == 0
                          ? 0
                          : static_cast<double>(sight.bytes) / static_cast<double>(sight.records);
  lag_bytes_.Set(static_cast<double>(sight.pending_bytes) +
                 each * static_cast<double>(sight.records_behind));
  if (sight.served_time_ms > 0) age_.Set(SecondsBetween(sight.served_time_ms, clock_.UnixMillis()));
}

serve::Readiness FeedFollower::readiness() const {
  const MutexLock lock(mutex_);
  serve::Readiness readiness{.ready = store_.Latest() != nullptr, .reason = ""};
  if (!readiness.ready) {
    readiness.reason = "the replica has no whole version yet";
    if (!ended_.empty()) readiness.reason += ", and " + ended_;
    return readiness;
  }
  const int64_t age_ms = clock_.UnixMillis() - sight_.served_time_ms;
  const bool old = sight_.served_time_ms > 0 && age_ms > int64_t{feed_.max_age_ms};
  if (!ended_.empty()) {
    readiness.degraded = ended_;
  } else if (old) {
    readiness.degraded = "the version that is served is older than feed.max_age_ms";
  }
  if (readiness.degraded.empty()) return readiness;
  readiness.degraded_for_operators =
      fmt::format("{}: version {} is {:.1f} s old{}{}", readiness.degraded, sight_.served.value,
                  static_cast<double>(age_ms) / 1000, failure_.empty() ? "" : "; ", failure_);
  return readiness;
}

}  // namespace tacit::daemon
