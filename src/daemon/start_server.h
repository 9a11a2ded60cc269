#pragma once

#include <chrono>

#include "base/result.h"
#include "daemon/front.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "serve/server.h"
#include "wiring/assembly.h"
#include "wiring/file_plan.h"

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

}  // namespace tacit::daemon
