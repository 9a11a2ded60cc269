#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "noise/noise.h"

namespace tacit::lab {

// Noise as a learner asks for it, with an auditor's eye on it: hands each draw to a source, and
// writes down the numbers that it was added to, which is what leaves. Without a source it adds
// nothing, and what is written down are the sums themselves. No learner that is served has one.
class Tap final : public noise::NoiseSource {
 public:
  // One call: numbers with their noise, in steps of the grid, and its standard deviation there.
  struct Draw {
    double stddev = 0;
    std::vector<int64_t> values;
  };

  // `source` may be null, and must outlive the draws.
  void From(noise::NoiseSource* source) {
    source_ = source;
    calls_ = 0;
  }
  // The calls since From.
  std::span<const Draw> draws() const { return {draws_.data(), calls_}; }

  void AddGridGaussian(double stddev, std::span<int64_t> values) override;
  // Rows that no record touched: noise alone, and not written down.
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override;
  void AddGaussian(double stddev, std::span<float> values) override;
  void FillGaussian(std::span<double> out) override;
  double Uniform() override;
  bool Bernoulli(double p) override;
  void FillKey(std::span<uint8_t, 32> key) override;
  uint64_t GeometricSkip(double p) override;
  double GaussianTail(double lower) override;
  // The auditor's sources are keyed by him.
  void Rekey() override {}

 private:
  noise::NoiseSource* source_ = nullptr;
  std::vector<Draw> draws_;  // keep their memory from one step to the next
  size_t calls_ = 0;
};

}  // namespace tacit::lab
