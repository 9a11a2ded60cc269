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

// Tells whether the most popular items had more hits than the model, by more than chance gives (a
// deviation of the difference, were the hits of each independent).
inline bool IsBelowPopularity(const RankTotals& ranked) {
  const auto model = static_cast<double>(ranked.model.hits);
  const auto popular = static_cast<double>(ranked.popular.hits);
  return popular - model > std::sqrt(popular + model);
}

}  // namespace tacit::train
