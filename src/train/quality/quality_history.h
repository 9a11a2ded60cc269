#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/learner/rank_totals.h"

namespace tacit::train {

// Sums over predictions that stand side by side in the stream, made before their events were learnt
// from: all that log loss, calibration and hits follow from. A value.
struct QualityPoint {
  uint64_t events = 0;
  uint64_t clicks = 0;  // click models only, like the next two
  double loss_sum = 0;
  double predicted = 0;               // clicks that the predictions add up to
  RankTotals ranked = {};             // next-item models only
  int64_t first_ms = 0, last_ms = 0;  // the events' own times; 0: they have none

  void Merge(const QualityPoint& later) {
    events += later.events;
    clicks += later.clicks;
    loss_sum += later.loss_sum;
    predicted += later.predicted;
    ranked.Merge(later.ranked);
    if (first_ms == 0) first_ms = later.first_ms;
    last_ms = std::max(last_ms, later.last_ms);
  }
};

// The points of one learner since the process began, in the order of the stream, in memory of a
// fixed size: once there is no room, neighbours become one, and points are of twice the events from
// then on. Sums are exact all the same. Un-noised: operator-only. Not thread-safe.
class QualityHistory {
 public:
  static constexpr size_t kPoints = 128;

  QualityHistory() { closed_.reserve(kPoints); }

  // Adds predictions; those of one call stay together.
  void Add(const QualityPoint& predictions) {
    open_.Merge(predictions);
    if (open_.events < least_events_) return;
    closed_.push_back(open_);
    open_ = {};
    if (closed_.size() == kPoints) Halve();
  }
  // All of it, the open point last.
  std::vector<QualityPoint> points() const {
    std::vector<QualityPoint> all = closed_;
    if (open_.events > 0) all.push_back(open_);
    return all;
  }

 private:
  void Halve() {
    for (size_t i = 0; i < kPoints; i += 2) {
      QualityPoint both = closed_[i];
      both.Merge(closed_[i + 1]);
      closed_[i / 2] = both;
    }
    closed_.resize(kPoints / 2);
    least_events_ = std::max(least_events_ * 2, closed_.front().events);
  }

  std::vector<QualityPoint> closed_;
  QualityPoint open_;
  uint64_t least_events_ = 1000;
};

}  // namespace tacit::train
