#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>

#include "support/silent_noise.h"

namespace tacit::stream {

// Draws Poisson samples and keys from a seed, and counts how often it was keyed anew.
class SeededCoins final : public noise::SilentNoise {
 public:
  explicit SeededCoins(uint64_t seed) : random_(seed) {}
  uint64_t GeometricSkip(double p) override {
    const double u = (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53;
    return p >= 1 ? 0 : static_cast<uint64_t>(std::log(u) / std::log1p(-p));
  }
  void FillKey(std::span<uint8_t, 32> key) override {
    for (uint8_t& byte : key) byte = static_cast<uint8_t>(random_());
  }
  void Rekey() override { ++keys; }

  uint64_t keys = 0;

 private:
  std::mt19937_64 random_;
};

}  // namespace tacit::stream
