#pragma once

#include <cstdint>

#include "base/result.h"
#include "config/config.h"

namespace tacit::wiring {

// The division of a process's open files. It keeps the store's share out of reach of connections,
// however many there are.
struct FilePlan {
  uint64_t limit = 0;        // the process's
  uint64_t store = 0;        // tables that RocksDB keeps open
  uint32_t connections = 0;  // the public's, at most serve.max_connections
};

// Raises the soft limit on open files (RLIMIT_NOFILE) to the hard one and returns it; returns the
// unchanged limit if the system refuses.
uint64_t RaiseFileLimit();

// kInvalidArgument where the limit is too small. The message gives a sufficient one and how to
// raise it.
Result<FilePlan> PlanFiles(const config::Serve& serve, uint64_t limit);

}  // namespace tacit::wiring
