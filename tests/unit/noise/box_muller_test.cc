#include "noise/box_muller.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace tacit::noise {
namespace {

// Random words, and those where the arithmetic is at its ends.
std::vector<uint32_t> TestBits(size_t pairs) {
  std::mt19937 generator(7);
  std::vector<uint32_t> bits(2 * pairs);
  for (uint32_t& word : bits) word = generator();
  const uint32_t ends[] = {0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 8; ++j) {
      bits[i * 8 + j] = ends[i];
      bits[pairs + i * 8 + j] = ends[j];
    }
  return bits;
}

TEST(BoxMuller, DispatchedKernelGivesThePortableBits) {
  for (size_t pairs : {64u, 65u, 79u, 1000u, 2048u}) {
    const auto bits = TestBits(pairs);
    std::vector<float> a(2 * pairs, 0.25f), b = a;
    AddBoxMullerPortable(bits.data(), 1.5f, a.data(), a.data() + pairs, pairs);
    FastestBoxMuller()(bits.data(), 1.5f, b.data(), b.data() + pairs, pairs);
    EXPECT_EQ(a, b) << pairs;
  }
}

// The cost of f32: relative rounding, and u rounded to 2^-25 where it is near 1 and the radius
// small.
double AllowedInFloat(double radius) { return 1e-6 * radius + 1e-7 / (radius + 2e-4); }

// The formula in double, from the same words.
TEST(BoxMuller, AgreesWithTheFormula) {
  constexpr size_t kPairs = 200000;
  const auto bits = TestBits(kPairs);
  std::vector<float> first(kPairs), second(kPairs);
  AddBoxMullerPortable(bits.data(), 1.0f, first.data(), second.data(), kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    const uint32_t a = bits[i], b = bits[kPairs + i];
    const double u = (a + ((b & 255) + 0.5) / 256) * 0x1p-32;
    const double radius = std::sqrt(-2 * std::log(u));
    EXPECT_NEAR(std::hypot(first[i], second[i]), radius, AllowedInFloat(radius));
    const double angle = (((b >> 8) & 0x3fffff) + 0.5 - 0x1p21) * 0x1p-22 * std::numbers::pi / 2;
    const double sine = radius * std::sin(angle);
    const double cosine = radius * std::cos(angle) * (b >> 31 ? -1 : 1);
    const bool swap = (b >> 30) & 1;
    EXPECT_NEAR(first[i], swap ? sine : cosine, AllowedInFloat(radius));
    EXPECT_NEAR(second[i], swap ? cosine : sine, AllowedInFloat(radius));
    if (HasFailure()) FAIL() << "words " << a << " and " << b;
  }
}

}  // namespace
}  // namespace tacit::noise
