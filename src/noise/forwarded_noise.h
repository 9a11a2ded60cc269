#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "noise/noise.h"

namespace tacit::noise {

// A noise source whose draws are all another one's.
class ForwardedNoise : public NoiseSource {
 public:
  void Declare(const Declared& declared) override { to().Declare(declared); }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    to().AddGridGaussian(stddev, values);
  }
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override {
    to().FillGridGaussian(stddev, factor, out);
  }
  void AddGaussian(double stddev, std::span<float> values) override {
    to().AddGaussian(stddev, values);
  }
  void FillGaussian(std::span<double> out) override { to().FillGaussian(out); }
  double Uniform() override { return to().Uniform(); }
  bool Bernoulli(double p) override { return to().Bernoulli(p); }
  void FillKey(std::span<uint8_t, 32> key) override { to().FillKey(key); }
  uint64_t GeometricSkip(double p) override { return to().GeometricSkip(p); }
  double GaussianTail(double lower) override { return to().GaussianTail(lower); }
  void ForParts(size_t n, const Part& part) override { to().ForParts(n, part); }
  void Rekey() override { to().Rekey(); }

 protected:
  // The source of the next draw.
  virtual NoiseSource& to() = 0;
};

}  // namespace tacit::noise
