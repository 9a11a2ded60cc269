#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "noise/keystream.h"
#include "noise/noise.h"
#include "noise/stream_noise.h"

namespace tacit::noise::testing {

// The bits of a source's next two uniform numbers, 106 of them, folded into 64.
inline uint64_t Fingerprint(NoiseSource& source) {
  const auto first = static_cast<uint64_t>(source.Uniform() * 0x1p53);
  const auto second = static_cast<uint64_t>(source.Uniform() * 0x1p53);
  return (first << 11 | second >> 42) ^ second * 0x9e3779b97f4a7c15;
}

// The faults that a source of noise can have.
enum class Fault {
  kNone,
  kNarrow,     // the deviation is 1 % too small
  kWide,       // or too large
  kShortTail,  // what is beyond five deviations is halved
  kReplay,     // every source, and every new key, begins the same stream
  kSeed31,     // keys are made from 31 bits
};

// A source with a fault, over known keys: a test that finds the fault finds it always.
class PlantedNoise final : public NoiseSource {
 public:
  explicit PlantedNoise(Fault fault)
      : scale_(fault == Fault::kNarrow ? 0.99
               : fault == Fault::kWide ? 1.01
                                       : 1),
        short_tail_(fault == Fault::kShortTail),
        fault_(fault) {
    Rekey();
  }

  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    std::vector<int64_t> noise(values.size());
    inner_->AddGridGaussian(stddev * scale_, noise);
    for (size_t i = 0; i < values.size(); ++i) {
      const bool far = short_tail_ && std::abs(static_cast<double>(noise[i])) > 5 * stddev;
      values[i] += far ? noise[i] / 2 : noise[i];
    }
  }
  void AddGaussian(double stddev, std::span<float> values) override {
    inner_->AddGaussian(stddev * scale_, values);
  }
  void FillGaussian(std::span<double> out) override {
    inner_->FillGaussian(out);
    for (double& z : out) z *= scale_;
  }
  double Uniform() override {
    return fault_ == Fault::kSeed31 ? SeededUniform() : inner_->Uniform();
  }
  bool Bernoulli(double p) override { return inner_->Bernoulli(p); }
  void FillKey(std::span<uint8_t, 32> key) override { inner_->FillKey(key); }
  uint64_t GeometricSkip(double p) override { return inner_->GeometricSkip(p); }
  double GaussianTail(double lower) override { return inner_->GaussianTail(lower); }
  void Rekey() override {
    if (fault_ == Fault::kSeed31) {
      state_ = seeds_() >> 1;
    } else {
      inner_ = std::make_unique<StreamNoise>(NextStream(fault_));
    }
  }

  // The stream that the next source with this fault draws from.
  static std::unique_ptr<Keystream> NextStream(Fault fault) {
    static std::mt19937_64 seeds(2026);
    const uint64_t seed = fault == Fault::kReplay ? 1 : seeds();
    Keystream::Key key{};
    std::memcpy(key.data(), &seed, sizeof(seed));
    return std::make_unique<Keystream>(key, Keystream::CounterBlock{});
  }

 private:
  // SplitMix64, begun with 31 bits: hundreds of thousands of keys take a moment.
  double SeededUniform() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((z ^ (z >> 31)) >> 12) + 0.5) * 0x1p-52;
  }

  const double scale_;
  const bool short_tail_;
  const Fault fault_;
  std::mt19937 seeds_{1};
  uint64_t state_ = 0;
  std::unique_ptr<NoiseSource> inner_;
};

}  // namespace tacit::noise::testing
