#include "daemon/scrubber.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files/log.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

using Seconds = PacedThread::Seconds;

constexpr double kDaySeconds = 86400;
// A small store is not made to last for days.
constexpr double kLeastBytesPerSecond = 4 << 20;
constexpr size_t kNamedMost = 5;

}  // namespace

Scrubber::Scrubber(const store::Store& store, uint32_t days, metrics::Registry& registry)
    : store_(store),
      period_(days * kDaySeconds),
      damaged_files_(registry.AddGauge("tacit_store_damaged_files")),
      bytes_(registry.AddCounter("tacit_store_scrubbed_bytes_total")) {
  if (days > 0) thread_.Start("tacit-scrub", [this] { Loop(); });
}

std::string Scrubber::damage() const {
  const MutexLock lock(mutex_);
  return damage_;
}

// Nine tenths of the period are for reading, so that a pass is over before the next is due.
bool Scrubber::Pace(uint64_t read, uint64_t of) {
  bytes_.Add(static_cast<double>(read));
  const double rate =
      std::max(kLeastBytesPerSecond, static_cast<double>(of) / (.9 * period_.count()));
  return thread_.Rest(Seconds(static_cast<double>(read) / rate));
}

// Returns false once the scrubber is to stop.
bool Scrubber::Pass() {
  const auto found =
      store_.FindDamage([this](uint64_t read, uint64_t of) { return Pace(read, of); });
  if (!found) {
    spdlog::warn("the store's files could not be checked: {}", found.error().message);
    return !thread_.stopping();
  }
  if (thread_.stopping()) return false;
  std::string names;
  for (size_t i = 0; i < found->size(); ++i) {
    const store::Damage& damage = (*found)[i];
    spdlog::error(
        "{} {}. What lies in it may be missing or refused from now on. Make no checkpoint the only "
        "copy; docs/operating/restore.md, \"When the store is lost\", says how to go on",
        damage.file, damage.what);
    if (i < kNamedMost)
      names += fmt::format("{}{} {}", i == 0 ? "" : "; ", damage.file, damage.what);
  }
  damaged_files_.Set(static_cast<double>(found->size()));
  const MutexLock lock(mutex_);
  damage_ = std::move(names);
  return true;
}

void Scrubber::Loop() {
  Seconds took;
  do {
    const auto begin = std::chrono::steady_clock::now();
    if (!Pass()) return;
    took = std::chrono::steady_clock::now() - begin;
  } while (thread_.Rest(std::max(period_ - took, Seconds(60))));
}

}  // namespace tacit::daemon
