#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/evaluate/sequence_data.h"
#include "app/evaluate/sequence_method.h"
#include "app/evaluate/sequence_report.h"
#include "app/evaluate/sequence_results.h"
#include "base/result.h"

namespace tacit::app {

struct SequenceExperiment {
  std::vector<std::string> learners;
  std::vector<double> epsilons;  // infinite: without privacy
  double delta = 0;
  uint32_t seeds = 1;    // runs of each, with fresh noise
  uint32_t jobs = 1;     // runs at a time
  uint32_t workers = 1;  // threads of each
  bool validate = false;
  double look_epochs = 0;  // trained learners are asked every so many epochs; 0: in the end alone
  std::string catalogue;   // what is known of items, named; "" where nothing is
  bool show_progress = false;  // a line on standard error, drawn over again
};

// Makes every run that is not among the results yet, and keeps each as it ends. A row for each
// learner and epsilon, in their order. REQUIRES names of methods.
Result<std::vector<SequenceRow>> RunSequenceExperiment(const SequenceData& data,
                                                       const SequenceSetting& setting,
                                                       const SequenceExperiment& experiment,
                                                       SequenceResults* results);

}  // namespace tacit::app
