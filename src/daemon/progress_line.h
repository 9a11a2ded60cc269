#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "console/terminal_line.h"
#include "privacy/ledger.h"
#include "train/progress.h"

namespace tacit::daemon {

// The progress of one learner.
struct LearnerView {
  std::string id;
  train::Progress::View view;
  bool ranks = false;               // a model of the next item: shows HIT@10 instead of AUC
  uint64_t waiting = 0;             // records that were read and wait until ...
  std::string_view waits_for = {};  // ... this is full: "step" or "period"
};
// Events of the learner that has come furthest: all learners read the same stream.
uint64_t EventsOf(const std::vector<LearnerView>& learners);

// The progress of all learners, as one line. Where it goes to a log it is silent while nothing
// changes.
class ProgressLine {
 public:
  explicit ProgressLine(const Clock& clock);

  bool due() const { return line_.due(); }
  // Draws when a drawing is due. `total` 0 means unknown: no bar. `read`: records of `total` that
  // were read, which is the progress while those that are left wait.
  void Update(uint64_t read, uint64_t total, const std::vector<LearnerView>& learners);
  // Draws a last time and ends the line.
  void Finish(uint64_t total, const std::vector<LearnerView>& learners);

 private:
  void Draw(uint64_t read, uint64_t total, const std::vector<LearnerView>& learners, bool is_last);
  void SeeRate(uint64_t done);

  const Clock& clock_;
  console::TerminalLine line_;
  const Clock::TimePoint start_;
  Clock::TimePoint last_;
  uint64_t last_done_ = 0;
  double rate_ = 0;
  std::string drawn_;
};

}  // namespace tacit::daemon
