#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "noise/forwarded_noise.h"

namespace tacit::lab {

// Noise whose Gaussians are all 0: a mechanism that draws from it does all else as it does with
// noise. A row that no unit touched is chosen where its threshold is below 0. Coins, keys and the
// Gumbel noise of exponential selections are another source's. What is learnt with it is not
// private.
class SilentNoise final : public noise::ForwardedNoise {
 public:
  explicit SilentNoise(std::unique_ptr<noise::NoiseSource> coins)
      : owned_(std::move(coins)), coins_(*owned_) {}

  void AddGridGaussian(double, std::span<int64_t>) override {}
  void FillGridGaussian(double, double, std::span<float> out) override {
    std::ranges::fill(out, 0.f);
  }
  void AddGaussian(double, std::span<float>) override {}
  void FillGaussian(std::span<double> out) override { std::ranges::fill(out, 0.0); }
  uint64_t GeometricSkip(double p) override {
    return p > 0.5 ? 0 : std::numeric_limits<int64_t>::max();
  }
  void ForParts(size_t n, const Part& part) override {
    coins_.ForParts(n, [&](size_t begin, size_t end, NoiseSource& source) {
      SilentNoise silent(source);
      part(begin, end, silent);
    });
  }

 private:
  explicit SilentNoise(noise::NoiseSource& coins) : coins_(coins) {}
  noise::NoiseSource& to() override { return coins_; }

  std::unique_ptr<noise::NoiseSource> owned_;  // null in a part
  noise::NoiseSource& coins_;
};

}  // namespace tacit::lab
