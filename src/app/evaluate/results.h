#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/evaluate/grid.h"
#include "app/evaluate/run.h"
#include "base/result.h"

namespace tacit::app {

// One finished run, as it is kept.
struct RunRecord {
  std::string id;  // of everything that decides what the run is, but its noise
  std::string learner, mechanism;
  std::map<std::string, std::string> settings;
  uint64_t seed = 0;
  double auc = 0, log_loss = 0;
  double epsilon_spent = 0;  // infinite: unbounded
  double rows_per_step = 0, row_floats_per_step = 0;
  uint64_t steps = 0, events = 0, events_measured = 0;
  double seconds = 0;
};

// What a run is: the point, the records learnt from and measured, the seed.
std::string RunId(const GridPoint& point, const std::string& log_identity, uint64_t train_to,
                  uint64_t measure_from, uint64_t measure_to, uint64_t seed);

std::string ToJsonLine(const RunRecord& record);
Result<RunRecord> FromJsonLine(const std::string& line);

// Finished runs in a file of JSON lines, so that an experiment that was stopped goes on where it
// was; and beside it, in `path`.predictions/ID.f32, each run's logits (little-endian floats in the
// order of events) where they are asked for. Without a path everything stays in memory.
// Thread-safe.
class Results {
 public:
  // Reads what is there. A last line that was cut short is dropped; any other line that is no
  // record is refused by its number.
  static Result<std::unique_ptr<Results>> Open(const std::string& path, bool keep_predictions);

  // Null when the run is not there, or its predictions are asked for and are not.
  std::optional<RunRecord> Find(const std::string& id) const;
  Status Add(const RunRecord& record, std::vector<float> logits);
  Result<std::vector<float>> Predictions(const std::string& id) const;

 private:
  Results(std::string path, bool keep_predictions)
      : path_(std::move(path)), keep_predictions_(keep_predictions) {}

  Status Load();
  std::string PredictionFile(const std::string& id) const;

  const std::string path_;
  const bool keep_predictions_;
  mutable std::mutex mutex_;
  std::map<std::string, RunRecord> records_;
  std::map<std::string, std::vector<float>> predictions_;  // without a path
};

}  // namespace tacit::app
