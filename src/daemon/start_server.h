#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "console/stop_signals.h"
#include "daemon/front.h"
#include "daemon/watchdog.h"
#include "http/server.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "wiring/assembly.h"
#include "wiring/plans/file_plan.h"

namespace tacit::daemon {

// The time that answers under way have once a stop was asked for.
inline constexpr std::chrono::milliseconds kDrain(2000);

// Divides the files that this process may have open.
Result<wiring::FilePlan> MakeFilePlan(const config::Serve& config);
// Logs how they are divided.
void TellOfFiles(const config::Serve& config, const wiring::FilePlan& files);

// Starts the server behind `front`; none when the configuration names no address.
Status StartServer(const wiring::Assembly& assembly, const wiring::FilePlan& files,
                   serve::Services services, metrics::Registry& registry, Front& front);

// A process that only serves: what its manager is told, what is watched, what stops first.
struct Serving {
  std::string ready;                         // what the service manager is told
  std::vector<Watchdog::Stage> stages = {};  // beside the server's
  std::function<void()> stop_first = [] {};  // before the server stops
};
// Answers until a signal asks for a stop. kInvalidArgument where there is no server.
Status ServeUntilStopped(console::StopSignals& signals, const Clock& clock, Front& front,
                         Serving serving);

}  // namespace tacit::daemon
