#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace tacit {

// Counts that are stored among floats: their bits, so that they are exact beyond 2^24.
inline float CountAsFloat(uint32_t count) { return std::bit_cast<float>(count); }
inline uint32_t CountOf(float stored) { return std::bit_cast<uint32_t>(stored); }

// Exponential moving average of weights, over steps counted from 1, every iterate of a step with
// the weight decay^(steps since), divided by the sum of the weights, so that the beginning does not
// pull. Weights that are not written at a step stand still, and the average moves on all the same:
// it is brought up to date when somebody asks. Where there is one, the optimiser's state of n
// weights ends in the average (n floats) as of a step and that step (CountAsFloat); step 0 stands
// for weights that were never written. A value.
class MovingAverage {
 public:
  // In [0, 1); 0: there is no average.
  explicit MovingAverage(double decay = 0) : decay_(decay), log_decay_(std::log(decay)) {
    TACIT_CHECK(decay >= 0 && decay < 1, "an average decays");
  }
  bool on() const { return decay_ > 0; }
  double decay() const { return decay_; }
  // Floats behind n weights.
  size_t StateFloats(size_t n) const { return on() ? n + 1 : 0; }

  // What is left at step `to` of the difference between the average as of step `from` and weights
  // that stood still in between: decay^(to - from) (1 - decay^from) / (1 - decay^to). REQUIRES
  // from <= to.
  double Keep(uint32_t from, uint32_t to) const {
    if (from == 0) return 0;
    if (from == to) return 1;
    return std::exp((to - from) * log_decay_) * std::expm1(from * log_decay_) /
           std::expm1(to * log_decay_);
  }

  // The stored average of n weights; empty when the state is too short to hold one. REQUIRES on().
  std::span<const float> Of(size_t n, std::span<const float> state) const {
    return state.size() < n + 1 ? std::span<const float>() : state.subspan(state.size() - 1 - n, n);
  }
  // The average of weights as of step `to`; `state` is all that lies behind them. Without an
  // average: the weights.
  void Read(std::span<const float> weights, std::span<const float> state, uint32_t to,
            std::span<float> out) const {
    const size_t n = weights.size();
    TACIT_CHECK(state.size() >= StateFloats(n) && out.size() == n);
    const uint32_t from = on() ? CountOf(state.back()) : 0;
    // A step that has not come yet can only be damage; the average is then shown as it is stored.
    const auto keep = static_cast<float>(Keep(from, from < to ? to : from));
    const float* average = on() ? state.data() + state.size() - 1 - n : weights.data();
    for (size_t i = 0; i < n; ++i)
      out[i] = keep == 0 ? weights[i] : weights[i] + keep * (average[i] - weights[i]);
  }

 private:
  double decay_, log_decay_;
};

}  // namespace tacit
