#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/clicks/event_log.h"
#include "wiring/assembly.h"

namespace tacit::lab {

// A key of a learner and its values in the grid: "mechanism.threshold=5,10,inf".
struct GridAxis {
  std::string key;
  std::vector<std::string> values;
};

// Commas inside brackets and quotes belong to a value; inf is written .inf as in YAML.
// kInvalidArgument for text of another form and, naming the nearest, for a key that no learner has.
//
// Only experiments have the key `participation.epochs`, for mode poisson: the average number of
// times that each event is used. With the batch and the largest period of the log (in records,
// which are public), it gives sampling_rate = batch / records and steps_per_period = epochs *
// records / batch.
Result<GridAxis> ParseGridAxis(const std::string& text);
// kInvalidArgument where two axes set the same key: a key given twice, or one derived from epochs.
Status CheckAxes(const std::vector<GridAxis>& axes);

// The shortest end of a learner's key that no other key of a learner shares: "threshold",
// "optimizer.kind".
std::string ShortKey(const std::string& key);

// One learner with one combination of values.
struct GridPoint {
  std::string learner;
  std::map<std::string, std::string> settings;  // by key, derived ones included
  // The configuration of this learner alone, or the reason why it is refused.
  config::Config config;
  std::string refusal;
  // All keys of the learner as text; two points with the same text are one experiment.
  std::string canonical;
};

struct GridOptions {
  std::string config;                  // file
  std::vector<std::string> overrides;  // for all points
  std::vector<std::string> learners;   // ids; if empty, all
  std::vector<GridAxis> axes;
};

// The cross product of the learners and the axes' values, in that order, the last axis fastest.
// Settings that a learner's kind does not use make no difference: points that are the same
// experiment are merged. A combination that the configuration refuses stays in, with the reason.
// Fails where the file itself is refused, a learner is not in it, or a value is not valid for its
// key in any combination.
Result<std::vector<GridPoint>> MakeGrid(const GridOptions& options, const EventLog& log,
                                        uint64_t train_to);

// Warnings for learners whose steps do not hold as many events as `batch`, which divides the
// update: sampling_rate * (records of the largest period) is off by more than a tenth. Computed
// from the configuration and the log's number of records, which are public.
std::vector<std::string> BatchWarnings(const std::vector<GridPoint>& points, const EventLog& log,
                                       uint64_t train_to);

// The number of records in the largest period that this participation makes of the log.
uint64_t LargestPeriod(const EventLog& log, uint64_t train_to,
                       const config::Participation& participation);

}  // namespace tacit::lab
