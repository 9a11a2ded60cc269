#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace tacit {

// Stores a count's bits in a float, so that counts beyond 2^24 stay exact.
inline float CountAsFloat(uint32_t count) { return std::bit_cast<float>(count); }
inline uint32_t CountOf(float stored) { return std::bit_cast<uint32_t>(stored); }

// Exponential moving average of weights. Steps count from 1. Each iterate has the weight
// decay^(steps since), divided by the sum of these weights, so that the start causes no bias. A
// step that does not write some weights still moves their average; Read computes it for the step
// asked for. With averaging on, the optimiser's state of n weights ends with the average as of a
// step (n floats) and that step (CountAsFloat); step 0 means that the weights were never written. A
// value.
class MovingAverage {
 public:
  // `decay` lies in [0, 1); 0 turns averaging off.
  explicit MovingAverage(double decay = 0) : decay_(decay), log_decay_(std::log(decay)) {
    TACIT_CHECK(decay >= 0 && decay < 1, "an average decays");
  }
  bool on() const { return decay_ > 0; }
  double decay() const { return decay_; }
  // Number of state floats that the average needs for n weights.
  size_t StateFloats(size_t n) const { return on() ? n + 1 : 0; }

  // The factor that remains at step `to` of the difference between the average as of step `from`
  // and weights unchanged since then: decay^(to - from) (1 - decay^from) / (1 - decay^to). REQUIRES
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
  // Computes the average of the weights as of step `to`; `state` is the weights' whole optimiser
  // state. Without averaging, copies the weights.
  void Read(std::span<const float> weights, std::span<const float> state, uint32_t to,
            std::span<float> out) const {
    const size_t n = weights.size();
    TACIT_CHECK(state.size() >= StateFloats(n) && out.size() == n);
    const uint32_t from = on() ? CountOf(state.back()) : 0;
    // A `from` beyond `to` can only come from damage; the average is then shown as stored.
    const auto keep = static_cast<float>(Keep(from, from < to ? to : from));
    const float* average = on() ? state.data() + state.size() - 1 - n : weights.data();
    for (size_t i = 0; i < n; ++i)
      out[i] = keep == 0 ? weights[i] : weights[i] + keep * (average[i] - weights[i]);
  }

 private:
  double decay_, log_decay_;
};

}  // namespace tacit
