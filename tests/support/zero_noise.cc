// Noise that is not there, for tests that compare a step with arithmetic done by hand. Takes the
// place of tacit_noise_secure when a test is linked.
#include <algorithm>

#include "noise/noise.h"

namespace tacit::noise {
namespace {

class ZeroNoise final : public NoiseSource {
 public:
  void AddGridGaussian(double, std::span<int64_t>) override {}
  void AddGaussian(double, std::span<float>) override {}
  void FillGaussian(std::span<double> out) override { std::fill(out.begin(), out.end(), 0.0); }
  double Uniform() override { return 0.5; }
  bool Bernoulli(double p) override { return p > 0.5; }
  double Gumbel() override { return 0; }
  uint64_t GeometricSkip(double) override { return uint64_t{1} << 63; }  // no extra rows
  double GaussianTail(double lower) override { return std::max(lower, 0.0); }
  void Rekey() override {}
};

}  // namespace

std::unique_ptr<NoiseSource> MakeNoiseSource() { return std::make_unique<ZeroNoise>(); }
std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool&) { return MakeNoiseSource(); }

}  // namespace tacit::noise
