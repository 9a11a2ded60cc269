#include "daemon/watchdog.h"

#include <fmt/format.h>

#include <utility>

#include "base/files/log.h"

namespace tacit::daemon {

Watchdog::Watchdog(const Clock& clock, Clock::Duration patience, std::vector<Stage> stages,
                   std::function<void()> tell)
    : clock_(clock),
      patience_(patience),
      stages_(std::move(stages)),
      tell_(std::move(tell)),
      seen_(stages_.size(), Seen{.number = {}, .since = clock.Now()}),
      last_told_(clock.Now() - patience) {}

void Watchdog::Look() {
  if (patience_ == Clock::Duration::zero()) return;
  const Clock::TimePoint now = clock_.Now();
  bool well = true;
  for (size_t i = 0; i < stages_.size(); ++i) {
    Seen& seen = seen_[i];
    const std::optional<uint64_t> number = stages_[i].look();
    if (!number || number != seen.number) {
      seen = {.number = number, .since = now};
    } else if (now - seen.since >= patience_ / 2) {
      well = false;
      if (!std::exchange(seen.told, true))
        spdlog::error("{} has not moved for {:.0f} s: the service manager is told nothing more",
                      stages_[i].name, tacit::Seconds(now - seen.since));
    }
  }
  if (!well || now - last_told_ < patience_ / 3) return;
  last_told_ = now;
  tell_();
}

void AddServerStages(const http::Server* server, std::vector<Watchdog::Stage>* stages) {
  for (size_t i = 0; server != nullptr && i < server->beats().size(); ++i)
    stages->push_back({fmt::format("thread {} of the server", i),
                       [server, i] { return std::optional<uint64_t>(server->beats()[i]); }});
}

}  // namespace tacit::daemon
