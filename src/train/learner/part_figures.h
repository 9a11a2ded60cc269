#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/score_histogram.h"
#include "train/learner/loss_sum.h"

namespace tacit::train {

// The predictions of a part of a period, made before any of its events was learnt from. All are
// whole numbers, so that parts add up to the same in any order. Un-noised: for operators, and for
// PrivateQuality. A value.
struct PartFigures {
  // Losses and predictions are rounded to such a step, each by itself.
  static constexpr double kStep = 0x1p-16;

  uint64_t examples = 0;
  uint64_t clipped = 0;          // units that were longer than the clip
  uint64_t losses = 0;           // in steps
  uint64_t predicted = 0;        // in steps: the clicks that the predictions add up to
  std::vector<uint64_t> bins{};  // predictions by ScoreBins: of misses, then of clicks

  // Adds an event's prediction. REQUIRES two counts for each of these bins.
  void See(const ScoreBins& of, float logit, double probability, float loss, float label) {
    // A loss, or a probability, may be no number.
    losses += static_cast<uint64_t>((loss < kLossMost ? loss : kLossMost) / kStep + 0.5);
    if (probability > 0) predicted += static_cast<uint64_t>(probability / kStep + 0.5);
    ++bins[of.Of(logit) + (label > 0.5f ? of.size() : 0)];
  }
  void Add(const PartFigures& other) {
    examples += other.examples;
    clipped += other.clipped;
    losses += other.losses;
    predicted += other.predicted;
    if (bins.empty()) bins.resize(other.bins.size());
    for (size_t i = 0; i < other.bins.size(); ++i) bins[i] += other.bins[i];
  }
  friend bool operator==(const PartFigures&, const PartFigures&) = default;
};

}  // namespace tacit::train
