#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacit::lab {

// The prediction quality over a tenth of a stream; means over the events asked about.
struct SequenceTenth {
  uint64_t events = 0;
  double ndcg10 = 0, hit10 = 0;
  friend bool operator==(const SequenceTenth&, const SequenceTenth&) = default;
};

// The ranking quality after this many epochs of a run.
struct SequenceLook {
  double epochs = 0, ndcg10 = 0, hit10 = 0;
  friend bool operator==(const SequenceLook&, const SequenceLook&) = default;
};

// One finished run of `tacit evaluate sequence`, as stored.
struct SequenceRun {
  std::string id;  // a digest of everything that determines the run, except its noise
  std::string learner;
  double epsilon = 0, delta = 0;  // promised; epsilon is infinite without a promise
  uint64_t seed = 0;
  double ndcg10 = 0, hit10 = 0;
  uint64_t users = 0;        // asked about; for a stream, events
  double epsilon_spent = 0;  // infinite: unbounded
  double fit_seconds = 0, score_seconds = 0;
  // For a stream: the most periods that a user is learnt from, and the quality over time.
  uint32_t user_periods = 0;
  std::vector<SequenceTenth> tenths = {};
  // For a trained learner that was evaluated during training.
  std::vector<SequenceLook> curve = {};
  friend bool operator==(const SequenceRun&, const SequenceRun&) = default;
};

std::string ToJsonLine(const SequenceRun& run);
Result<SequenceRun> SequenceRunFromJson(const std::string& line);

// Finished runs in a file of JSON lines, so that an interrupted experiment can resume. Without a
// path they stay in memory. Thread-safe.
class SequenceResults {
 public:
  explicit SequenceResults(std::string path) : path_(std::move(path)) {}

  // Reads the stored runs. Drops a last line that was cut short; refuses any other line that is not
  // a run, by its number.
  Status Load();
  std::optional<SequenceRun> Find(const std::string& id) const;
  Status Add(const SequenceRun& run);

 private:
  const std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, SequenceRun> runs_;
};

}  // namespace tacit::lab
