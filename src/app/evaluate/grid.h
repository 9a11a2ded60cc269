#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/assembly.h"
#include "app/evaluate/event_log.h"
#include "base/result.h"

namespace tacit::app {

// "mechanism.threshold=5,10,inf": a key of a learner and the values it is to take.
struct GridAxis {
  std::string key;
  std::vector<std::string> values;
};

// Commas inside brackets and quotes belong to a value; inf is written .inf as YAML has it.
// kInvalidArgument for text of another form and, naming the nearest, for a key that no learner has.
//
// `participation.epochs` is a key of experiments alone, for mode poisson: how often each event is
// used, on average. From it, the batch and the largest period of the log (in records, which are
// public) follow sampling_rate = batch / records and steps_per_period = epochs * records / batch.
Result<GridAxis> ParseGridAxis(const std::string& text);
// kInvalidArgument where two axes set the same key: twice given, or derived from epochs.
Status CheckAxes(const std::vector<GridAxis>& axes);

// As much of the end of a learner's key as no other key of a learner ends with: "threshold",
// "optimizer.kind".
std::string ShortKey(const std::string& key);

// One learner under one combination of values.
struct GridPoint {
  std::string learner;
  std::map<std::string, std::string> settings;  // by key, what was derived too
  // The configuration of this learner alone; or why there is none.
  config::Config config;
  std::string refusal;
  // What the learner is, in all its keys: two points with the same are one experiment.
  std::string canonical;
};

struct GridOptions {
  std::string config;                  // file
  std::vector<std::string> overrides;  // for all points
  std::vector<std::string> learners;   // ids; empty: all
  std::vector<GridAxis> axes;
};

// The cross product of the learners and the axes' values, in that order, the last axis running
// fastest. What a learner's kind does not use makes no difference: points that are the same
// experiment are one. A combination that the configuration refuses is there with its reason.
// Fails where the file itself is refused, a learner is not in it, or a value is none of its key's
// in any combination.
Result<std::vector<GridPoint>> MakeGrid(const GridOptions& options, const EventLog& log,
                                        uint64_t train_to);

// Of each learner whose steps do not hold as many events as its `batch` says, which the update is
// divided by: sampling_rate * (events of the largest period) is off by more than a tenth. Goes by
// the configuration and the log's number of records, which are public.
std::vector<std::string> BatchWarnings(const std::vector<GridPoint>& points, const EventLog& log,
                                       uint64_t train_to);

// Records of the largest period that this participation makes of the log.
uint64_t LargestPeriod(const EventLog& log, uint64_t train_to,
                       const config::Participation& participation);

}  // namespace tacit::app
