#include <gtest/gtest.h>

#include <vector>

#include "noise/noise.h"

namespace tacit::noise {
namespace {

TEST(ZeroNoise, AddsNothingAndSelectsNothing) {
  const auto noise = MakeNoiseSource();
  std::vector<float> values = {1, -2, 3};
  noise->AddGaussian(5, values);
  EXPECT_EQ(values, (std::vector<float>{1, -2, 3}));
  std::vector<int64_t> sums = {1, -2, 3};
  noise->AddGridGaussian(1e6, sums);
  EXPECT_EQ(sums, (std::vector<int64_t>{1, -2, 3}));
  std::vector<double> filled(4, 7);
  noise->FillGaussian(filled);
  EXPECT_EQ(filled, std::vector<double>(4, 0));
  EXPECT_EQ(noise->Uniform(), 0.5);
  EXPECT_EQ(noise->GeometricSkip(0.9), uint64_t{1} << 63);
  EXPECT_EQ(noise->GaussianTail(-1), 0);
  EXPECT_EQ(noise->GaussianTail(2), 2);
}

}  // namespace
}  // namespace tacit::noise
