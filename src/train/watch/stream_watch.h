#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/threads/mutex.h"
#include "event/batch.h"
#include "event/schema.h"
#include "metrics/registry.h"
#include "train/watch/known_values.h"
#include "train/watch/missed_users.h"
#include "train/watch/repeated_records.h"
#include "train/watch/usual.h"

namespace tacit::train {

// Warns the operator of a stream that changes at once: its label rate, a feature that goes missing
// or has other values, records that come twice, times of another unit, users who stay away.
// Producers change; the stream goes on being read and learnt from.
//
// Records are looked at in windows of a second and 500 records at least, some 20,000 of a window. A
// figure is unusual when it leaves its usual range in two windows in a row (Usual). What is usual
// is learnt from the stream itself, some ten windows long, so a stream that is wrong from its
// beginning is usual. Un-noised: operator-only. One thread calls See, any thread calls trouble().
class StreamWatch {
 public:
  StreamWatch(const event::FeatureSchema& schema, const Clock& clock, metrics::Registry& registry);

  // Takes note of the good records of a run.
  void See(const event::Batch& batch);
  // Returns the figures that have changed at once; "" while all are usual.
  std::string trouble() const;

 private:
  enum Kind : uint8_t { kLabel, kMissing, kUnseen, kRepeats, kTimes, kUsers };
  static constexpr size_t kKinds = kUsers + 1;

  // A figure that is followed from window to window.
  struct Figure {
    Kind kind;
    std::string what;  // "the label rate", "the share of records without 'price'"
    Usual usual;
    bool told = false;
  };
  // A column of the batch, with what the window has of it.
  struct Column {
    uint64_t missing = 0;
    KnownValues values;  // of a categorical column
    size_t missing_figure = 0, unseen_figure = 0;
  };

  size_t AddFigure(Kind kind, std::string what, double least_jump);
  void Look(const event::Batch& batch, size_t example);
  void EndWindow();
  void EndColumns();
  double NewShareOfAll() const;
  void EndTimes();
  void See(size_t figure, double value);
  void Tell();
  std::string Changed(const Figure& figure) const;

  const Clock& clock_;
  const size_t dense_;
  std::vector<uint64_t> missing_row_;  // of each categorical feature
  std::vector<Figure> figures_;
  std::vector<Column> columns_;  // dense, then categorical
  std::vector<metrics::Gauge> unusual_;
  size_t label_figure_, unseen_in_all_figure_, repeats_figure_, times_figure_, users_figure_;
  RepeatedRecords repeats_;
  MissedUsers users_;

  Clock::TimePoint window_began_;
  uint32_t windows_ = 0;
  uint64_t records_ = 0, looked_at_ = 0, positive_ = 0;  // of this window
  uint64_t stride_ = 1, next_look_ = 0;                  // one of `stride_` records is looked at
  uint64_t looks_at_this_stride_;  // a window that has more of them goes on in longer strides
  std::vector<int64_t> times_;     // of this window's looks
  int64_t usual_time_ = 0;         // the last usual window's median
  mutable Mutex mutex_;
  std::string trouble_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::train
