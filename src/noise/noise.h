#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace tacit::noise {

// The randomness of privacy: a CSPRNG keyed from getrandom(2), never from a seed, never persisted.
// Rekey() takes a new key; the trainer asks for it at every commit, so that a cloned machine
// repeats at most what its original draws between the cloning and the next commit. After fork() a
// child draws from a new key by itself. Not thread-safe; each user has its own.
class NoiseSource {
 public:
  virtual ~NoiseSource() = default;

  // values[i] += stddev * z_i, z_i independent standard normals. stddev is rounded up to a float.
  virtual void AddGaussian(double stddev, std::span<float> values) = 0;
  // out[i] = z_i.
  virtual void FillGaussian(std::span<double> out) = 0;
  // Uniform in (0, 1), 53 bits, never 0 or 1.
  virtual double Uniform() = 0;
  // Number of failures before the first success of independent trials of probability p in (0, 1]:
  // floor(ln U / log1p(-p)). Saturates at 2^63.
  virtual uint64_t GeometricSkip(double p) = 0;
  // A standard normal conditioned on being at least `lower`.
  virtual double GaussianTail(double lower) = 0;

  virtual void Rekey() = 0;
};

// The product's noise. Fails the process only when the system has no entropy.
std::unique_ptr<NoiseSource> MakeNoiseSource();

}  // namespace tacit::noise
