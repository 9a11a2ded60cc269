#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacit::app {

// How well a tenth of a stream was predicted; means over the events that were asked about.
struct SequenceTenth {
  uint64_t events = 0;
  double ndcg10 = 0, hit10 = 0;
  friend bool operator==(const SequenceTenth&, const SequenceTenth&) = default;
};

// How well the items asked about were ranked after so many epochs of a run.
struct SequenceLook {
  double epochs = 0, ndcg10 = 0, hit10 = 0;
  friend bool operator==(const SequenceLook&, const SequenceLook&) = default;
};

// One finished run of `tacit evaluate sequence`, as it is kept.
struct SequenceRun {
  std::string id;  // of everything that decides what the run is, but its noise
  std::string learner;
  double epsilon = 0, delta = 0;  // promised; epsilon is infinite where nothing is
  uint64_t seed = 0;
  double ndcg10 = 0, hit10 = 0;
  uint64_t users = 0;        // asked about; events, of a stream
  double epsilon_spent = 0;  // infinite: unbounded
  double fit_seconds = 0, score_seconds = 0;
  // Of a stream: the periods that a user is learnt from at most, and the quality as it went on.
  uint32_t user_periods = 0;
  std::vector<SequenceTenth> tenths = {};
  // Of a trained learner that was looked at on the way.
  std::vector<SequenceLook> curve = {};
  friend bool operator==(const SequenceRun&, const SequenceRun&) = default;
};

std::string ToJsonLine(const SequenceRun& run);
Result<SequenceRun> SequenceRunFromJson(const std::string& line);

// Finished runs in a file of JSON lines, so that an experiment that was stopped goes on where it
// was. Without a path they stay in memory. Thread-safe.
class SequenceResults {
 public:
  explicit SequenceResults(std::string path) : path_(std::move(path)) {}

  // Reads what is there. A last line that was cut short is dropped; any other that is no run is
  // refused by its number.
  Status Load();
  std::optional<SequenceRun> Find(const std::string& id) const;
  Status Add(const SequenceRun& run);

 private:
  const std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, SequenceRun> runs_;
};

}  // namespace tacit::app
