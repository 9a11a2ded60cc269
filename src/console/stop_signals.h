#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace tacit::console {

// Lets a thread wait for SIGTERM and SIGINT. SIGHUP, which log rotation and closed terminals send,
// ends nothing: it is logged, or calls `on_hangup`. Construct it before any thread, so that every
// thread inherits the blocked signals. Not thread-safe.
class StopSignals {
 public:
  // `on_hangup` is called by WaitFor, on its thread; it may be empty.
  explicit StopSignals(std::function<void()> on_hangup = {});
  // Returns true once SIGTERM or SIGINT has come; waits at most `timeout`.
  bool WaitFor(std::chrono::milliseconds timeout);
  // Has WaitFor wait for another SIGTERM or SIGINT from now on.
  void WaitForAnother() { came_ = false; }
  // Has WaitFor call another function from now on; empty: a SIGHUP is logged.
  void OnHangup(std::function<void()> on_hangup) { on_hangup_ = std::move(on_hangup); }

 private:
  std::function<void()> on_hangup_;
  bool came_ = false;
};

// Keeps a SIGHUP from ending the process before StopSignals is constructed.
void HoldHangups();

}  // namespace tacit::console
