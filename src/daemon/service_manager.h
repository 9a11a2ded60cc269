#pragma once

#include <string>

namespace tacit::daemon {

// Returns true if a service manager started this process and expects its status.
bool UnderServiceManager();
// These report the daemon's state to systemd (Type=notify); outside systemd they do nothing.
// `NotifyStarting` and `NotifyStopping` ask for half a minute more, counted from now.
void NotifyStarting(const std::string& status);
void NotifyReady(const std::string& status);
void NotifyStatus(const std::string& status);
void NotifyStopping();

}  // namespace tacit::daemon
