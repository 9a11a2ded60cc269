#pragma once

#include <cstdint>
#include <string>

#include "support/process.h"

namespace tacit::test {

// A generated log and a configuration small enough that the whole daemon runs in about a second:
// 26 tables of 64 rows, two thin layers. Files lie in `dir`.
struct SmallRun {
  std::string store = "store";      // name of store and configuration in the folder
  std::string files = "day-*.tsv";  // pattern in the folder
  // Learns from generated records without an end in place of the files: on any machine
  // a test finds the daemon at work.
  bool endless = false;
  std::string hidden = "[32, 16]";
  std::string mechanism = "{kind: adafest, threshold: 1.0, sigma_ratio: 5}";
  std::string privacy = "{unit: event, epsilon: 8, delta: 1.0e-6}";
  std::string listen = "";     // no server
  std::string second_learner;  // further items of `learners`, indented by two
  std::string more;            // further top-level YAML
  std::string source;          // further keys of `source`, each after a comma
  std::string participation;   // instead of `once` with the two below
  uint32_t passes = 1, max_participations = 1;
  uint32_t batch = 256;
  uint32_t commit_interval_ms = 15;
  bool idle_priority = false;  // a busy machine would starve the trainer, and the test wait

  // Writes STORE.yaml and returns its path.
  std::string WriteConfig(const TempDir& dir) const;
};

// day-0.tsv, day-1.tsv, ... of this many generated events.
void WriteSmallLog(const TempDir& dir, uint32_t days, uint64_t rows_per_day, uint64_t seed);

}  // namespace tacit::test
