#pragma once

#include <chrono>
#include <string>

namespace tacit::daemon {

// Returns true if a service manager started this process and expects its status.
bool UnderServiceManager();
// These report the daemon's state to the service manager (Type=notify or notify-reload); without
// one they do nothing. `NotifyStarting` and `NotifyStopping` ask for half a minute more, counted
// from now. `NotifyStarting` is a sign of life too.
void NotifyStarting(const std::string& status);
void NotifyReady(const std::string& status);
void NotifyStatus(const std::string& status);
void NotifyReloading();
void NotifyReloaded();
void NotifyStopping();
void NotifyAlive();

// The time after which a manager that hears no NotifyAlive starts the process anew; zero: it does
// not listen for it.
std::chrono::microseconds WatchdogPatience();

}  // namespace tacit::daemon
