#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "lab/clicks/grid.h"
#include "lab/clicks/run.h"
#include "lab/run_store.h"

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

  template <class Record, class Visit>
  static void ForEachField(Record& record, const Visit& visit) {
    visit("id", record.id);
    visit("learner", record.learner);
    visit("mechanism", record.mechanism);
    visit("settings", record.settings);
    visit("seed", record.seed);
    visit("auc", record.auc);
    visit("log_loss", record.log_loss);
    visit("epsilon_spent", record.epsilon_spent);
    visit("rows_written_per_step", record.rows_per_step);
    visit("row_floats_per_step", record.row_floats_per_step);
    visit("steps", record.steps);
    visit("events", record.events);
    visit("events_measured", record.events_measured);
    visit("seconds", record.seconds);
  }
};

// The identity of a run: the point, the records learnt from and measured, and the seed.
std::string RunId(const GridPoint& point, const std::string& log_identity, uint64_t train_to,
                  uint64_t measure_from, uint64_t measure_to, uint64_t seed);

// Finished runs. If asked to, it also keeps each run's logits (little-endian floats in the order of
// events) in `path`.predictions/ID.f32. Without a path everything stays in memory. Thread-safe.
class Results {
 public:
  // Reads the stored runs.
  static Result<std::unique_ptr<Results>> Open(const std::string& path, bool keep_predictions);

  // Null if the run is not stored, or its predictions are wanted and missing.
  std::optional<RunRecord> Find(const std::string& id) const;
  Status Add(const RunRecord& record, std::vector<float> logits);
  Result<std::vector<float>> Predictions(const std::string& id) const;

 private:
  Results(std::string path, bool keep_predictions)
      : records_(std::move(path)), keep_predictions_(keep_predictions) {}

  std::string PredictionFile(const std::string& id) const;

  RunStore<RunRecord> records_;
  const bool keep_predictions_;
  mutable Mutex mutex_;
  // Kept here without a path.
  std::map<std::string, std::vector<float>> predictions_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::lab
