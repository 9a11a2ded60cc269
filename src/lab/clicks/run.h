#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/result.h"
#include "lab/clicks/event_log.h"
#include "wiring/assembly.h"

namespace tacit::lab {

// A learner's predictions of the measured events, made before learning from them, and the cost of
// learning.
struct RunResult {
  uint64_t events = 0;  // events learnt from in the last pass
  uint64_t steps = 0;
  uint64_t rows_written = 0, row_floats_written = 0;  // over all steps
  std::vector<float> logits, labels;                  // measured events only, in order
  double seconds = 0;                                 // spent predicting and learning
  double epsilon_spent = 0;  // of the steps taken: certified upper bound; infinite: unbounded

  double Auc() const;
  double LogLoss() const;
};

struct RunOptions {
  size_t learner = 0;
  uint64_t seed_offset = 0;  // added to the model's seed
  uint32_t workers = 1;
  // Records to learn from. The final model predicts the records after them.
  uint64_t train_to = std::numeric_limits<uint64_t>::max();
  uint64_t measure_from = 0;  // offsets whose predictions are kept
  uint64_t measure_to = std::numeric_limits<uint64_t>::max();
  std::function<void(double share)> progress = [](double) {};  // of the records, processed
};

// Runs one offline experiment: predicts each event, then learns from it, in order. Participation,
// learner and mechanism are the daemon's, with rows in memory and no store. Noise is fresh in each
// run, with any seed. Thread-safe.
Result<RunResult> RunLearner(const wiring::Assembly& assembly, const EventLog& log,
                             const RunOptions& options);

}  // namespace tacit::lab
