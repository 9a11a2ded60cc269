#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "http/server.h"
#include "metrics/registry.h"

namespace tacit::daemon {

// Answers probes of a daemon that stands by, at an address of its own: /healthz is well, /readyz is
// not ready, and all else is refused. Null where the address is empty. kIo: it cannot listen there.
// The registry must outlive the server.
Result<std::unique_ptr<http::Server>> AnswerProbes(const std::string& address,
                                                   metrics::Registry& registry);

}  // namespace tacit::daemon
