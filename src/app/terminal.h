#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/terminal_line.h"
#include "base/clock.h"
#include "privacy/ledger.h"
#include "train/progress.h"

namespace tacit::app {

// How far one learner is.
struct LearnerView {
  std::string id;
  train::Progress::View view;
  bool ranks = false;  // a model of the next item: told by its hits, not by its AUC
};
// Of those who have come furthest: all read the same stream.
uint64_t EventsOf(const std::vector<LearnerView>& learners);

// How far the learners are, as one line.
class ProgressLine {
 public:
  explicit ProgressLine(const Clock& clock);

  // Draws when it is time to. `total` 0: unknown, no bar.
  void Update(uint64_t total, const std::vector<LearnerView>& learners);
  // Draws a last time and ends the line.
  void Finish(uint64_t total, const std::vector<LearnerView>& learners);

 private:
  void Draw(uint64_t total, const std::vector<LearnerView>& learners);

  const Clock& clock_;
  TerminalLine line_;
  const Clock::TimePoint start_;
  Clock::TimePoint last_;
  uint64_t last_done_ = 0;
  double rate_ = 0;
};

// Days as a table, and what they cost of what was promised. `best_auc` (by file name) is known for
// generated logs alone; without it the columns that need it are left out.
std::string DayTable(const std::vector<train::DayRow>& days,
                     const std::map<std::string, double>& best_auc, double epsilon,
                     const privacy::Promise& promise);
// The same of a model of the next item.
std::string RankedDayTable(const std::vector<train::DayRow>& days, double epsilon,
                           const privacy::Promise& promise);

// What `tacit generate` wrote beside these log files; empty when nothing is there.
std::map<std::string, double> ReadBestAuc(const std::vector<std::string>& files);

// The file name that holds it.
inline constexpr char kGroundTruthFile[] = "ground-truth.json";

}  // namespace tacit::app
