#include "daemon/checkpoint_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"
#include "base/threads/named_thread.h"

namespace tacit::daemon {
namespace {

constexpr std::chrono::seconds kMostBetweenLooks(60);

}  // namespace

CheckpointSchedule::CheckpointSchedule(store::Store& store, const config::Checkpoints& options,
                                       std::string schema, const Clock& clock,
                                       metrics::Registry& registry)
    : store_(store),
      path_(options.path),
      schema_(std::move(schema)),
      clock_(clock),
      made_(registry.AddCounter(metrics::Audience::kOperator, "tacit_checkpoints_made_total",
                                "Checkpoints made since the start")),
      failed_(registry.AddCounter(metrics::Audience::kOperator, "tacit_checkpoints_failed_total",
                                  "Checkpoints that could not be made since the start")),
      last_time_(registry.AddGauge(metrics::Audience::kOperator,
                                   "tacit_checkpoint_last_timestamp_seconds",
                                   "Unix time of the last checkpoint made since the start")),
      options_(options),
      thread_(NamedThread("tacit-schedule", [this] { Loop(); })) {}

CheckpointSchedule::~CheckpointSchedule() {
  stopping_ = true;
  {
    const std::lock_guard lock(mutex_);  // so that the thread does not miss the notice
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointSchedule::Change(const config::Checkpoints& options) {
  {
    const std::lock_guard lock(mutex_);
    options_ = options;
    rescheduled_ = true;
  }
  changed_.notify_all();
}

serve::CheckpointCommands CheckpointSchedule::Commands() {
  return {.start = [this](store::CheckpointKind kind) { return Start(kind); },
          .report = [this] { return Report(); }};
}

Result<serve::CheckpointJob> CheckpointSchedule::Start(store::CheckpointKind kind) {
  serve::CheckpointJob job;
  {
    const std::lock_guard lock(mutex_);
    if (last_ && last_->state == serve::CheckpointJob::State::kRunning)
      return Fail(ErrorCode::kUnavailable,
                  "a checkpoint is being made: ask again when it is there");
    job = Begin(kind);
    asked_ = true;
  }
  changed_.notify_all();
  return job;
}

Result<serve::CheckpointReport> CheckpointSchedule::Report() const {
  serve::CheckpointReport report{.path = path_};
  TACIT_ASSIGN(report.places, store::ListCheckpoints(path_, &report.unreadable));
  const std::lock_guard lock(mutex_);
  report.last = last_;
  return report;
}

// REQUIRES the lock.
serve::CheckpointJob CheckpointSchedule::Begin(store::CheckpointKind kind) {
  serve::CheckpointJob job;
  job.id = last_ ? last_->id + 1 : 1;
  job.kind = kind;
  last_ = job;
  return job;
}

void CheckpointSchedule::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    rescheduled_ = false;
    if (std::exchange(asked_, false)) Make(lock);
    MakeDue(lock);
    const std::chrono::seconds pause(
        options_.every_s == 0 ? uint64_t{60} : std::clamp<uint64_t>(options_.every_s / 10, 1, 60));
    changed_.wait_for(lock, std::min(pause, kMostBetweenLooks),
                      [&] { return asked_ || rescheduled_ || stopping_; });
  }
}

// Makes the checkpoint that last_ tells of. Gives up the lock meanwhile.
void CheckpointSchedule::Make(std::unique_lock<std::mutex>& lock) {
  serve::CheckpointJob job = *last_;
  lock.unlock();
  auto made = store_.MakeCheckpoint(
      {.kind = job.kind, .parent = path_, .schema = schema_, .keep_going = [this] {
         return !stopping_;
       }});
  if (made) {
    job.state = serve::CheckpointJob::State::kDone;
    job.made = *std::move(made);
    made_.Add();
    last_time_.Set(static_cast<double>(clock_.UnixMillis()) / 1000);
  } else {
    job.state = serve::CheckpointJob::State::kFailed;
    job.error = std::move(made.error().message);
    failed_.Add();
  }
  Tell(job);
  lock.lock();
  last_ = std::move(job);
}

void CheckpointSchedule::Tell(const serve::CheckpointJob& job) const {
  if (!job.made) {
    spdlog::warn("no checkpoint was made: {}", job.error);
  } else if (!job.made->existed) {
    spdlog::info("checkpoint {} in {:.0f} ms; commits waited {:.1f} ms", job.made->place.folder,
                 job.made->took_ms, job.made->paused_ms);
  }
}

// A checkpoint from while the clock was ahead would hold all others back until then, so its time
// says nothing.
Result<bool> CheckpointSchedule::IsDue(store::CheckpointKind kind, uint64_t every_s) {
  const auto snapshot = store_.Latest();
  if (snapshot->version() == CommitSeq(0)) return false;
  TACIT_ASSIGN(const auto places, store::ListCheckpoints(path_, nullptr));
  const int64_t now_ms = clock_.UnixMillis();
  const int64_t since_ms = now_ms - static_cast<int64_t>(every_s) * 1000;
  for (const store::CheckpointPlace& place : places) {
    const store::CheckpointManifest& manifest = place.manifest;
    if (manifest.kind != kind || manifest.lineage != snapshot->lineage()) continue;
    if (manifest.commit == snapshot->version()) return false;
    if (manifest.time_ms > now_ms) {
      TellAhead(place);
    } else if (manifest.time_ms > since_ms) {
      return false;
    }
  }
  return true;
}

void CheckpointSchedule::TellAhead(const store::CheckpointPlace& place) {
  if (std::exchange(told_ahead_, true)) return;
  spdlog::warn(
      "checkpoint {} was made at a time that is ahead of the system's clock: the next ones are due "
      "as if it were not there",
      place.folder);
}

void CheckpointSchedule::MakeDue(std::unique_lock<std::mutex>& lock) {
  if (options_.every_s == 0) return;
  bool made = false;
  const config::Checkpoints options = options_;  // they may change meanwhile
  for (const std::string& name : options.kinds) {
    const auto kind = store::CheckpointKindOf(name);
    lock.unlock();
    const auto due = IsDue(*kind, options.every_s);
    if (!due) spdlog::warn("no checkpoint was made: {}", due.error().message);
    lock.lock();
    if (asked_ || stopping_ || !due || !*due) continue;
    Begin(*kind);
    Make(lock);
    made = made || last_->made.has_value();
  }
  if (!made) return;
  lock.unlock();
  std::vector<std::string> held;
  const auto removed = store::PruneCheckpoints(path_, options.keep, &held);
  for (const std::string& folder : held)
    spdlog::info("checkpoint {} stays: it is being served", folder);
  if (!removed) spdlog::warn("older checkpoints stay: {}", removed.error().message);
  lock.lock();
}

}  // namespace tacit::daemon
