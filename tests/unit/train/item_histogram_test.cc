#include "train/counts/item_histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/sequence/popularity.h"
#include "support/silent_noise.h"

namespace tacit::train {
namespace {

constexpr uint32_t kItems = 30;
constexpr double kNone = std::numeric_limits<double>::infinity();

// Everybody has four items: half of them item 3 among these.
TEST(ItemHistogram, SharesAreChancesAndLogitsTheirLogarithms) {
  model::Histories histories{.items = {}, .end = {}, .catalogue = kItems};
  for (uint32_t who = 0; who < 100; ++who) {
    for (const uint32_t item : {29u, 3 + who % 2, 5u, 6u, 7u, 7u}) histories.items.push_back(item);
    histories.end.push_back(histories.items.size());
  }
  const std::vector<uint32_t> known(100, 1);
  noise::SilentNoise silence;
  const auto histogram = ReleaseItems(histories, known, 10, kNone, silence);
  EXPECT_EQ(histogram.stddev, 0);
  const auto shares = model::ItemShares(histogram.sums, 100);
  EXPECT_NEAR(shares[3], 0.5, 1e-5);
  EXPECT_NEAR(shares[5], 1, 1e-5);
  EXPECT_EQ(shares[29], 0) << "it is from before";
  model::RunningItems running(kItems);
  for (int times = 0; times < 2; ++times) running.Add(histogram.sums, histogram.stddev, 100, 0.5);
  const auto logits = running.Logits();
  EXPECT_NEAR(logits[4], std::log(0.5), 1e-4);
  EXPECT_NEAR(logits[29], std::log(1 / 150.0), 1e-4) << "one of 150: what was counts for half";
  // The same items, with noise of 10 in sums of 50 and 25.
  const auto noised = ReleaseItems(histories, known, 10, 0.1, silence);
  EXPECT_NEAR(noised.charge.MuSquared(), 0.01, 1e-12);
  model::RunningItems rough(kItems);
  rough.Add(noised.sums, noised.stddev, 100, 1);
  EXPECT_NEAR(rough.Logits()[29], std::log(10 * 2.0 / 100), 1e-4) << "a deviation";
  rough.Add(noised.sums, noised.stddev, 100, 1);
  EXPECT_NEAR(rough.Logits()[29], std::log(10 * std::sqrt(2) * 2.0 / 200), 1e-4);
}

}  // namespace
}  // namespace tacit::train
