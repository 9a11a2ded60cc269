#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/auc.h"

namespace tacit::train {

// What one learner has done with one file of the log (a day). Un-noised: operator-only.
struct DayRow {
  std::string name;
  uint64_t events = 0;
  uint64_t steps = 0;
  uint64_t rows_written = 0;
  double loss_sum = 0;
  double epsilon = 0;  // of the learner once the day's last step is charged
  AucHistogram auc;    // of predictions made before learning
};

// How far training is, for the operator's terminal and operator metrics. Written by the trainer,
// read by anyone. Thread-safe.
class Progress {
 public:
  struct View {
    uint64_t events = 0;
    uint64_t steps = 0;
    double auc = 0.5;    // over the last events
    double epsilon = 0;  // committed
  };

  explicit Progress(size_t learners);

  // Predictions made before their events were learnt from.
  void AddPredictions(size_t learner, std::span<const float> logits, std::span<const float> labels,
                      double loss_sum);
  void AddStep(size_t learner, uint64_t rows_written, double epsilon);
  // The current day is over; what follows belongs to the next.
  void EndDay(size_t learner, const std::string& name);
  void Committed(size_t learner, double epsilon);

  View view(size_t learner) const;
  // Finished days, then the one under way when it has any step.
  std::vector<DayRow> days(size_t learner) const;

 private:
  struct Account {
    View view;
    std::vector<DayRow> finished;
    DayRow current;
    AucHistogram recent, previous;  // two windows, so that the running AUC is never of nothing
    uint64_t recent_events = 0;
  };
  mutable std::mutex mutex_;
  std::vector<Account> accounts_;
};

}  // namespace tacit::train
