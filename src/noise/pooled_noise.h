#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/threads/worker_pool.h"
#include "noise/keystream.h"
#include "noise/noise.h"
#include "noise/stream_noise.h"

namespace tacit::noise {

// NoiseSource over one keystream per worker. Which draw comes from which stream depends on sizes
// alone. A forked child, which has no workers, draws everything on its own thread.
class PooledNoise final : public NoiseSource {
 public:
  // Smaller fills finish sooner than a worker wakes up.
  static constexpr size_t kSplitMin = size_t{1} << 15;

  // The product's source: every key comes from getrandom(2).
  explicit PooledNoise(WorkerPool& workers);
  // A source over given streams, one per worker, for tests.
  PooledNoise(WorkerPool& workers, std::vector<std::unique_ptr<Keystream>> streams);

  void AddGridGaussian(double stddev, std::span<int64_t> values) override;
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override;
  void AddGaussian(double stddev, std::span<float> values) override;
  void FillGaussian(std::span<double> out) override;
  double Uniform() override { return first().Uniform(); }
  bool Bernoulli(double p) override { return first().Bernoulli(p); }
  void FillKey(std::span<uint8_t, 32> key) override { first().FillKey(key); }
  uint64_t GeometricSkip(double p) override { return first().GeometricSkip(p); }
  double GaussianTail(double lower) override { return first().GaussianTail(lower); }
  void ForParts(size_t n, const Part& part) override;
  void Rekey() override;

 private:
  StreamNoise& first() { return *sources_.front(); }

  WorkerPool& workers_;
  const pid_t owner_;
  std::vector<std::unique_ptr<StreamNoise>> sources_;
};

}  // namespace tacit::noise
