// The attack of Mironov, "On significance of the least significant bits for differential privacy"
// (CCS 2012): noise in floats reaches only some of the floats, and which ones depends on what it
// was added to. One output can then exclude a neighbouring input for certain, with any epsilon
// says.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "noise/noise.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

// Says which of the neighbouring inputs 0 and 1 an output can come from.
struct Verdict {
  bool from_zero = true, from_one = true;
};

// Textbook Laplace in double: input - scale ln u with u a multiple of 2^-53, sign from a coin.
double NaiveLaplace(double input, double scale, NoiseSource& noise) {
  const double sign = noise.Bernoulli(0.5) ? 1 : -1;
  return input + sign * (-scale * std::log(noise.Uniform()));
}

// Mironov's section 4: whether some u, near the one that the exact inverse gives, leads to
// `output`.
bool LaplaceReaches(double input, double scale, double output) {
  const double noise = output - input;
  const double sign = noise < 0 ? -1 : 1;
  const double u = std::exp(-std::abs(noise) / scale);
  const double middle = std::round(u * 0x1p53);
  // The roundings of log, product and sum move the preimage by few multiples.
  for (double n = std::max(1.0, middle - 40); n <= std::min(0x1p53 - 1, middle + 40); ++n)
    if (input + sign * (-scale * std::log(n * 0x1p-53)) == output) return true;
  return false;
}

// True if f32 noise n, added to an input of 1 and rounded, can give `output`. Where it nearly
// cancels the input, n lies in [-3/2, -1/2] and so on multiples of 2^-24, and the sum is exact.
bool FloatSumReachesFromOne(float output) {
  return std::abs(output) >= 0.5f || output * 0x1p24f == std::floor(output * 0x1p24f);
}

TEST(MironovAttack, TellsNeighboursApartUnderNaiveLaplace) {
  const auto noise = MakeNoiseSource();
  constexpr int kDraws = 20000;
  constexpr double kScale = 10;  // epsilon 0.1
  int excluded = 0;
  for (int i = 0; i < kDraws; ++i) {
    const bool one = i % 2 == 1;
    const double output = NaiveLaplace(one, kScale, *noise);
    const Verdict verdict{LaplaceReaches(0, kScale, output), LaplaceReaches(1, kScale, output)};
    ASSERT_TRUE(one ? verdict.from_one : verdict.from_zero) << "the attack misses the truth";
    excluded += !(one ? verdict.from_zero : verdict.from_one);
  }
  // At epsilon 0.1 no input should be excluded for certain; here it is every fourth.
  EXPECT_GT(excluded, kDraws / 20);
}

TEST(MironovAttack, TellsNeighboursApartUnderFloatGaussian) {
  const auto noise = MakeNoiseSource();
  // Noise in floats, then added: what AddGaussian gives on top of zeros.
  std::vector<float> from_zero(20000), from_one(20000);
  noise->AddGaussian(1, from_zero);
  noise->AddGaussian(1, from_one);
  for (float& output : from_one) output += 1.0f;
  int excluded = 0;
  for (const float output : from_zero) excluded += !FloatSumReachesFromOne(output);
  for (const float output : from_one)
    ASSERT_TRUE(FloatSumReachesFromOne(output)) << "the attack misses the truth: " << output;
  EXPECT_GT(excluded, 2000);
}

std::vector<int64_t> OnGrid(NoiseSource& noise, double stddev, int64_t input, size_t n) {
  std::vector<int64_t> values(n, input);
  noise.AddGridGaussian(stddev, values);
  return values;
}

// On the grid every output is an integer, and both inputs reach every one of them.
TEST(MironovAttack, FindsNothingOnTheGrid) {
  constexpr double kStddev = 128;
  constexpr int64_t kNeighbour = 97, kRange = 300;
  constexpr size_t kDraws = 4000000;
  const auto noise = MakeNoiseSource();
  std::set<int64_t> reached[2];
  for (const int one : {0, 1})
    for (const int64_t output : OnGrid(*noise, kStddev, one * kNeighbour, kDraws))
      if (std::abs(output) <= kRange) reached[one].insert(output);
  // The rarest, 3.1 deviations away, is expected 100 times.
  EXPECT_EQ(reached[0].size(), 2 * kRange + 1u);
  EXPECT_EQ(reached[0], reached[1]);
}

// The last bits of an output say nothing of the input's: on a fine grid their distribution is
// uniform for either. An input's low bits show when noise has none of its own.
std::string CheckLastBits(const std::vector<int64_t>& outputs) {
  std::vector<uint64_t> counts(64);
  for (const int64_t output : outputs) ++counts[static_cast<uint64_t>(output) % 64];
  return tacit::testing::CheckCounts(counts, std::vector<double>(64, 1 / 64.0),
                                     static_cast<double>(outputs.size()));
}

TEST(MironovAttack, LastBitsAreUniformForEveryInput) {
  const auto noise = MakeNoiseSource();
  for (const double stddev : {0x1p20, 1e9, 0x1p38})
    for (const int64_t input : {int64_t{0}, int64_t{1}, int64_t{12345678901}})
      EXPECT_EQ(CheckLastBits(OnGrid(*noise, stddev, input, 400000)), "") << stddev;
  auto coarse = OnGrid(*noise, 0x1p20, 0, 400000);
  for (int64_t& output : coarse) output = (output & ~int64_t{1}) + 1;
  EXPECT_NE(CheckLastBits(coarse), "");
}

}  // namespace
}  // namespace tacit::noise
