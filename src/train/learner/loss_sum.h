#pragma once

#include <span>

namespace tacit::train {

// Largest loss that counts for one example: that of an outcome predicted with probability 1e-43.
inline constexpr float kLossMost = 100;

// Sums logistic losses. A record with a number like 3e38 may have an infinite or NaN loss: it
// counts as kLossMost, so that the figures of its day stay finite.
inline double SumOfLosses(std::span<const float> losses) {
  double sum = 0;
  for (const float loss : losses) sum += loss < kLossMost ? loss : kLossMost;
  return sum;
}

}  // namespace tacit::train
