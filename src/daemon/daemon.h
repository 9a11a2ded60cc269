#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "console/exit_code.h"
#include "train/engines/gpu.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Opens a GPU; if empty, the program has none.
using GpuOpener = std::function<Result<std::unique_ptr<train::Gpu>>(const train::GpuOptions&)>;

// The part of a start that is the same in every mode.
struct Start {
  std::string config;             // path of the configuration file, for the log
  std::string_view sources = {};  // of the program (console::BuildInfo); empty in tests
  // Reads it again, as it is written, without looking for files of the log.
  std::function<Result<config::Config>()> read;
  GpuOpener open_gpu = {};
  // Checks the settings of feed.topic; empty: feed::CheckCompacted.
  std::function<Status()> check_feed = {};
};

struct DaemonOptions {
  bool until_end = false;  // end at the end of the source; no server stays
  bool standby = false;    // wait while another daemon holds the store, then take over
  // Reads the configuration again when this daemon takes over; the one read before may be old by
  // then.
  std::function<Result<wiring::Assembly>()> reload = {};
  // For a store whose newest copy is lost: an older one is restored in its place, and charged.
  bool accept_older_copy = false;
  // Goes on with the feed where another lineage, or a newer copy of this store, has published.
  bool take_over_feed = false;
  // The window of source.halt_above whose halt the operator has looked into; 0: none.
  uint64_t past_halt = 0;
  // The packed log file whose missing rest does not exist, as the operator says; empty if none.
  std::string past_cut = {};
};

// The service. It trains from the source and serves what is committed, until SIGTERM or SIGINT (or
// the end of the source). Returns the exit code; failures at start are returned as errors.
Result<int> RunDaemon(wiring::Assembly assembly, const Start& start, const DaemonOptions& options);

// Serves a store, a checkpoint, or the newest of a folder of checkpoints read-only; another process
// may own it. SIGHUP moves to what is newest then, without dropping a request.
Result<int> ServeCheckpoint(const wiring::Assembly& assembly, const Start& start,
                            const std::string& directory);

// Follows feed.topic into a store of its own at store.path, and serves each whole version as its
// trainer does; trains nothing. An empty store begins with the topic, or with a release checkpoint
// (may be empty) and what the topic has behind it.
Result<int> RunReplica(const wiring::Assembly& assembly, const Start& start,
                       const std::string& checkpoint);

// Sums up slices of a trainer's periods (Worker) until a signal asks for a stop. It opens no store;
// of its server it answers probes and operators alone.
Result<int> RunWorker(const wiring::Assembly& assembly, const Start& start);

}  // namespace tacit::daemon
