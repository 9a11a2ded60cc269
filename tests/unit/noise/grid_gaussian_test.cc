#include "noise/grid_gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <vector>

#include "noise/noise.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

// Random words, and those where the arithmetic is at its ends, in the kernels' layout.
std::vector<uint32_t> GridBits(size_t pairs) {
  std::mt19937_64 random(11);
  std::vector<uint64_t> words(3 * pairs);
  for (uint64_t& word : words) word = random();
  const uint64_t ends[] = {0,         1,    0x7ff, 0x800, 0x3fffffffffffffff, 0x8000000000000000,
                           ~0ull - 1, ~0ull};
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 8; ++j) {
      words[i * 8 + j] = ends[i];
      words[pairs + i * 8 + j] = ends[j];
      words[2 * pairs + i * 8 + j] = ends[(i + j) % 8];
    }
  // Ever smaller u: the tail.
  for (size_t i = 64; i < 127; ++i) words[i] >>= i - 63;
  std::vector<uint32_t> bits(2 * words.size());
  std::memcpy(bits.data(), words.data(), 8 * words.size());
  return bits;
}

TEST(GridGaussian, DispatchedKernelsGiveThePortableBits) {
  for (size_t pairs : {127u, 128u, 131u, 1000u}) {
    const auto bits = GridBits(pairs);
    std::vector<double> a(2 * pairs), b = a;
    FillNormalsPortable(bits.data(), a.data(), a.data() + pairs, pairs);
    FastestFillNormals()(bits.data(), b.data(), b.data() + pairs, pairs);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), 8 * a.size()), 0);
    for (const double stddev : {kGridStddevMin, 1e6 / 3, kGridStddevMax}) {
      std::vector<int64_t> x(2 * pairs, 7), y = x;
      AddGridPortable(bits.data(), stddev, DitherBits(stddev), x.data(), x.data() + pairs, pairs);
      FastestAddGrid()(bits.data(), stddev, DitherBits(stddev), y.data(), y.data() + pairs, pairs);
      EXPECT_EQ(x, y) << pairs << " at " << stddev;
      std::vector<float> f(2 * pairs), g = f;
      FillGridPortable(bits.data(), stddev, DitherBits(stddev), 0.3 / stddev, f.data(),
                       f.data() + pairs, pairs);
      FastestFillGrid()(bits.data(), stddev, DitherBits(stddev), 0.3 / stddev, g.data(),
                        g.data() + pairs, pairs);
      EXPECT_EQ(f, g) << pairs << " at " << stddev;
      for (size_t i = 0; i < f.size(); ++i)
        ASSERT_EQ(f[i], static_cast<float>(static_cast<double>(x[i] - 7) * (0.3 / stddev)));
    }
  }
}

struct LongPair {
  long double radius, first, second;
};

// The formula, from the same words.
LongPair Formula(uint64_t a, uint64_t b) {
  const auto low = static_cast<long double>((b & 0x7fe) | 1);
  const long double u = (static_cast<long double>(a) * 0x1p11L + low) * 0x1p-75L;
  const long double radius = std::sqrt(-2 * std::log(u));
  const auto place = static_cast<long double>(b >> 11 & 0x7ffffffffffff);
  const long double angle =
      ((place + 0.5L) * 0x1p-51L - 0.5L) * std::numbers::pi_v<long double> / 2;
  const long double sine = radius * std::sin(angle);
  const long double cosine = radius * std::cos(angle) * (b >> 63 ? -1 : 1);
  return b >> 62 & 1 ? LongPair{radius, sine, cosine} : LongPair{radius, cosine, sine};
}

// The bound of docs/internals/noise.md: 2^-50 of the radius, and what a rounding of u near 1 does
// to a small one.
double AllowedInDouble(double radius) { return 0x1p-50 * radius + 0x1p-53 / (radius + 0x1p-27); }

TEST(GridGaussian, NormalsAgreeWithTheFormulaToFiftyBits) {
  constexpr size_t kPairs = 200000;
  const auto bits = GridBits(kPairs);
  std::vector<double> first(kPairs), second(kPairs);
  FillNormalsPortable(bits.data(), first.data(), second.data(), kPairs);
  double largest = 0;
  for (size_t i = 0; i < kPairs; ++i) {
    uint64_t a, b;
    std::memcpy(&a, &bits[2 * i], 8);
    std::memcpy(&b, &bits[2 * (kPairs + i)], 8);
    const LongPair want = Formula(a, b);
    const double allowed = AllowedInDouble(static_cast<double>(want.radius));
    ASSERT_LE(std::abs(static_cast<double>(first[i] - want.first)), allowed) << a << " " << b;
    ASSERT_LE(std::abs(static_cast<double>(second[i] - want.second)), allowed) << a << " " << b;
    largest = std::max(largest, static_cast<double>(want.radius));
  }
  EXPECT_NEAR(largest, std::sqrt(2 * 75 * std::numbers::ln2), 1e-9);
}

TEST(GridGaussian, IsTheNormalRoundedDownPlusItsDither) {
  constexpr size_t kPairs = 5000;
  const auto bits = GridBits(kPairs);
  std::vector<double> z(2 * kPairs);
  FillNormalsPortable(bits.data(), z.data(), z.data() + kPairs, kPairs);
  for (const double stddev : {128.0, 1000.5, 0x1.7p30}) {
    const int dither_bits = DitherBits(stddev);
    ASSERT_GT(std::ldexp(1, dither_bits), stddev / 128);
    ASSERT_LE(std::ldexp(1, dither_bits), stddev / 64);
    std::vector<int64_t> values(2 * kPairs, -5);
    AddGridPortable(bits.data(), stddev, dither_bits, values.data(), values.data() + kPairs,
                    kPairs);
    for (size_t i = 0; i < 2 * kPairs; ++i) {
      uint64_t word;
      std::memcpy(&word, &bits[4 * kPairs + 2 * (i % kPairs)], 8);
      const uint64_t width = uint64_t{1} << dither_bits;
      const uint64_t drawn = i < kPairs ? word % width : word >> (64 - dither_bits);
      const auto dither = static_cast<int64_t>(drawn + 1 - width / 2);
      EXPECT_NEAR(static_cast<double>(values[i] + 5 - dither), std::floor(z[i] * stddev),
                  std::abs(z[i] * stddev - std::round(z[i] * stddev)) < 1e-6 ? 1 : 0);
    }
  }
}

// The sum over the dither, term by term.
TEST(GridGaussian, TailIsTheSumOverTheDither) {
  for (const double stddev : {128.0, 1000.0, 12345.6}) {
    const int64_t width = int64_t{1} << DitherBits(stddev);
    for (const double z : {-9.0, -1.0, 0.0, 0.3, 2.0, 5.0, 9.0}) {
      const auto threshold = static_cast<int64_t>(z * stddev);
      double tail = 0;
      for (int64_t d = 1 - width / 2; d <= width / 2; ++d)
        tail += tacit::testing::NormalCdf(-static_cast<double>(threshold - d) / stddev) /
                static_cast<double>(width);
      // A sum of steps for an integral: (z / stddev)^2 / 24 of it.
      EXPECT_NEAR(GridGaussianTail(stddev, threshold) / tail, 1, 4 / stddev / stddev + 1e-11) << z;
    }
  }
}

TEST(GridGaussianDeath, StepsTooCoarseOrTooFineAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)DitherBits(127), "step");
  EXPECT_DEATH((void)DitherBits(0x1.1p38), "step");
  EXPECT_DEATH((void)DitherBits(std::nan("")), "step");
}

}  // namespace
}  // namespace tacit::noise
