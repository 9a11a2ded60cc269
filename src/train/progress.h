#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/auc.h"
#include "base/interval.h"
#include "base/threads/mutex.h"
#include "event/raw_records.h"
#include "train/learner/baseline.h"
#include "train/learner/part_figures.h"
#include "train/learner/rank_totals.h"
#include "train/quality/quality_history.h"

namespace tacit::train {

// Sums over predictions, and the figures that only all of them together have. Un-noised:
// operator-only.
struct PredictedFigures : QualityPoint {
  double auc = 0.5;
  double auc_deviation = NAN;      // NaN where a label has fewer than two events
  double entropy_deviation = NAN;  // of EntropyOf; NaN where all labels are the same

  Interval AucInterval() const { return ProbabilityInterval(auc, auc_deviation); }
  // The interval of log loss over that of the best constant.
  Interval EntropyInterval() const;
  // Tells whether hardly any prediction was wrong, over enough labels of either kind: no honest
  // feature gives that.
  bool IsTooGood() const;
};

// The end of a day in the log: of its `files`, the last one ends before `offset`.
struct DayEnd {
  uint64_t offset = 0, files = 0;
};

// One learner's work on one file of the log (a day), or on several that one step holds.
struct DayRow : PredictedFigures {
  std::string name;
  DayEnd end;
  uint64_t steps = 0;
  uint64_t rows_written = 0;
  double epsilon = 0;     // the learner's, once the day's last step is charged
  bool held_out = false;  // predicted, and not learnt from
  bool blind = false;     // all of it was predicted before the learner's first release
  // The part that was predicted after that, where the day holds both.
  std::optional<PredictedFigures> after_release;

  // The figures that tell how good the learner is; null where it had learnt nothing yet.
  const PredictedFigures* Judged() const {
    if (blind) return nullptr;
    return after_release ? &*after_release : this;
  }
};

// Log loss over that of the best constant, which is 1 where a constant does as well; NaN if there
// is none to compare with.
inline double EntropyOf(const QualityPoint& sums) {
  return NormalisedEntropy(sums.loss_sum, sums.clicks, sums.events);
}

// The times of the events of a batch; 0: they have none.
struct EventTimes {
  int64_t first_ms = 0, last_ms = 0;

  static EventTimes Of(std::span<const int64_t> timestamps_ms);
};

// Training progress for the operator's terminal and operator metrics. The trainer writes it, any
// thread reads it. Thread-safe.
class Progress {
 public:
  struct View {
    uint64_t events = 0;
    uint64_t steps = 0;
    // Click models, over the last events: AUC, log loss over that of the best constant, and clicks
    // predicted over clicks. NaN before there are any.
    double auc = 0.5, auc_deviation = NAN, entropy = NAN, calibration = NAN;
    RankTotals ranked;   // next-item models, over the last units asked
    double epsilon = 0;  // committed
    // Records of the last period learnt from in this process, and of the longest one.
    uint64_t last_period = 0, longest_period = 0;
  };

  explicit Progress(size_t learners);

  // Says that the learner goes on with what it released before: none of its days is blind.
  void Resume(size_t learner);
  // Adds predictions made before their events were learnt from.
  void AddPredictions(size_t learner, std::span<const float> logits, std::span<const float> labels,
                      double loss_sum, EventTimes times = {});
  // The same of predictions that another process has made. All of a bin count as its middle in AUC
  // and in deviations.
  void AddFigures(size_t learner, const PartFigures& figures);
  // Adds a next-item model's examples, and how it did for the units asked.
  void AddRankings(size_t learner, uint64_t examples, const RankTotals& ranked,
                   EventTimes times = {});
  void AddStep(size_t learner, uint64_t rows_written, double epsilon);
  // Ends the current day; later calls count for the next. Returns the row of the day, unless it had
  // neither a step nor a prediction.
  std::optional<DayRow> EndDay(size_t learner, const std::string& name, DayEnd end = {});
  // The same of a step that these cuts end; nothing if no file ends there.
  std::optional<DayRow> EndDay(size_t learner, std::span<const event::PublicCut> cuts);
  // The same for a day that was held out. REQUIRES that the last day learnt from has ended.
  void EndHeldOutDay(size_t learner, const std::string& name, DayEnd end = {});
  void Committed(size_t learner, double epsilon);
  // The predictions since the last call, once they are enough to be judged, without any from before
  // the first release.
  std::optional<QualityPoint> TakeStretch(size_t learner);

  View view(size_t learner) const;
  // Finished days, then the current one if it has any step.
  std::vector<DayRow> days(size_t learner) const;
  // The predictions that tell how good the learner is: all of its held-out days, or, without such
  // days, all of days() after its first release. Nothing if there are no such predictions.
  std::optional<PredictedFigures> judged(size_t learner) const;
  // The quality of predictions along the stream, of this process.
  std::vector<QualityPoint> quality(size_t learner) const;

 private:
  // Predictions, and what came. A quarter of a megabyte, so a finished day keeps its figures and
  // not this.
  struct Predicted {
    AucHistogram auc;
    QualityPoint sums;
    double click_loss = 0, miss_loss = 0, loss_squares = 0;  // of the same predictions

    // Returns the sums of what is added.
    QualityPoint Add(std::span<const float> logits, std::span<const float> labels, double loss,
                     EventTimes times);
    QualityPoint Add(const PartFigures& figures);
    // Adds records of one prediction and label, to all but the sums. Returns their probability.
    float Count(double logit, bool click, uint64_t times = 1);
    void Merge(const Predicted& other);
    double EntropyDeviation() const;
    PredictedFigures Figures() const;
  };
  struct Account {
    View view;
    std::vector<DayRow> finished;
    DayRow current;   // without its predictions
    Predicted today;  // without those of `open` and `blind`
    // The day's predictions before the learner's first release, where that was on this day.
    std::optional<Predicted> blind;
    Predicted judged;            // of finished days
    bool held_out = false;       // these days
    bool released = false;       // in this run or before it
    uint64_t before_period = 0;  // view.events when the last step was taken
    QualityPoint stretch;        // since it was last taken
    // Predictions since the last fold; those before, in two windows, so that the running figures
    // are never of few events.
    Predicted open, recent, previous;
    RankTotals recent_ranked, previous_ranked;
    QualityHistory history;
  };

  static void See(Account* account, const QualityPoint& added);
  // Adds the open predictions to the day and to the windows.
  static void Fold(Account* account);
  static DayRow RowOf(const Account& account);
  // Begins a day, and returns the row of the one before.
  static DayRow CloseDay(Account* account, const std::string& name, DayEnd end);

  mutable Mutex mutex_;
  std::vector<Account> accounts_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::train
