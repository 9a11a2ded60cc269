#include "audit/judgement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "privacy/gaussian.h"

namespace tacit::audit {
namespace {

using privacy::CountedEvent;
using privacy::Event;

// ln of the likelihood ratio of runs that cost `mu`.
RunStatistics Gaussians(double mu, uint64_t runs, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  RunStatistics statistics;
  for (uint64_t i = 0; i < runs; ++i) {
    statistics.without.push_back(mu * normal(random) - mu * mu / 2);
    statistics.with.push_back(mu * normal(random) + mu * mu / 2);
  }
  return statistics;
}

// The same of sampled steps.
RunStatistics SampledSteps(double noise, double rate, uint64_t steps, uint64_t runs,
                           std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::bernoulli_distribution coin(rate);
  const auto run = [&](bool canary) {
    double ratio = 0;
    for (uint64_t i = 0; i < steps; ++i) {
      const double seen = noise * normal(random) + (canary && coin(random) ? 1 : 0);
      ratio += std::log1p(rate * std::expm1((seen - 0.5) / (noise * noise)));
    }
    return ratio;
  };
  RunStatistics statistics;
  for (uint64_t i = 0; i < runs; ++i) {
    statistics.without.push_back(run(false));
    statistics.with.push_back(run(true));
  }
  return statistics;
}

std::vector<CountedEvent> GaussianOf(double mu) { return {{Event::Gaussian(1 / mu), 1}}; }

constexpr int kJudged = 2000;
const double kMostWrong = 0.05 + 4 * std::sqrt(0.05 * 0.95 / kJudged);

TEST(Judgement, IsFalseAsRarelyAsItSays) {
  std::mt19937_64 random(1);
  int leaked = 0, above = 0;
  for (int i = 0; i < kJudged; ++i) {
    std::normal_distribution<double> normal;
    RunStatistics nothing;
    for (int run = 0; run < 300; ++run) {
      nothing.without.push_back(normal(random));
      nothing.with.push_back(normal(random));
    }
    leaked += JudgeRuns(nothing, 60, GaussianOf(1), 1e-5, 0.05)->proved_mu > 0;
    above += JudgeRuns(Gaussians(1, 300, random), 60, GaussianOf(1), 1e-5, 0.05)->exceeds;
  }
  EXPECT_LE(leaked, kMostWrong * kJudged);
  EXPECT_LE(above, 0.05 * kJudged);
}

TEST(Judgement, ReachesNearlyAllOfAGaussian) {
  std::mt19937_64 random(2);
  for (const double mu : {0.268, 1.0, 3.0}) {
    const auto judged = JudgeRuns(Gaussians(mu, 20'000, random), 2000, GaussianOf(mu), 1e-5, 0.05);
    EXPECT_FALSE(judged->exceeds) << mu;
    EXPECT_GT(judged->proved_mu, 0.85 * mu);
    EXPECT_NEAR(judged->charged_mu, mu, 1e-9);
    EXPECT_NEAR(judged->area, std::erfc(-mu / 2) / 2, 0.02);
    EXPECT_NEAR(judged->allowed_accuracy, std::erfc(-mu / std::sqrt(8.0)) / 2, 1e-9);
    EXPECT_NEAR(judged->proved_epsilon,
                privacy::GaussianEpsilon(judged->proved_mu, Delta(1e-5)).value, 1e-9);
  }
}

TEST(Judgement, ReachesMostOfSampledSteps) {
  std::mt19937_64 random(3);
  const std::vector<CountedEvent> events = {{Event::PoissonGaussian(0.8, 0.2), 6}};
  const auto judged =
      JudgeRuns(SampledSteps(0.8, 0.2, 6, 20'000, random), 2000, events, 1e-5, 0.05);
  ASSERT_TRUE(judged.has_value()) << judged.error().message;
  EXPECT_FALSE(judged->exceeds);
  EXPECT_GT(judged->proved_epsilon, 0.7 * judged->charged_epsilon);
  EXPECT_LE(judged->proved_epsilon, judged->charged_epsilon);
}

// Planted: steps that take more than they are charged for.
TEST(Judgement, AccusesAChargeThatIsTooSmall) {
  std::mt19937_64 random(4);
  EXPECT_TRUE(JudgeRuns(Gaussians(1, 20'000, random), 2000, GaussianOf(0.9), 1e-5, 0.05)->exceeds);
  const std::vector<CountedEvent> less_noise = {{Event::PoissonGaussian(0.9, 0.2), 6}},
                                  lower_rate = {{Event::PoissonGaussian(0.8, 0.15), 6}},
                                  fewer_steps = {{Event::PoissonGaussian(0.8, 0.2), 4}};
  const RunStatistics runs = SampledSteps(0.8, 0.2, 6, 20'000, random);
  for (const auto& events : {less_noise, lower_rate, fewer_steps})
    EXPECT_TRUE(JudgeRuns(runs, 2000, events, 1e-5, 0.05)->exceeds);
}

// Planted: one run in fifty gives the canary away, which hardly moves the share of right answers.
TEST(Judgement, AccusesWhatIsRareButTelling) {
  std::mt19937_64 random(5);
  RunStatistics runs = Gaussians(0.2, 20'000, random);
  for (size_t i = 0; i < runs.with.size(); i += 50) runs.with[i] = 100;
  EXPECT_TRUE(JudgeRuns(runs, 2000, GaussianOf(0.5), 1e-5, 0.05)->exceeds);
}

// Guesses in one run of as many canaries, each right with this probability: how many of 2,000 runs
// the judge refutes.
int RefutedOf(double right, const std::function<bool(const Guesses&)>& refutes) {
  constexpr uint64_t kCanaries = 200;
  std::mt19937_64 random(6);
  std::binomial_distribution<uint64_t> guesses(kCanaries, right);
  std::map<uint64_t, bool> known;
  int refuted = 0;
  for (int i = 0; i < kJudged; ++i) {
    const uint64_t seen = guesses(random);
    if (!known.contains(seen)) known[seen] = refutes({kCanaries, kCanaries, seen});
    refuted += known[seen] ? 1 : 0;
  }
  return refuted;
}

// A mechanism that is (1, 0)-DP and no more lets guesses be right with probability e / (1 + e). Its
// own curve refutes it at the stated rate; the Gaussian curve through the same epsilon at the same
// delta, which another judge would take, accuses it nearly always.
TEST(Judgement, OneRunIsHeldAgainstTheChargesOwnCurve) {
  const std::vector<CountedEvent> charge = {{Event::PureDp(1), 1}};
  const double right = 1 / (1 + std::exp(-1));
  const auto own = [&](const Guesses& guesses) {
    const auto refuted = RefutedInOneRun(charge, guesses, 0.05);
    EXPECT_TRUE(refuted.has_value()) << refuted.error().message;
    return refuted.value_or(true);
  };
  EXPECT_LE(RefutedOf(right, own), kMostWrong * kJudged);
  const double mu = privacy::GaussianMu(Epsilon(1), Delta(1e-5));
  EXPECT_GT(RefutedOf(right, [&](const Guesses& guesses) { return CurveMu(guesses, 0.05) > mu; }),
            0.9 * kJudged);
  // Planted: guesses that are right more often than the charge lets them be.
  EXPECT_GT(RefutedOf(0.85, own), 0.9 * kJudged);
}

// The same of sampled steps: as many right as their best test has are no proof, all right are.
TEST(Judgement, OneRunOfSampledStepsIsHeldAgainstTheirCurve) {
  const std::vector<CountedEvent> charge = {{Event::PoissonGaussian(1.5, 0.2), 4}};
  const double accuracy = AllowedBy(charge, 1e-5)->accuracy;
  const auto right = static_cast<uint64_t>(200 * accuracy);
  EXPECT_FALSE(RefutedInOneRun(charge, {200, 200, right}, 0.05).value());
  EXPECT_TRUE(RefutedInOneRun(charge, {200, 200, 200}, 0.05).value());
}

}  // namespace
}  // namespace tacit::audit
