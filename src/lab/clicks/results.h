#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/clicks/grid.h"
#include "lab/clicks/run.h"

namespace tacit::lab {

// One finished run, as stored.
struct RunRecord {
  std::string id;  // a digest of everything that determines the run, except its noise
  std::string learner, mechanism;
  std::map<std::string, std::string> settings;
  uint64_t seed = 0;
  double auc = 0, log_loss = 0;
  double epsilon_spent = 0;  // infinite: unbounded
  double rows_per_step = 0, row_floats_per_step = 0;
  uint64_t steps = 0, events = 0, events_measured = 0;
  double seconds = 0;
};

// The identity of a run: the point, the records learnt from and measured, and the seed.
std::string RunId(const GridPoint& point, const std::string& log_identity, uint64_t train_to,
                  uint64_t measure_from, uint64_t measure_to, uint64_t seed);

std::string ToJsonLine(const RunRecord& record);
Result<RunRecord> FromJsonLine(const std::string& line);

// Finished runs in a file of JSON lines, so that an interrupted experiment can resume. If asked to,
// it also keeps each run's logits (little-endian floats in the order of events) in
// `path`.predictions/ID.f32. Without a path everything stays in memory. Thread-safe.
class Results {
 public:
  // Reads the stored runs. Drops a last line that was cut short; refuses any other line that is not
  // a record, by its number.
  static Result<std::unique_ptr<Results>> Open(const std::string& path, bool keep_predictions);

  // Null if the run is not stored, or its predictions are wanted and missing.
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

}  // namespace tacit::lab
