#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "wiring/verdict.h"

namespace tacit::lab {

// The records that are predicted and not learnt from: the last files of a log, or the last per cent
// of all its records.
struct HeldOut {
  size_t files = 0;
  double percent = 0;
};

// Options of a run of a daemon's configuration over its own files.
struct ConfiguredRunOptions {
  std::string store;  // the folder that is written, made if it is not there
  HeldOut held_out;
  // Learns a second time, without noise, in a store of its own that is removed.
  bool without_privacy = false;
  bool show_progress = false;
  // Returns true if the run is to end; asked ten times a second. If empty, never.
  std::function<bool()> stop = {};
};

struct ConfiguredRun {
  std::vector<wiring::LearnerDays> learners;
  std::string tables;  // as tacitd prints them
  uint64_t records = 0, records_dead = 0;
  bool stopped = false;  // before the end
};

// Learns from the files of a configuration as tacitd does from them: the same source, intake,
// learners, trainer, commits and ledger. kInvalidArgument where the source has no end. The model
// without privacy has the periods, constants and rows that its epsilon gives, and no noise
// (SilentNoise); nothing of it leaves this function but its figures.
Result<ConfiguredRun> RunConfigured(config::Config config, const ConfiguredRunOptions& options);

boost::json::object ToJson(const ConfiguredRun& run);

}  // namespace tacit::lab
