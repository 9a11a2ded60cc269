#pragma once

#include <string>

#include "metrics/registry.h"

namespace tacit::metrics {

// Registers the figures of this process, under the names that all of Prometheus' clients use, and
// tacit_build_info. They are read from /proc at each scrape. The start and the build are public;
// processor time, memory and files depend on records, and are the operator's. `version` is a name
// and a number, as in "tacit 1.2.3".
void ShowProcess(Registry& registry, const std::string& version);

}  // namespace tacit::metrics
