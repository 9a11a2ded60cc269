#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/threads/worker_pool.h"

namespace tacit::noise {

// The smallest and largest standard deviation, in steps of the grid, for which AddGridGaussian
// works. Below, its dither would be seen; above, its lowest bits would not be random.
inline constexpr double kGridStddevMin = 0x1p7;
inline constexpr double kGridStddevMax = 0x1p38;

struct Declared;

// The randomness of privacy: a CSPRNG keyed from getrandom(2), never from a seed, never persisted.
// Rekey() takes a new key; the trainer asks for it at every commit, so that a cloned machine
// repeats at most what its original draws between the cloning and the next commit. After fork() a
// child draws from a new key by itself. Not thread-safe; each user has its own.
class NoiseSource {
 public:
  virtual ~NoiseSource() = default;

  // Names the query that the next draws belong to. Callers go through a Declaration (declared.h).
  virtual void Declare(const Declared&) {}

  // values[i] += floor(stddev * z_i) + d_i, in steps of the caller's grid: z_i independent standard
  // normals, d_i independent and uniform on as many integers as the power of two in (stddev / 128,
  // stddev / 64], the middle one being 1/2. For integers x, x + floor(s z) + d is x + s z rounded
  // down plus something independent of x: it keeps all that the Gaussian mechanism promises.
  // docs/internals/noise.md says how near the draws are to that. Sums wrap at 2^63.
  // REQUIRES kGridStddevMin <= stddev <= kGridStddevMax.
  virtual void AddGridGaussian(double stddev, std::span<int64_t> values) = 0;
  // out[i] = factor * n_i in f32, n_i what AddGridGaussian would add.
  virtual void FillGridGaussian(double stddev, double factor, std::span<float> out);
  // values[i] += stddev * z_i in f32, z_i independent standard normals; stddev is rounded up to a
  // float. Not for values that are released: the sum's rounding reveals something of the value
  // without noise (Mironov, 2012).
  virtual void AddGaussian(double stddev, std::span<float> values) = 0;
  // out[i] = z_i.
  virtual void FillGaussian(std::span<double> out) = 0;
  // Uniform in (0, 1), 53 bits, never 0 or 1.
  virtual double Uniform() = 0;
  // True with probability p in [0, 1], exact to 2^-128.
  virtual bool Bernoulli(double p) = 0;
  // Fills `key` with 32 bytes of this source's keystream: the key of another generator, such as the
  // device's. No other caller gets these bytes, and neither they nor what follows reveals the
  // other.
  virtual void FillKey(std::span<uint8_t, 32> key) = 0;
  // Number of failures before the first success of independent trials of probability p in (0, 1]:
  // floor(ln U / log1p(-p)). Saturates at 2^63.
  virtual uint64_t GeometricSkip(double p) = 0;
  // A standard normal conditioned on being at least `lower`.
  virtual double GaussianTail(double lower) = 0;

  // Splits [0, n) into contiguous parts and calls part(begin, end, source) for each, in parallel if
  // this source has workers. A part draws from the source it is given, which has a keystream of its
  // own, and must not touch the data of other parts. Here: one part, and this source.
  using Part = std::function<void(size_t begin, size_t end, NoiseSource& source)>;
  virtual void ForParts(size_t n, const Part& part) {
    if (n > 0) part(0, n, *this);
  }

  virtual void Rekey() = 0;
};

// The probability that AddGridGaussian adds at least `threshold`.
double GridGaussianTail(double stddev, int64_t threshold);

// The product's noise. Fails the process only when the system has no entropy.
std::unique_ptr<NoiseSource> MakeNoiseSource();
// The same with a keystream for every worker, over which large fills and ForParts are split. Single
// draws and small fills come from the first keystream. `workers` must outlive the source, and must
// not be running anything when it is called.
std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool& workers);

}  // namespace tacit::noise
