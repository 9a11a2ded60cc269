#pragma once

#include <cmath>
#include <cstdint>

#include "train/learner/rank_totals.h"

namespace tacit::train {

// The log loss of the best constant prediction for events of which `clicks` were clicked, known in
// hindsight: the entropy of the click rate. NaN without events.
inline double ConstantLogLoss(uint64_t clicks, uint64_t events) {
  const double rate = static_cast<double>(clicks) / static_cast<double>(events);
  const auto part = [](double p) { return p > 0 ? -p * std::log(p) : p; };
  return part(rate) + part(1 - rate);
}

// Log loss over that of the best constant (normalised entropy): a model above 1 is worse than a
// constant. NaN where a constant is always right.
inline double NormalisedEntropy(double loss_sum, uint64_t clicks, uint64_t events) {
  const double constant = ConstantLogLoss(clicks, events);
  return constant > 0 ? loss_sum / static_cast<double>(events) / constant : NAN;
}

// The clicks predicted over those that came; NaN without a click.
inline double Calibration(double predicted, uint64_t clicks) {
  return clicks > 0 ? predicted / static_cast<double>(clicks) : NAN;
}

// Tells whether the most popular items were the better answer: by hits, or by the gain of their
// places, and by more than chance gives. That is a deviation of the difference, were the answers of
// each independent; no answer gains more than 1.
inline bool IsBelowPopularity(const RankTotals& ranked) {
  const auto below = [](double model, double popular) {
    return popular - model > std::sqrt(popular + model);
  };
  return below(static_cast<double>(ranked.model.hits), static_cast<double>(ranked.popular.hits)) ||
         below(ranked.model.gain, ranked.popular.gain);
}

}  // namespace tacit::train
