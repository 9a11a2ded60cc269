#include "console/stop_signals.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"

namespace tacit::console {
namespace {

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

StopSignals::StopSignals(std::function<void()> on_hangup) : on_hangup_(std::move(on_hangup)) {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // With SIGXFSZ ignored, a write past a file size limit fails with EFBIG, which the store reports.
  signal(SIGXFSZ, SIG_IGN);
}

bool StopSignals::WaitFor(std::chrono::milliseconds timeout) {
  const sigset_t set = WatchedSignals();
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!came_) {
    const auto left = std::max(std::chrono::nanoseconds(until - std::chrono::steady_clock::now()),
                               std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    const int signal = sigtimedwait(&set, nullptr, &wait);
    if (signal < 0) return false;
    came_ = signal != SIGHUP;
    if (!came_ && on_hangup_) on_hangup_();
    if (!came_ && !on_hangup_)
      spdlog::info(
          "SIGHUP: nothing is read again while the store is opened; send it once more when tacitd "
          "is "
          "ready");
  }
  return true;
}

void HoldHangups() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace tacit::console
