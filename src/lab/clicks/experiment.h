#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/clicks/event_log.h"
#include "lab/clicks/grid.h"
#include "lab/clicks/report.h"
#include "lab/clicks/results.h"

namespace tacit::lab {

struct ExperimentOptions {
  uint32_t seeds = 1;
  uint32_t jobs = 1;     // runs at a time
  uint32_t workers = 1;  // threads of each run
  uint64_t train_to = std::numeric_limits<uint64_t>::max();
  uint64_t measure_from = 0, measure_to = std::numeric_limits<uint64_t>::max();
  std::string reference;       // what rows are compared with; if empty, as ReferenceOf chooses
  bool show_progress = false;  // a progress line on standard error
};

// Makes every run of the grid that is not among the results yet, several at a time, and stores each
// when it ends. Returns one row per point, in order; a point for which no noise fits the promise is
// refused, as is one that the configuration refuses. Before any run, kInvalidArgument for a
// reference that is neither a learner nor a mechanism of the grid.
Result<std::vector<ReportRow>> RunExperiment(std::vector<GridPoint> points, const EventLog& log,
                                             const ExperimentOptions& options, Results* results);

// The labels of the measured events, in the order of predictions.
Result<std::vector<float>> MeasuredLabels(const EventLog& log, const ExperimentOptions& options);

// Fills in the rows' differences from their references by paired bootstrap over events, averaged
// over seeds; each seed is compared with the same seed. Every call uses the same resamples.
Status CompareRows(const Results& results, const std::vector<float>& labels, uint32_t resamples,
                   const std::string& reference, std::vector<ReportRow>* rows);

}  // namespace tacit::lab
