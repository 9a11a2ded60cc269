#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "app/assembly.h"
#include "base/result.h"

namespace tacit::app {

// What a learner predicted, before learning, for the events measured.
struct ProgressiveResult {
  uint64_t events = 0;  // learnt from, all of them
  uint64_t dead_letters = 0;
  uint64_t rows_written = 0, steps = 0;
  std::vector<float> logits, labels;  // measured events only
  double seconds = 0;                 // of training, reading not counted

  double Auc() const;
  double LogLoss() const;
};

struct ProgressiveOptions {
  size_t learner = 0;
  uint64_t seed_offset = 0;  // added to the model's seed
  std::vector<std::string> files;
  uint64_t measure_from = 0;  // offsets whose predictions are kept
  uint64_t measure_to = std::numeric_limits<uint64_t>::max();
  std::function<void(uint64_t events)> progress;  // may be empty
};

// Offline progressive validation: every event is predicted, then learnt from, once, in order. The
// same feed, learner and mechanism as in the daemon, with rows in memory and no store.
Result<ProgressiveResult> RunProgressive(const Assembly& assembly,
                                         const ProgressiveOptions& options);

}  // namespace tacit::app
