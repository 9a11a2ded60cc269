#include "daemon/checkpoint_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"
#include "metrics/families.h"

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
      made_(registry.AddCounter("tacit_checkpoints_made_total")),
      failed_(registry.AddCounter("tacit_checkpoints_failed_total")),
      last_time_(registry.AddGauge("tacit_checkpoint_last_timestamp_seconds")),
      options_(options) {
  thread_.Start("tacit-schedule", [this] { Loop(); });
}

void CheckpointSchedule::Change(const config::Checkpoints& options) {
  {
    const MutexLock lock(mutex_);
    options_ = options;
  }
  thread_.Wake();
}

serve::CheckpointCommands CheckpointSchedule::Commands() {
  return {.start = [this](store::CheckpointKind kind) { return Start(kind); },
          .report = [this] { return Report(); }};
}

Result<serve::CheckpointJob> CheckpointSchedule::Start(store::CheckpointKind kind) {
  serve::CheckpointJob job;
  {
    const MutexLock lock(mutex_);
    if (last_ && last_->state == serve::CheckpointJob::State::kRunning)
      return Fail(ErrorCode::kUnavailable,
                  "a checkpoint is being made: ask again when it is there");
    job = Begin(kind);
    asked_ = true;
  }
  thread_.Wake();
  return job;
}

Result<serve::CheckpointReport> CheckpointSchedule::Report() const {
  serve::CheckpointReport report{.path = path_};
  TACIT_ASSIGN(report.places, store::ListCheckpoints(path_, &report.unreadable));
  const MutexLock lock(mutex_);
  report.last = last_;
  return report;
}

serve::CheckpointJob CheckpointSchedule::Begin(store::CheckpointKind kind) {
  serve::CheckpointJob job;
  job.id = last_ ? last_->id + 1 : 1;
  job.kind = kind;
  last_ = job;
  return job;
}

void CheckpointSchedule::Loop() {
  do {
    MakeAsked();
    MakeDue();
  } while (thread_.Await(BetweenLooks()));
}

std::chrono::seconds CheckpointSchedule::BetweenLooks() const {
  const MutexLock lock(mutex_);
  const std::chrono::seconds pause(
      options_.every_s == 0 ? uint64_t{60} : std::clamp<uint64_t>(options_.every_s / 10, 1, 60));
  return std::min(pause, kMostBetweenLooks);
}

void CheckpointSchedule::MakeAsked() {
  serve::CheckpointJob job;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(asked_, false)) return;
    job = *last_;
  }
  Make(std::move(job));
}

// Makes the checkpoint that last_ tells of. Returns false if there is none.
bool CheckpointSchedule::Make(serve::CheckpointJob job) {
  auto made = store_.MakeCheckpoint(
      {.kind = job.kind, .parent = path_, .schema = schema_, .keep_going = [this] {
         return !thread_.stopping();
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
  const MutexLock lock(mutex_);
  last_ = std::move(job);
  return last_->made.has_value();
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

void CheckpointSchedule::MakeDue() {
  config::Checkpoints options;  // they may change meanwhile
  {
    const MutexLock lock(mutex_);
    options = options_;
  }
  if (options.every_s == 0) return;
  bool made = false;
  for (const std::string& name : options.kinds) {
    const auto kind = store::CheckpointKindOf(name);
    const auto due = IsDue(*kind, options.every_s);
    if (!due) spdlog::warn("no checkpoint was made: {}", due.error().message);
    serve::CheckpointJob job;
    {
      const MutexLock lock(mutex_);
      if (asked_ || thread_.stopping() || !due || !*due) continue;
      job = Begin(*kind);
    }
    if (Make(std::move(job))) made = true;
  }
  if (!made) return;
  std::vector<std::string> held;
  const auto removed = store::PruneCheckpoints(path_, options.keep, &held);
  for (const std::string& folder : held)
    spdlog::info("checkpoint {} stays: it is being served", folder);
  if (!removed) spdlog::warn("older checkpoints stay: {}", removed.error().message);
}

}  // namespace tacit::daemon
