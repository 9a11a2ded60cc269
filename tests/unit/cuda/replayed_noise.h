#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/check.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/parts/chacha.h"
#include "noise/grid_gaussian.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"

// The device's noise for the CPU's code, made by the CPU's own loops from the device's words.
namespace tacit::cuda::testing {

inline std::vector<uint32_t> Words(const NoiseKey& key, NoiseQuery query, uint64_t first_block,
                                   uint64_t blocks) {
  std::vector<uint32_t> words;
  for (uint64_t b = 0; b < blocks; ++b) {
    uint32_t block[kChaChaWords];
    ChaChaBlock(key.words, first_block + b, static_cast<uint64_t>(query), block);
    words.insert(words.end(), std::begin(block), std::end(block));
  }
  return words;
}

// The two numbers of a pair's six words.
inline std::pair<int64_t, int64_t> PairOf(const uint32_t* words, double stddev) {
  alignas(64) uint32_t bits[6];
  std::copy_n(words, 6, bits);
  int64_t first = 0, second = 0;
  noise::AddGridPortable(bits, stddev, noise::DitherBits(stddev), &first, &second, 1);
  return {first, second};
}

// Sixteen numbers.
inline std::vector<int64_t> PlaceNumbers(const NoiseKey& key, NoiseQuery query, uint64_t place,
                                         double stddev) {
  const auto words = Words(key, query, 3 * place, 3);
  std::vector<int64_t> numbers;
  for (size_t pair = 0; pair < 8; ++pair) {
    const auto [first, second] = PairOf(words.data() + 6 * pair, stddev);
    numbers.push_back(first);
    numbers.push_back(second);
  }
  return numbers;
}

// A key as the engine takes it from its source: the same in each test, another in each step.
inline NoiseKey KeyOfStep(uint32_t step) {
  NoiseKey key{};
  for (uint32_t i = 0; i < 8; ++i) key.words[i] = 0x9e3779b9u * (step + 1) + 0x85ebca6bu * i;
  return key;
}

// A source for the CPU's mechanism that hands out the numbers that the device draws in a step. The
// test says what is drawn next, in the order of the mechanism's queries.
class ReplayedNoise final : public noise::NoiseSource {
 public:
  explicit ReplayedNoise(uint8_t skips) : skips_(skips) {}

  void SetKey(const NoiseKey& key) { key_ = key; }
  void WillSelect(std::span<const uint64_t> rows, double stddev) {
    stddev_ = stddev;
    for (const uint64_t row : rows)
      numbers_.push_back(PairOf(Words(key_, NoiseQuery::kSelection, row, 1).data(), stddev).first);
  }
  void WillDrawDense(size_t n, double stddev) {
    stddev_ = stddev;
    for (size_t place = 0; place * 16 < n; ++place)
      Push(PlaceNumbers(key_, NoiseQuery::kDense, place, stddev), n - place * 16);
  }
  // The row's numbers, of which there are `dim`, where the longest row has `max_dim`.
  void WillDrawRow(uint64_t row, uint32_t dim, uint32_t max_dim, double stddev) {
    stddev_ = stddev;
    const uint64_t places = (max_dim + 15) / 16;
    for (uint64_t part = 0; part * 16 < dim; ++part)
      Push(PlaceNumbers(key_, NoiseQuery::kRows, row * places + part, stddev), dim - part * 16);
  }
  // True once all that was announced was drawn.
  bool spent() const { return numbers_.empty(); }

  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    TACIT_CHECK(values.empty() || stddev == stddev_, "noise of another query");
    TACIT_CHECK(numbers_.size() >= values.size(), "noise that the test does not expect");
    for (int64_t& value : values) {
      value = static_cast<int64_t>(static_cast<uint64_t>(value) +
                                   static_cast<uint64_t>(numbers_.front()));
      numbers_.pop_front();
    }
  }
  uint64_t GeometricSkip(double p) override { return skips_.GeometricSkip(p); }
  void FillKey(std::span<uint8_t, 32>) override { Never(); }
  void Rekey() override {}
  void AddGaussian(double, std::span<float>) override { Never(); }
  void FillGaussian(std::span<double>) override { Never(); }
  double Uniform() override { return Never(); }
  bool Bernoulli(double) override { return Never(); }
  double GaussianTail(double) override { return Never(); }

 private:
  static int Never() {
    TACIT_CHECK(false, "no step asks for it");
    return 0;
  }
  void Push(const std::vector<int64_t>& numbers, size_t n) {
    numbers_.insert(numbers_.end(), numbers.begin(),
                    numbers.begin() + static_cast<long>(std::min(n, numbers.size())));
  }

  noise::FixedNoise skips_;
  NoiseKey key_{};
  double stddev_ = 0;
  std::deque<int64_t> numbers_;
};

// The engine's source: keys as above, and the same skips.
class EngineNoise final : public noise::NoiseSource {
 public:
  explicit EngineNoise(uint8_t skips) : skips_(skips) {}

  void FillKey(std::span<uint8_t, 32> key) override {
    const NoiseKey words = KeyOfStep(step_++);
    std::copy_n(reinterpret_cast<const uint8_t*>(words.words), 32, key.begin());
  }
  uint64_t GeometricSkip(double p) override { return skips_.GeometricSkip(p); }
  void Rekey() override {}
  void AddGridGaussian(double, std::span<int64_t>) override { Never(); }
  void AddGaussian(double, std::span<float>) override { Never(); }
  void FillGaussian(std::span<double>) override { Never(); }
  double Uniform() override { return Never(); }
  bool Bernoulli(double) override { return Never(); }
  double GaussianTail(double) override { return Never(); }

 private:
  static int Never() {
    TACIT_CHECK(false, "the device draws that");
    return 0;
  }

  noise::FixedNoise skips_;
  uint32_t step_ = 0;
};

}  // namespace tacit::cuda::testing
