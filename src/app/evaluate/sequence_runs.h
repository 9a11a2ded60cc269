#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/evaluate/sequence_results.h"
#include "base/result.h"

namespace tacit::app {

// A run of `tacit evaluate sequence` that is to be made.
struct SequenceTask {
  std::string id;  // of everything that decides what the run is, but its noise
  std::string learner;
  double epsilon = 0;
  uint64_t seed = 0;
  uint32_t user_periods = 0;  // of a stream
};

// Told which share of its run is done.
using SequenceProgress = std::function<void(double share)>;
using SequenceRunner =
    std::function<Result<SequenceRun>(const SequenceTask& task, const SequenceProgress& tell)>;

// Makes these runs, `jobs` at a time, and keeps each as it ends. `show` draws how far all are. The
// first failure stops what was not begun; it names the learner and the epsilon.
Status MakeSequenceRuns(const std::vector<SequenceTask>& tasks, uint32_t jobs, bool show,
                        const SequenceRunner& run, SequenceResults* results);

}  // namespace tacit::app
