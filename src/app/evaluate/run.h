#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "app/assembly.h"
#include "app/evaluate/event_log.h"
#include "base/result.h"

namespace tacit::app {

// What a learner predicted, before learning, for the events measured, and what its learning cost.
struct RunResult {
  uint64_t events = 0;  // learnt from, all of them, in the last pass
  uint64_t steps = 0;
  uint64_t rows_written = 0, row_floats_written = 0;  // over all steps
  std::vector<float> logits, labels;                  // measured events only, in order
  double seconds = 0;                                 // of predicting and learning
  double epsilon_spent = 0;  // by what was really done: certified upper bound; infinite: unbounded

  double Auc() const;
  double LogLoss() const;
};

struct RunOptions {
  size_t learner = 0;
  uint64_t seed_offset = 0;  // added to the model's seed
  uint32_t workers = 1;
  // Records learnt from. What lies behind is predicted with the model as it then is.
  uint64_t train_to = std::numeric_limits<uint64_t>::max();
  uint64_t measure_from = 0;  // offsets whose predictions are kept
  uint64_t measure_to = std::numeric_limits<uint64_t>::max();
  std::atomic<uint64_t>* progress = nullptr;  // records done with; may be null
};

// One offline experiment: each event is predicted, then learnt from, in order. The same
// participation, learner and mechanism as in the daemon, with rows in memory and no store. Noise is
// fresh in each run, whatever the seed. Thread-safe.
Result<RunResult> RunLearner(const Assembly& assembly, const EventLog& log,
                             const RunOptions& options);

}  // namespace tacit::app
