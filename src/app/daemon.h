#pragma once

#include <string>

#include "app/assembly.h"
#include "app/exit_code.h"
#include "base/result.h"

namespace tacit::app {

struct DaemonOptions {
  bool until_end = false;  // end when the source has: no server stays
  bool standby = false;    // wait for a store that another daemon holds, then take over
  bool accept_missing_witness = false;  // for a lost witness of a store known to be the newest
};

// The service: trains from the source and serves what is committed, until SIGTERM or SIGINT (or the
// end of the source). Returns the exit code; failures at start are returned as errors.
Result<int> RunDaemon(const Assembly& assembly, const DaemonOptions& options);

// Serves a store or checkpoint directory that somebody else may own, read-only.
Result<int> ServeCheckpoint(const Assembly& assembly, const std::string& directory);

}  // namespace tacit::app
