#include "noise/stream_noise.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "base/threads/worker_pool.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

using testing::CheckCounts;
using testing::CheckDistribution;
using testing::CheckMoments;
using testing::CheckNoCommonWord;
using testing::CheckTails;
using testing::CheckUncorrelated;
using testing::NormalCdf;

constexpr size_t kMany = 1000000;

std::vector<double> FloatNormals(NoiseSource& noise, size_t n, double stddev = 1) {
  std::vector<float> values(n);
  noise.AddGaussian(stddev, values);
  return {values.begin(), values.end()};
}

std::vector<double> DoubleNormals(NoiseSource& noise, size_t n) {
  std::vector<double> values(n);
  noise.FillGaussian(values);
  return values;
}

std::string CheckStandardNormal(const std::vector<double>& z) {
  return CheckMoments(z) + CheckDistribution(z, NormalCdf) + CheckTails(z);
}

TEST(AddGaussian, IsStandardNormal) {
  const auto noise = MakeNoiseSource();
  EXPECT_EQ(CheckStandardNormal(FloatNormals(*noise, kMany)), "");
  EXPECT_EQ(CheckTails(FloatNormals(*noise, 10 * kMany)), "");
}

TEST(AddGaussian, NeverAddsLessThanWasAskedFor) {
  const auto draw = [](double stddev) {
    StreamNoise noise(std::make_unique<Keystream>(Keystream::Key{9}, Keystream::CounterBlock{}));
    return FloatNormals(noise, 1000, stddev);
  };
  ASSERT_LT(static_cast<double>(0.7f), 0.7);
  EXPECT_EQ(draw(0.7), draw(std::nextafter(0.7f, 1.0f)));
  EXPECT_NE(draw(0.7), draw(0.7f));
}

TEST(FillGaussian, IsStandardNormal) {
  const auto noise = MakeNoiseSource();
  EXPECT_EQ(CheckStandardNormal(DoubleNormals(*noise, kMany)), "");
}

// In standard deviations, on a grid so fine that its steps are not seen.
std::vector<double> GridNormals(NoiseSource& noise, size_t n) {
  constexpr double kStddev = 0x1p30;
  std::vector<int64_t> steps(n);
  noise.AddGridGaussian(kStddev, steps);
  std::vector<double> z(n);
  for (size_t i = 0; i < n; ++i) z[i] = static_cast<double>(steps[i]) / kStddev;
  return z;
}

// A grid so coarse that its steps are seen: every integer as often as it should be.
TEST(AddGridGaussian, HasTheStatedTailAtEveryStep) {
  constexpr double kStddev = 150;
  const auto noise = MakeNoiseSource();
  std::vector<int64_t> steps(kMany);
  noise->AddGridGaussian(kStddev, steps);
  std::vector<uint64_t> counts(601);
  std::vector<double> p(601);
  for (int64_t step : steps)
    if (std::abs(step) <= 300) ++counts[static_cast<size_t>(step + 300)];
  for (int64_t step = -300; step <= 300; ++step)
    p[static_cast<size_t>(step + 300)] =
        GridGaussianTail(kStddev, step) - GridGaussianTail(kStddev, step + 1);
  EXPECT_EQ(CheckCounts(counts, p, static_cast<double>(kMany)), "");
  std::rotate(counts.begin(), counts.begin() + 15, counts.end());  // a tenth of a deviation
  EXPECT_NE(CheckCounts(counts, p, static_cast<double>(kMany)), "");
}

TEST(AddGridGaussian, AddsToWhatIsThereForEverySize) {
  const auto noise = MakeNoiseSource();
  for (size_t size : {0u, 1u, 2u, 3u, 7u, 15u, 16u, 17u, 1359u, 1360u, 1361u, 9001u}) {
    std::vector<int64_t> values(size, int64_t{1} << 40);
    noise->AddGridGaussian(kGridStddevMax, values);
    for (int64_t value : values) {
      // A draw leaves a value unchanged with probability 1.5e-12, one of these 13,142 with 2e-8.
      EXPECT_NE(value, int64_t{1} << 40);
      EXPECT_LT(std::abs(static_cast<double>(value - (int64_t{1} << 40))), 8 * kGridStddevMax);
    }
  }
}

TEST(AddGridGaussian, DrawsAndSourcesAreUncorrelatedAndAReplayIsFoundOut) {
  const auto a = MakeNoiseSource(), b = MakeNoiseSource();
  const auto z = GridNormals(*a, kMany);
  EXPECT_EQ(CheckUncorrelated(z, GridNormals(*b, kMany)), "");
  // Neighbours, the two halves of a pair, one chunk and the next.
  for (size_t lag : {1u, 680u, 1360u})
    EXPECT_EQ(CheckUncorrelated(std::span(z).first(kMany - lag), std::span(z).subspan(lag)), "")
        << lag;
  const auto fixed = [] {
    return StreamNoise(std::make_unique<Keystream>(Keystream::Key{1}, Keystream::CounterBlock{}));
  };
  StreamNoise original = fixed(), replay = fixed();
  EXPECT_NE(CheckUncorrelated(GridNormals(original, kMany), GridNormals(replay, kMany)), "");
}

