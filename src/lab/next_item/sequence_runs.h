#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/next_item/sequence_results.h"

namespace tacit::lab {

// A run of `tacit evaluate sequence` to be made.
struct SequenceTask {
  std::string id;  // a digest of everything that determines the run, except its noise
  std::string learner;
  double epsilon = 0;
  uint64_t seed = 0;
  uint32_t user_periods = 0;  // for a stream
};

// Called with the finished share of a run.
using SequenceProgress = std::function<void(double share)>;
using SequenceRunner =
    std::function<Result<SequenceRun>(const SequenceTask& task, const SequenceProgress& tell)>;

// Makes these runs, `jobs` at a time, and stores each when it ends. `show` draws their progress.
// After the first failure no further runs begin; the error names the learner and the epsilon.
Status MakeSequenceRuns(const std::vector<SequenceTask>& tasks, uint32_t jobs, bool show,
                        const SequenceRunner& run, SequenceResults* results);

}  // namespace tacit::lab
