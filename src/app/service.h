#pragma once

#include <chrono>
#include <string>

namespace tacit::app {

// SIGTERM and SIGINT as something to wait for. Construct it before any thread, so that every thread
// inherits the blocked signals.
class StopSignals {
 public:
  StopSignals();
  // True once one of them has come; waits at most so long.
  bool WaitFor(std::chrono::milliseconds timeout);

 private:
  bool came_ = false;
};

// Tells systemd (Type=notify) how the daemon is; nothing happens outside systemd.
void NotifyReady(const std::string& status);
void NotifyStatus(const std::string& status);
void NotifyStopping();

}  // namespace tacit::app
