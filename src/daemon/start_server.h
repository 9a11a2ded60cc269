#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "serve/server.h"
#include "wiring/assembly.h"
#include "wiring/file_plan.h"

namespace tacit::daemon {

// The time that answers under way have once a stop was asked for.
inline constexpr std::chrono::milliseconds kDrain(2000);

// Divides the files that this process may have open, and logs it.
Result<wiring::FilePlan> MakeFilePlan(const config::Serve& config);

// Starts the server; null when the configuration names no address.
Result<std::unique_ptr<serve::Server>> StartServer(const wiring::Assembly& assembly,
                                                   const wiring::FilePlan& files,
                                                   serve::Services services,
                                                   metrics::Registry& registry);

}  // namespace tacit::daemon
