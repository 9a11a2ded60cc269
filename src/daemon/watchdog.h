#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/server.h"

namespace tacit::daemon {

// Tells the service manager that the process is well, as long as each of its stages is. A stage
// that does not move for half of the manager's patience ends that, and the manager starts the
// process anew. Used by one thread.
class Watchdog {
 public:
  struct Stage {
    std::string name;
    // A number that changes with the stage's work; nothing while it waits for others.
    std::function<std::optional<uint64_t>()> look;
  };

  // `patience`: nothing is told where it is zero.
  Watchdog(const Clock& clock, Clock::Duration patience, std::vector<Stage> stages,
           std::function<void()> tell);

  // Looks at the stages. Called several times within the patience.
  void Look();

 private:
  struct Seen {
    std::optional<uint64_t> number;
    Clock::TimePoint since;
    bool told = false;
  };

  const Clock& clock_;
  const Clock::Duration patience_;
  const std::vector<Stage> stages_;
  const std::function<void()> tell_;
  std::vector<Seen> seen_;
  Clock::TimePoint last_told_;
};

// Appends a stage for each thread of a server, which outlives them; null if none.
void AddServerStages(const http::Server* server, std::vector<Watchdog::Stage>* stages);

}  // namespace tacit::daemon
