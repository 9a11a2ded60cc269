#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "console/exit_code.h"
#include "console/stop_signals.h"
#include "store/store.h"

namespace tacit::daemon {

// Opens the store and reports progress to the log and systemd, since it may take a while (a log to
// replay, commits to fold). Returns null if a signal asked to stop meanwhile; opening is then given
// up between two pieces of work. If a piece takes longer than a second, the process ends at once
// with the code `when_stuck`. As after a kill, nothing is lost.
Result<std::unique_ptr<store::Store>> OpenWhileListening(store::StoreOptions options,
                                                         console::StopSignals& signals,
                                                         console::ExitCode when_stuck);

// Waits until no other process has the store open, and none restores it, or may do so as another
// user, which is warned of once. Returns false if a signal asked to stop.
Result<bool> WaitUntilFree(const std::string& store, console::StopSignals& signals);

}  // namespace tacit::daemon
