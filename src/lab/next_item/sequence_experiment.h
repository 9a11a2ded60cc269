#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/next_item/constants.h"
#include "lab/next_item/sequence_data.h"
#include "lab/next_item/sequence_report.h"
#include "lab/next_item/sequence_results.h"

namespace tacit::lab {

struct SequenceExperiment {
  std::vector<std::string> learners;
  std::vector<double> epsilons;  // infinite: without privacy
  double delta = 0;
  uint32_t seeds = 1;    // runs of each learner and epsilon, with fresh noise
  uint32_t jobs = 1;     // runs at a time
  uint32_t workers = 1;  // threads of each run
  bool validate = false;
  double look_epochs = 0;      // interval of trained learners' evaluation; 0: at the end only
  std::string catalogue;       // identity of the item descriptions; "" if there are none
  bool show_progress = false;  // a progress line on standard error
  // Streams have these two, and no use for `validate` and `look_epochs`.
  uint64_t period_events = 0;                // 0: not a stream, but all histories at once
  std::vector<uint32_t> user_periods = {0};  // each value gives a row
};

// Makes every run that is not among the results yet, and stores each when it ends. A stream's
// promise is to every user, over all of it: each of his periods may spend mu / sqrt(user_periods).
// Returns a row for each learner, number of periods that a user is learnt from, and epsilon, in
// that order. REQUIRES names of methods.
Result<std::vector<SequenceRow>> RunSequenceExperiment(const SequenceStream& data,
                                                       const SequenceSetting& setting,
                                                       const SequenceExperiment& experiment,
                                                       SequenceResults* results);

}  // namespace tacit::lab
