#pragma once

#include <chrono>

namespace tacit::console {

// Lets a thread wait for SIGTERM and SIGINT. SIGHUP, which log rotation and closed terminals send,
// is logged and ends nothing. Construct it before any thread, so that every thread inherits the
// blocked signals. Not thread-safe.
class StopSignals {
 public:
  StopSignals();
  // Returns true once SIGTERM or SIGINT has come; waits at most `timeout`.
  bool WaitFor(std::chrono::milliseconds timeout);

 private:
  bool came_ = false;
};

// Keeps a SIGHUP from ending the process before StopSignals is constructed.
void HoldHangups();

}  // namespace tacit::console
