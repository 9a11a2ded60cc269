#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "metrics/registry.h"
#include "store/store.h"

namespace tacit::daemon {

// Reads the tables of a running store once in `days`, slowly, on a thread of its own, so that an
// operator hears of a damaged one before a request touches it. The first pass begins at once.
// Thread-safe. The store and the registry must outlive it.
class Scrubber {
 public:
  // 0 days: never.
  Scrubber(const store::Store& store, uint32_t days, metrics::Registry& registry);

  // Says what the last pass found damaged, for operators; if empty, nothing.
  std::string damage() const;

 private:
  void Loop();
  bool Pass();
  bool Pace(uint64_t read, uint64_t of);

  const store::Store& store_;
  const std::chrono::duration<double> period_;
  const metrics::Gauge damaged_files_;
  const metrics::Counter bytes_;
  mutable Mutex mutex_;
  std::string damage_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
