#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "lab/next_item/sequence_data.h"
#include "lab/next_item/sequence_experiment.h"
#include "lab/next_item/sequence_method.h"
#include "lab/next_item/sequence_report.h"
#include "lab/next_item/sequence_results.h"

namespace tacit::lab {

struct StreamExperiment {
  SequenceExperiment common;  // `validate` means nothing here
  uint64_t period_events = 0;
  std::vector<uint32_t> user_periods;  // each value gives a row
};

// Replays the stream once for each learner, number of periods that a user is learnt from, epsilon
// and seed, except for runs already among the results. The promise is to every user, over the whole
// stream: each of his periods may spend mu / sqrt(user_periods). Returns a row for each learner,
// number of periods and epsilon, in that order. REQUIRES names of stream methods.
Result<std::vector<SequenceRow>> RunStreamExperiment(const SequenceStream& stream,
                                                     const SequenceSetting& setting,
                                                     const StreamExperiment& experiment,
                                                     SequenceResults* results);

}  // namespace tacit::lab
