#pragma once

#include <cstdint>
#include <vector>

#include "app/evaluate/sequence_data.h"
#include "app/evaluate/sequence_experiment.h"
#include "app/evaluate/sequence_method.h"
#include "app/evaluate/sequence_report.h"
#include "app/evaluate/sequence_results.h"
#include "base/result.h"

namespace tacit::app {

struct StreamExperiment {
  SequenceExperiment common;  // `validate` means nothing here
  uint64_t period_events = 0;
  std::vector<uint32_t> user_periods;  // each is a row of its own
};

// Goes through the stream once for each learner, number of periods a user is learnt from, epsilon
// and seed; what is among the results is not made again. The promise is to every user, over the
// whole stream: each of his periods may spend mu / sqrt(user_periods). A row for each learner,
// number of periods and epsilon, in that order. REQUIRES names of stream methods.
Result<std::vector<SequenceRow>> RunStreamExperiment(const SequenceStream& stream,
                                                     const SequenceSetting& setting,
                                                     const StreamExperiment& experiment,
                                                     SequenceResults* results);

}  // namespace tacit::app
