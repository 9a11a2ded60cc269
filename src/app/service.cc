#include "app/service.h"

#include <pthread.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

namespace tacit::app {
namespace {

sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = StopSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // Past a file size limit a write fails with EFBIG, which the store reports.
  signal(SIGXFSZ, SIG_IGN);
}

bool StopSignals::WaitFor(std::chrono::milliseconds timeout) {
  if (came_) return true;
  const sigset_t set = StopSet();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec wait{.tv_sec = seconds.count(),
                      .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count()};
  came_ = sigtimedwait(&set, nullptr, &wait) > 0;
  return came_;
}

void NotifyReady(const std::string& status) { sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str()); }
void NotifyStatus(const std::string& status) { sd_notifyf(0, "STATUS=%s", status.c_str()); }
void NotifyStopping() { sd_notify(0, "STOPPING=1"); }

}  // namespace tacit::app
