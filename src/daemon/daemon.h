#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "console/exit_code.h"
#include "train/gpu.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

struct DaemonOptions {
  bool until_end = false;  // end at the end of the source; no server stays
  bool standby = false;    // wait while another daemon holds the store, then take over
  std::string config;      // path of the configuration file, for the log
  // Reads the configuration again when this daemon takes over; the one read before may be old by
  // then.
  std::function<Result<wiring::Assembly>()> reload;
  // Opens the GPU with this ordinal; empty: this program has none.
  std::function<Result<std::unique_ptr<train::Gpu>>(int)> open_gpu = {};
  bool accept_missing_witness = false;  // for a lost witness of a store known to be the newest
  // For a store whose newest copy is lost: an older one is restored in its place, and charged.
  bool accept_older_copy = false;
};

// The service. It trains from the source and serves what is committed, until SIGTERM or SIGINT (or
// the end of the source). Returns the exit code; failures at start are returned as errors.
Result<int> RunDaemon(wiring::Assembly assembly, const DaemonOptions& options);

// Serves a store, a checkpoint, or the newest of a folder of checkpoints read-only; another process
// may own it. SIGHUP moves to what is newest then, without dropping a request.
Result<int> ServeCheckpoint(const wiring::Assembly& assembly, const std::string& directory);

}  // namespace tacit::daemon
