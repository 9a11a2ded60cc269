#include "audit/one_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "privacy/gaussian.h"
#include "support/golden.h"

namespace tacit::audit {
namespace {

double EpsilonOf(double mu, double delta) {
  return mu > 0 ? privacy::GaussianEpsilon(mu, Delta(delta)).value : 0;
}

Guesses Row(const std::vector<double>& row) {
  return {static_cast<uint64_t>(row[0]), static_cast<uint64_t>(row[1]),
          static_cast<uint64_t>(row[2])};
}

TEST(OneRun, EpsilonsAreThePublishedOnes) {
  for (const auto& row : testing::ReadGoldenNumbers("audit_one_run")) {
    const Guesses guesses = Row(row);
    EXPECT_NEAR(SteinkeEpsilon(guesses, row[3], 0.05), row[4], 1e-4 * std::max(1.0, row[4]));
    EXPECT_NEAR(EpsilonOf(CurveMu(guesses, 0.05), row[3]), row[5], 1e-4 * row[5]);
  }
}

TEST(OneRun, PValuesAreThePublishedOnes) {
  for (const auto& row : testing::ReadGoldenNumbers("audit_p_values"))
    EXPECT_NEAR(SteinkePValue(Row(row), row[3], row[4]), row[5], 1e-4 * row[5]) << row[2];
}

TEST(OneRun, EpsilonsOfAllGuessedArePublishedToo) {
  for (const auto& row : testing::ReadGoldenNumbers("audit_all_guessed")) {
    const auto m = static_cast<uint64_t>(row[0]), wrong = static_cast<uint64_t>(row[1]);
    EXPECT_NEAR(SteinkeEpsilon({m, m, m - wrong}, 0, 0.05), row[4], 1e-4);
  }
}

// The errors of all ranks add up to n Phi(-mu / 2), the errors of n guesses. Those that the peer
// finds by a grid of 10,000 points add up to less, by .02 % of 100 and by .04 % of 1,000: so its
// ln p is off by up to 6e-4 of itself and .006, its mu, which is to .01 in any case, by up to .012,
// and by .038 where no guess of 1,000 was wrong. Of 5,000 canaries it takes the 2,000 most telling
// ranks, and the next one's error for the rest: another bound.
TEST(OneRun, XiangIsNearThePublishedFigures) {
  for (const auto& row : testing::ReadGoldenNumbers("audit_all_guessed")) {
    const auto m = static_cast<uint64_t>(row[0]), wrong = static_cast<uint64_t>(row[1]);
    if (m > 1000) continue;
    const double log_p = std::log(row[2]);
    EXPECT_NEAR(std::log(XiangPValue({m, m, m - wrong}, 1)), log_p, 0.006 - 6e-4 * log_p);
    const bool far = m == 1000 && wrong == 0;
    EXPECT_NEAR(XiangMu({m, m, m - wrong}, 0.05), row[3], far ? 0.039 : 0.012) << m << wrong;
  }
}

// The errors of ranks by another road, a beta density over quantiles at 100,000 points: where no
// guess was wrong, the bound is the product of the ranks' chances to be right. Their sum is known.
TEST(OneRun, XiangIsThatOfAFineSumOverQuantiles) {
  constexpr double kMu = 1;
  constexpr uint64_t kRanks = 100;
  constexpr int kPoints = 100'000;
  const auto normal = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  const auto below = [&](double t) { return normal(t - kMu / 2) - normal(-t - kMu / 2); };
  std::vector<double> error(kRanks), weight(kRanks);
  double t = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double u = (i + 0.5) / kPoints;
    double high = t + 6;
    for (double low = t; high - low > 1e-12;) {
      const double middle = (low + high) / 2;
      (below(middle) < u ? low : high) = middle;
      t = low;
    }
    const double wrong = 1 / (1 + std::exp(kMu * t));
    for (uint64_t rank = 1; rank <= kRanks; ++rank) {
      const auto k = static_cast<double>(rank), n = static_cast<double>(kRanks);
      const double density = std::exp(std::lgamma(n + 1) - std::lgamma(k) - std::lgamma(n - k + 1) +
                                      (k - 1) * std::log(u) + (n - k) * std::log1p(-u));
      weight[rank - 1] += density;
      error[rank - 1] += density * wrong;
    }
  }
  double log_p = 0, sum = 0;
  for (uint64_t i = 0; i < kRanks; ++i) {
    log_p += std::log1p(-error[i] / weight[i]);
    sum += error[i] / weight[i];
  }
  EXPECT_NEAR(sum, kRanks * normal(-kMu / 2), 1e-4);
  EXPECT_NEAR(std::log(XiangPValue({kRanks, kRanks, kRanks}, kMu)), log_p, 1e-4);
}

// Independent guesses that are right with probability Phi(1/2) are 1-GDP. All of them right is more
// likely than what the means of order statistics give: why Xiang's bound judges nothing here.
TEST(OneRun, XiangIsBelowTheTruthOfGuessesWithoutAnError) {
  const double right = std::erfc(-0.5 / std::sqrt(2.0)) / 2;
  EXPECT_LT(XiangPValue({100, 100, 100}, 1), 0.5 * std::pow(right, 100));
}

// Oracle of the tail and of the sum beside it, in plain loops.
TEST(OneRun, PValueIsThatOfPlainLoops) {
  const auto naive = [](const Guesses& g, double epsilon, double delta) {
    const double p = 1 / (1 + std::exp(-epsilon));
    std::vector<double> pmf(g.guesses + 1);
    for (uint64_t k = 0; k <= g.guesses; ++k) {
      double choose = 1;
      for (uint64_t j = 0; j < k; ++j)
        choose *= static_cast<double>(g.guesses - j) / static_cast<double>(j + 1);
      pmf[k] = choose * std::pow(p, static_cast<double>(k)) *
               std::pow(1 - p, static_cast<double>(g.guesses - k));
    }
    const auto tail = [&](uint64_t k) {
      double sum = 0;
      for (; k <= g.guesses; ++k) sum += pmf[k];
      return sum;
    };
    double most = 0;
    for (uint64_t i = 1; i <= g.right; ++i)
      most = std::max(most, (tail(g.right - i) - tail(g.right)) / static_cast<double>(i));
    return std::min(1.0, tail(g.right) + 2 * static_cast<double>(g.canaries) * delta * most);
  };
  for (const uint64_t right : {0, 3, 11, 17, 20})
    for (const double epsilon : {0.0, 0.4, 2.0})
      for (const double delta : {0.0, 1e-4, 1e-2}) {
        const Guesses g{50, 20, right};
        EXPECT_NEAR(SteinkePValue(g, epsilon, delta), naive(g, epsilon, delta), 1e-12);
      }
}

TEST(OneRun, ProvesNothingOfNothing) {
  EXPECT_EQ(SteinkeEpsilon({100, 0, 0}, 1e-5, 0.05), 0);
  EXPECT_EQ(CurveMu({100, 0, 0}, 0.05), 0);
  EXPECT_EQ(CurveMu({100, 100, 50}, 0.05), 0);
  EXPECT_EQ(XiangMu({100, 100, 50}, 0.05), 0);
}

}  // namespace
}  // namespace tacit::audit
