#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "noise/noise.h"

namespace tacit::noise {

// Noise that is not there: adds nothing, and no row passes by chance. What test doubles are made
// from, and what takes the product's place where a step is compared with arithmetic done by hand.
class SilentNoise : public NoiseSource {
 public:
  void AddGridGaussian(double, std::span<int64_t>) override {}
  void AddGaussian(double, std::span<float>) override {}
  void FillGaussian(std::span<double> out) override { std::fill(out.begin(), out.end(), 0.0); }
  double Uniform() override { return 0.5; }
  bool Bernoulli(double p) override { return p > 0.5; }
  void FillKey(std::span<uint8_t, 32> key) override { std::fill(key.begin(), key.end(), 0); }
  uint64_t GeometricSkip(double) override { return uint64_t{1} << 63; }
  double GaussianTail(double lower) override { return std::max(lower, 0.0); }
  void Rekey() override {}
};

}  // namespace tacit::noise
