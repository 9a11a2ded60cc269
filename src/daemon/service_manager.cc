#include "daemon/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdlib>

namespace tacit::daemon {

void NotifyStarting(const std::string& status) {
  sd_notifyf(0, "STATUS=%s\nEXTEND_TIMEOUT_USEC=30000000", status.c_str());
}

bool UnderServiceManager() { return std::getenv("NOTIFY_SOCKET") != nullptr; }
void NotifyReady(const std::string& status) { sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str()); }
void NotifyStatus(const std::string& status) { sd_notifyf(0, "STATUS=%s", status.c_str()); }
void NotifyStopping() { sd_notify(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000"); }

}  // namespace tacit::daemon
