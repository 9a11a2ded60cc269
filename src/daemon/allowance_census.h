#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "metrics/registry.h"
#include "privacy/allowance_forecast.h"
#include "store/user_book.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Counts how many users of a running store have how much of their allowance left, on a thread of
// its own: at the start, and then every ten minutes, or less often where counting takes long. The
// counts are gauges (tacit_users_by_allowance_left); the log has them at the start, and when the
// share of users with nothing left has passed another tenth. All of it is un-noised: operator-only.
// The book and the registry must outlive it.
class AllowanceCensus {
 public:
  // Learners whose unit is an event have no users; without others there is no thread.
  AllowanceCensus(const wiring::Assembly& assembly, const store::UserBook& users,
                  metrics::Registry& registry);

  // The last count of a learner's users, and its time (UTC).
  struct Census {
    int64_t time_ms = 0;
    privacy::AllowancesLeft left;
  };
  // Nothing before the first count, and for a learner without users. Any thread.
  std::optional<Census> last(LearnerIndex learner) const;

 private:
  struct Subject {
    std::string learner;
    LearnerIndex index;
    double delta = 0;
    privacy::Bounds bounds;
    std::array<metrics::Gauge, 5> left;  // nothing, up to a quarter, ..., up to all
    std::optional<int> tenths_told = {};
    bool weakness_told = false;  // that delta is large for the number of users
  };

  void Loop();
  bool Count(size_t index);

  const store::UserBook& users_;
  std::vector<Subject> subjects_;
  mutable Mutex mutex_;
  std::vector<std::optional<Census>> last_ TACIT_GUARDED_BY(mutex_);  // of each subject
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
