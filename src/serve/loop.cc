#include "serve/loop.h"

#include <algorithm>
#include <ctime>
#include <vector>

namespace tacit::serve {
namespace {

// How often timeouts are looked at: one timer a thread instead of one a connection, at the price
// of a timeout that may come a tick late.
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

}  // namespace

bool Gate::Enter() {
  const std::lock_guard lock(mutex_);
  if (inside_ >= capacity_) return false;
  ++inside_;
  return true;
}

void Gate::Leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) empty_.notify_all();
}

bool Gate::WaitEmpty(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return empty_.wait_until(lock, deadline, [&] { return inside_ == 0; });
}

Shared::Shared(ServerOptions o, metrics::Registry& metrics)
    : options(std::move(o)), connections(options.max_connections) {
  using metrics::Audience;
  open_connections =
      metrics.AddGauge(Audience::kPublic, "tacit_http_connections", "HTTP connections open.");
  refused = metrics.AddCounter(Audience::kPublic, "tacit_http_refused_total",
                               "HTTP requests and connections refused: malformed, over a limit.");
}

Loop::Loop(Shared& shared) : shared_(shared), tick_(TickOf(shared.options)) {}

void Loop::Run(const HandlerFactory& make_handler) {
  handler_ = make_handler();
  Tick();
  io_.run();
}

void Loop::Tick() {
  date_ = DateNow();
  const SteadyTime now = std::chrono::steady_clock::now();
  // A session closes its socket here; it goes away later, when its pending operation ends.
  for (Session* session : sessions_) session->Tick(now);
  timer_.expires_after(tick_);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    // A tick that was due already when the loop was finished is not cancelled any more: a further
    // one would keep the loop for ever.
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

}  // namespace tacit::serve
