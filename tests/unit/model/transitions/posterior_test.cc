#include "model/transitions/posterior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tacit::model::transitions {
namespace {

// The integral itself: Simpson over log w, as wide as the prior and as fine as the likelihood.
double Integral(double mean, double y, double s, double deviation) {
  const double middle = std::log(mean) - deviation * deviation / 2;
  const double low = middle - 12 * deviation,
               high = std::max(middle + 12 * deviation, std::log(std::fabs(y) + 20 * s));
  const int steps = 24'000;
  const double step = (high - low) / steps;
  const double offset = std::min(y, 0.0);
  double mass = 0, moment = 0;
  for (int i = 0; i <= steps; ++i) {
    const double x = low + step * i, w = std::exp(x);
    const double t = (x - middle) / deviation;
    const double z = (y - w) / s;
    const double share = (i == 0 || i == steps ? 1
                          : i % 2 == 1         ? 4
                                               : 2) *
                         std::exp(-t * t / 2 - z * z / 2 + offset * offset / (2 * s * s));
    mass += share;
    moment += share * w;
  }
  return moment / mass;
}

TEST(Posterior, IsTheIntegral) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<> uniform(0, 1);
  for (const double deviation : {1.0, 1.8, 2.5}) {
    const Posterior posterior(deviation);
    for (int i = 0; i < 40; ++i) {
      const double s = std::exp(6 * uniform(random) - 3);
      const double mean = s * std::exp(13 * uniform(random) - 9);
      const double y = s * (52 * uniform(random) - 5);
      const double exact = Integral(mean, y, s, deviation);
      EXPECT_NEAR(posterior.Mean(mean, y, s), exact, 0.01 * exact + 1e-4 * s)
          << "mean/s " << mean / s << " y/s " << y / s << " deviation " << deviation;
    }
  }
}

TEST(Posterior, WithoutNoiseItIsWhatWasSeen) {
  const Posterior posterior(1.8);
  EXPECT_EQ(posterior.Mean(3, 2.5, 0), 2.5);
  EXPECT_EQ(posterior.Mean(3, -1, 0), 0);
}

TEST(Posterior, ATinyMeanStaysTiny) {
  const Posterior posterior(1.8);
  EXPECT_NEAR(posterior.Mean(1e-9, 0.3, 1), 1e-9, 1e-11);
  EXPECT_EQ(posterior.Mean(0, 5, 1), 0);
  // And what the table ends with continues as before.
  EXPECT_NEAR(posterior.Mean(std::exp(-12.0), 1, 1), posterior.Mean(std::exp(-12.001), 1, 1), 1e-7);
}

TEST(Posterior, MoreSeenMeansMore) {
  const Posterior posterior(1.8);
  for (const double mean : {0.01, 1.0, 50.0}) {
    double before = 0;
    for (double y = -8; y < 80; y += 0.1) {
      const double now = posterior.Mean(mean, y, 1);
      EXPECT_GE(now, before - 0.02) << mean << ' ' << y;
      before = now;
    }
  }
}

}  // namespace
}  // namespace tacit::model::transitions