TEST(StatisticalTests, FailOnWrongNormals) {
  const auto noise = MakeNoiseSource();
  for (double wrong_sigma : {0.99, 1.01})
    EXPECT_NE(CheckMoments(FloatNormals(*noise, kMany, wrong_sigma)), "") << wrong_sigma;
  auto shifted = FloatNormals(*noise, kMany);
  for (double& z : shifted) z += 0.02;  // 20 deviations of the mean
  EXPECT_NE(CheckMoments(shifted), "");
  // Right moments, wrong shape: the sum of four uniforms.
  std::vector<double> sums(kMany);
  for (double& z : sums) {
    z = -2;
    for (int i = 0; i < 4; ++i) z += noise->Uniform();
    z *= std::sqrt(3.0);
  }
  EXPECT_EQ(CheckMoments(sums).find("mean"), std::string::npos);
  EXPECT_NE(CheckDistribution(sums, NormalCdf), "");
  // A generator whose tail ends too early.
  auto cut = FloatNormals(*noise, kMany);
  for (double& z : cut) z = std::clamp(z, -4.0, 4.0);
  EXPECT_NE(CheckTails(cut), "");
}

TEST(AddGaussian, AddsToWhatIsThereForEverySize) {
  const auto noise = MakeNoiseSource();
  int unchanged = 0;
  for (size_t size : {0u, 1u, 2u, 3u, 5u, 7u, 4095u, 4096u, 4097u, 9001u}) {
    std::vector<float> values(size, 1.0f);
    noise->AddGaussian(0.5, values);
    for (float value : values) {
      EXPECT_LT(std::abs(value - 1.0f), 4.0f);
      unchanged += value == 1.0f;
    }
    std::vector<float> untouched(size, 3.0f);
    noise->AddGaussian(0, untouched);
    EXPECT_EQ(untouched, std::vector<float>(size, 3.0f));
  }
  // Noise below half an ulp comes once in ten million draws; a forgotten odd end would show in
  // six sizes.
  EXPECT_LE(unchanged, 3);
}

// Neighbours in a chunk and the two halves of a pair.
TEST(AddGaussian, DrawsAreUncorrelated) {
  const auto noise = MakeNoiseSource();
  const auto z = FloatNormals(*noise, kMany);
  for (size_t lag : {1u, 2u, 2048u, 4096u})
    EXPECT_EQ(CheckUncorrelated(std::span(z).first(kMany - lag), std::span(z).subspan(lag)), "")
        << lag;
  std::vector<double> squares(kMany);
  for (size_t i = 0; i < kMany; ++i) squares[i] = (z[i] * z[i] - 1) / std::sqrt(2.0);
  EXPECT_EQ(
      CheckUncorrelated(std::span(squares).first(kMany - 2048), std::span(squares).subspan(2048)),
      "");
}

TEST(NoiseSource, TwoSourcesAreIndependentAndAReplayIsFoundOut) {
  const auto a = MakeNoiseSource(), b = MakeNoiseSource();
  EXPECT_EQ(CheckUncorrelated(FloatNormals(*a, kMany), FloatNormals(*b, kMany)), "");
  FixedNoise original(1), replay(1);
  EXPECT_NE(CheckUncorrelated(FloatNormals(original, kMany), FloatNormals(replay, kMany)), "");
}

TEST(NoiseSource, RekeyEndsAReplay) {
  const auto stream = [] {
    return std::make_unique<Keystream>(Keystream::Key{1}, Keystream::CounterBlock{});
  };
  StreamNoise original(stream()), replay(stream());
  original.Rekey();
  replay.Rekey();
  EXPECT_EQ(CheckUncorrelated(FloatNormals(original, kMany), FloatNormals(replay, kMany)), "");
}

