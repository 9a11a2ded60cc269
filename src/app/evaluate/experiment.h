#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/evaluate/event_log.h"
#include "app/evaluate/grid.h"
#include "app/evaluate/report.h"
#include "app/evaluate/results.h"
#include "base/result.h"

namespace tacit::app {

struct ExperimentOptions {
  uint32_t seeds = 1;
  uint32_t jobs = 1;     // runs at a time
  uint32_t workers = 1;  // threads of each
  uint64_t train_to = std::numeric_limits<uint64_t>::max();
  uint64_t measure_from = 0, measure_to = std::numeric_limits<uint64_t>::max();
  std::string reference;       // what rows are to be compared with; empty: as ReferenceOf chooses
  bool show_progress = false;  // a line on standard error, drawn over again
};

// Makes every run of the grid that is not among the results yet, several at a time, and keeps each
// as it ends. One row for each point, in their order; a point whose noise cannot be had is refused
// like one that the configuration refuses. Before any run, kInvalidArgument for a reference that is
// neither a learner nor a mechanism of the grid.
Result<std::vector<ReportRow>> RunExperiment(std::vector<GridPoint> points, const EventLog& log,
                                             const ExperimentOptions& options, Results* results);

// Labels of the events measured, in the order of predictions.
Result<std::vector<float>> MeasuredLabels(const EventLog& log, const ExperimentOptions& options);

// Fills in the rows' differences from their references by paired bootstrap over events, averaged
// over seeds, each seed against the same seed. The resamples are the same at every call.
Status CompareRows(const Results& results, const std::vector<float>& labels, uint32_t resamples,
                   const std::string& reference, std::vector<ReportRow>* rows);

}  // namespace tacit::app
