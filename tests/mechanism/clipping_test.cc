#include "mechanism/clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tacit::mechanism {
namespace {

std::vector<float> ScalesOf(const model::ScaleRule& rule, const model::GroupNorms& norms) {
  std::vector<float> scales(norms.squared.size(), -1);
  rule.Scales(norms, scales);
  return scales;
}

TEST(FlatClip, ScalesAllGroupsOfAUnitByItsJointNorm) {
  // Units of norm 5 (3 and 4), 0.5 (in the second group), and 0.
  const model::GroupNorms norms{.groups = 2, .units = 3, .squared = {9, 0, 0, 16, 0.25f, 0}};
  const auto scales = ScalesOf(FlatClip(1.5), norms);
  EXPECT_NEAR(scales[0], 0.3, 1e-6);
  EXPECT_EQ(scales[3], scales[0]);
  EXPECT_EQ(scales[1], 1);
  EXPECT_EQ(scales[4], 1);
  EXPECT_EQ(scales[2], 1);
}

TEST(FlatClip, NeverLeavesMoreThanTheClip) {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> size(0, 3);
  model::GroupNorms norms{.groups = 3, .units = 5000, .squared = {}};
  for (size_t i = 0; i < 15000; ++i) norms.squared.push_back(static_cast<float>(size(random)));
  const auto scales = ScalesOf(FlatClip(0.7), norms);
  for (size_t u = 0; u < norms.units; ++u) {
    double squared = 0;
    for (size_t g = 0; g < 3; ++g) squared += norms.squared[g * norms.units + u];
    const double clipped = scales[u] * std::sqrt(squared);
    EXPECT_LE(clipped, 0.7);
    EXPECT_GE(clipped, std::min(0.7, std::sqrt(squared)) * (1 - 3e-6));
  }
}

TEST(FlatClip, DropsAUnitWhoseNormIsNoNumber) {
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const model::GroupNorms norms{.groups = 2, .units = 2, .squared = {1, 1, bad, 1}};
    const auto scales = ScalesOf(FlatClip(10), norms);
    EXPECT_EQ(scales[0], 0);
    EXPECT_EQ(scales[2], 0);
    EXPECT_EQ(scales[1], 1);
  }
}

TEST(NoClip, NeedsNoNorms) {
  EXPECT_FALSE(NoClip().needs_norms());
  EXPECT_TRUE(FlatClip(1).needs_norms());
  const model::GroupNorms norms{.groups = 1, .units = 2, .squared = {100, 0}};
  EXPECT_EQ(ScalesOf(NoClip(), norms), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace tacit::mechanism
