#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "noise/box_muller.h"
#include "noise/grid_gaussian.h"
#include "noise/keystream.h"
#include "noise/noise.h"

namespace tacit::noise {

// NoiseSource over an AES-256-CTR keystream. Every sampler draws from the one stream.
class StreamNoise final : public NoiseSource {
 public:
  // The product's source: its key comes from getrandom(2).
  StreamNoise();
  // A source over a given stream, for tests.
  explicit StreamNoise(std::unique_ptr<Keystream> stream);

  void AddGridGaussian(double stddev, std::span<int64_t> values) override;
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override;
  void AddGaussian(double stddev, std::span<float> values) override;
  void FillGaussian(std::span<double> out) override;
  double Uniform() override;
  bool Bernoulli(double p) override;
  void FillKey(std::span<uint8_t, 32> key) override;
  uint64_t GeometricSkip(double p) override;
  double GaussianTail(double lower) override;
  void Rekey() override { stream_->Rekey(); }

 private:
  // Calls draw(bits, first, second, pairs) until `values` are drawn; an odd value at the end gets
  // the first of a pair.
  template <class T, class Draw>
  void ForPairs(std::span<T> values, const Draw& draw);

  std::unique_ptr<Keystream> stream_;
  BoxMullerFunction add_box_muller_;
  FillNormalsFunction fill_normals_;
  AddGridFunction add_grid_;
  FillGridFunction fill_grid_;
};

}  // namespace tacit::noise