// A key is keystream: not the next draws', not the last ones', and no other key.
TEST(FillKey, GivesOutKeystreamOnce) {
  const auto stream = [] {
    return std::make_unique<Keystream>(Keystream::Key{1}, Keystream::CounterBlock{});
  };
  Keystream words(Keystream::Key{1}, Keystream::CounterBlock{});
  StreamNoise noise(stream());
  std::vector<uint64_t> want, got;
  for (int key = 0; key < 1000; ++key) {
    std::array<uint8_t, 32> bytes;
    noise.FillKey(bytes);
    std::array<uint64_t, 4> numbers;
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    got.insert(got.end(), numbers.begin(), numbers.end());
    std::memcpy(numbers.data(), words.Take(8, 8).data(), bytes.size());
    want.insert(want.end(), numbers.begin(), numbers.end());
    (void)noise.Uniform();  // takes a word of its own
    (void)words.Next64();
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(tacit::testing::CheckNoRepeat(got), "");
}

TEST(FillKey, OfTheProductsSourcesIsNewEachTimeAndAfterRekey) {
  WorkerPool pool({.workers = 2});
  std::vector<uint64_t> prints;
  for (const auto& source : {MakeNoiseSource(), MakeNoiseSource(), MakeNoiseSource(pool)}) {
    for (int i = 0; i < 100; ++i) {
      std::array<uint8_t, 32> key{};
      source->FillKey(key);
      // All of it is written.
      for (int word = 0; word < 4; ++word) {
        uint64_t bits;
        std::memcpy(&bits, key.data() + 8 * word, 8);
        prints.push_back(bits);
      }
      if (i == 50) source->Rekey();
    }
  }
  EXPECT_EQ(tacit::testing::CheckNoRepeat(prints), "");
}

TEST(Uniform, IsUniformAndNeverAtAnEnd) {
  const auto noise = MakeNoiseSource();
  std::vector<double> u(kMany);
  for (double& value : u) {
    value = noise->Uniform();
    ASSERT_GT(value, 0);
    ASSERT_LT(value, 1);
    ASSERT_EQ(value * 0x1p53, std::floor(value * 0x1p53));
  }
  EXPECT_EQ(CheckDistribution(u, [](double x) { return x; }), "");
  for (double& value : u) value = value * value;
  EXPECT_NE(CheckDistribution(u, [](double x) { return x; }), "");
}

TEST(Bernoulli, ComesAsOftenAsAsked) {
  const auto noise = MakeNoiseSource();
  const auto ones = [&](double p) {
    double count = 0;
    for (size_t i = 0; i < kMany; ++i) count += noise->Bernoulli(p);
    return count;
  };
  constexpr auto kDraws = static_cast<double>(kMany);
  for (double p : {1e-3, 0.3, 0.5, 0.99}) {
    const double spread = std::sqrt(kDraws * p * (1 - p));
    EXPECT_EQ(testing::CheckDeviation("ones", ones(p), kDraws * p, spread), "");
    EXPECT_NE(
        testing::CheckDeviation("ones", ones(p > 0.9 ? p - 0.01 : p * 1.8), kDraws * p, spread),
        "");
  }
  EXPECT_EQ(ones(0), 0);
  EXPECT_EQ(ones(1), kDraws);
}

// P(skip = k) = p (1 - p)^k; the last cell is everything beyond.
std::string CheckGeometric(double p, const std::function<uint64_t()>& skip) {
  constexpr size_t kCells = 12;
  const uint64_t width = std::max<uint64_t>(1, static_cast<uint64_t>(0.3 / p));
  std::vector<uint64_t> counts(kCells);
  std::vector<double> probability(kCells);
  for (size_t i = 0; i < kMany; ++i) ++counts[std::min<uint64_t>(skip() / width, kCells - 1)];
  double beyond = 1;
  for (size_t cell = 0; cell < kCells; ++cell) {
    const double next = beyond * std::exp(std::log1p(-p) * static_cast<double>(width));
    probability[cell] = cell + 1 < kCells ? beyond - next : beyond;
    beyond = next;
  }
  return CheckCounts(counts, probability, static_cast<double>(kMany));
}

TEST(GeometricSkip, IsGeometricAndAnOffByOneIsFoundOut) {
  const auto noise = MakeNoiseSource();
  for (double p : {0.7, 0.1, 1e-3, 1e-7}) {
    EXPECT_EQ(CheckGeometric(p, [&] { return noise->GeometricSkip(p); }), "") << p;
    EXPECT_NE(CheckGeometric(p, [&] { return noise->GeometricSkip(p * 1.02); }), "") << p;
  }
  EXPECT_NE(CheckGeometric(0.1, [&] { return noise->GeometricSkip(0.1) + 1; }), "");
}

TEST(GeometricSkip, HoldsAtTheEnds) {
  const auto noise = MakeNoiseSource();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(noise->GeometricSkip(1), 0u);
    EXPECT_EQ(noise->GeometricSkip(1e-300), uint64_t{1} << 63);
  }
}

TEST(GaussianTail, IsTheTailOfTheNormal) {
  const auto noise = MakeNoiseSource();
  for (double lower : {-2.0, 0.0, 0.5, 3.0, 10.0, 30.0}) {
    std::vector<double> sample(200000);
    for (double& z : sample) {
      z = noise->GaussianTail(lower);
      ASSERT_GE(z, lower);
    }
    const auto cdf = [&](double z) { return 1 - NormalCdf(-z) / NormalCdf(-lower); };
    EXPECT_EQ(CheckDistribution(sample, cdf), "") << lower;
    for (double& z : sample) z += 0.1 / (1 + std::abs(lower));
    EXPECT_NE(CheckDistribution(sample, cdf), "") << lower;
  }
}

}  // namespace
}  // namespace tacit::noise
