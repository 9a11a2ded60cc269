#include "http/loop.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "metrics/families.h"

namespace tacit::http {
namespace {

// The interval at which timeouts are checked. One timer per thread instead of one per connection
// means that a timeout may fire one tick late.
std::chrono::milliseconds TickOf(const ServerOptions& options) {
  const auto shortest =
      std::min({options.idle_timeout, options.request_timeout, options.write_timeout});
  return std::clamp(shortest / 4, std::chrono::milliseconds(10), std::chrono::milliseconds(500));
}

// RFC 9110, IMF-fixdate.
std::string DateNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  return {text, std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

const Clock* ClockOf(const ServerOptions& options) {
  static const SystemClock system;
  return options.clock != nullptr ? options.clock : &system;
}

}  // namespace

Shared::Shared(ServerOptions o, metrics::Registry& metrics)
    : options(std::move(o)), clock(ClockOf(options)), access_log(options.access_log) {
  open_connections = metrics.AddGauge("tacit_http_connections");
  refused = metrics.AddCounter("tacit_http_refused_total");
}

SteadyTime Shared::About() const {
  timespec now{};
  if (options.clock != nullptr || ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0) return Now();
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Loop::Loop(Shared& shared) : shared_(shared), tick_(TickOf(shared.options)) {}

void Loop::Run(const HandlerFactory& make_handler) {
  handler_ = make_handler();
  Tick();
  io_.run();
}

void Loop::Tick() {
  date_ = DateNow();
  beats_.fetch_add(1, std::memory_order_relaxed);
  const SteadyTime now = shared_.Now();
  // A session closes its socket here. It is destroyed later, when its pending operation ends.
  for (Session* session : sessions_) session->Tick(now);
  timer_.expires_after(tick_);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    // If the timer had already fired when the loop finished, cancelling it has no effect; starting
    // another would keep the loop running forever.
    if (!cancelled && !finished_) Tick();
  });
}

void Loop::Drain() {
  for (Session* session : sessions_) session->Drain();
}

size_t Loop::Cut() {
  for (Session* session : sessions_) session->Cut();
  return sessions_.size();
}

void Loop::Finish() {
  finished_ = true;
  timer_.cancel();
  work_.reset();
}

}  // namespace tacit::http
