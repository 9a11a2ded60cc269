// The update of the linear model: each term against its formula, and all of it, period after
// period, against an oracle in double written from the formulas; with the mistakes that such
// updates have been seen to make planted, and found.
#include "model/linear/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "model/linear/state.h"

namespace tacit::model::linear {
namespace {

constexpr UpdateOptions kOptions;
constexpr double kSlope = 0.15;

Columns ThreeColumns() {
  return Columns({{.name = "a", .rows = 2}, {.name = "b", .rows = 1024}}, {{.name = "n"}});
}

TEST(LinearUpdate, ScalesGrowWithValuesAndAddUpToTheColumns) {
  const Columns columns = ThreeColumns();
  const std::vector<double> scales = ColumnScales(columns, kOptions);
  ASSERT_EQ(scales.size(), 3u);
  double squares = 0;
  for (const double scale : scales) squares += scale * scale;
  EXPECT_NEAR(squares, 3, 1e-12);
  EXPECT_NEAR(scales[1] / scales[0], std::pow(512, 0.05), 1e-12);
  EXPECT_NEAR(scales[2] / scales[0], std::pow(20, 0.05), 1e-12);
}

TEST(LinearUpdate, AContributionIsAsLongAsItsFormula) {
  // C^2 = (.16 + .49) 39 + 39 * .09 * .49 + .09 + .09
  EXPECT_NEAR(ContributionMost(39, kOptions), std::sqrt(25.35 + 1.7199 + 0.18), 1e-12);
}

TEST(LinearUpdate, TheMeanResidualIsSumsOverCounts) {
  const std::vector<double> residual = {30, -10, 4}, count = {100, 60, 40};
  EXPECT_NEAR(MeanResidual({.residual = residual, .count = count}, kSlope), 24.0 / 200, 1e-12);
  const std::vector<double> nobody = {-3, 1, 1};
  EXPECT_EQ(MeanResidual({.residual = residual, .count = nobody}, kSlope), 0);
}

// A right prediction's residual is 0 in the mean, for any value, and no outcome exceeds rho. Cut
// to
// [-rho, rho] alone, the mean would be below 0 for a rare click: the planted fault.
TEST(LinearUpdate, ARightPredictionsResidualIsNothingInTheMean) {
  double farthest_cut = 0;
  for (double p = 0.001; p < 1; p += 0.001) {
    const double factor = ResidualFactor(p, kOptions);
    const double clicked = (1 - p) * factor, passed = -p * factor;
    EXPECT_NEAR(p * clicked + (1 - p) * passed, 0, 1e-12);
    EXPECT_LE(std::max(clicked, -passed), kOptions.residual_most * (1 + 1e-12));
    const double cut = p * std::min(1 - p, 0.7) - (1 - p) * std::min(p, 0.7);
    farthest_cut = std::max(farthest_cut, std::abs(cut) / std::min(p, 1 - p));
  }
  EXPECT_EQ(ResidualFactor(0.5, kOptions), 1);
  EXPECT_GT(farthest_cut, 0.25) << "a quarter of a rare click's rate";
}

TEST(LinearUpdate, TheBiasTakesTheMeanPredictionToTheClickRate) {
  // A model that knows nothing predicts 1/2 for all: its residuals and the rate are then one
  // figure.
  for (const double rate : {0.01, 0.2, 0.5, 0.9})
    EXPECT_NEAR(BiasMove(rate, rate - 0.5, kOptions), std::log(rate / (1 - rate)), 1e-9) << rate;
  EXPECT_NEAR(BiasMove(0.3, 0, kOptions), 0, 1e-9);
  // So its bias needs the rate alone.
  for (const double rate : {0.01, 0.2, 0.9})
    EXPECT_NEAR(FirstBias({.rate = rate, .events = 100}), BiasMove(rate, rate - 0.5, kOptions),
                1e-9)
        << rate;
  // 1,000 events, 200 clicks: noise of 40 and .2 * 150 makes a variance of the logit of .0977.
  EXPECT_NEAR(
      FirstBias({.rate = 0.2, .events = 1000, .clicks_deviation = 40, .events_deviation = 150}),
      std::log(0.25) / (1 + (1600 + 900) / 25600.0), 1e-12);
  // Events of one prediction, whose residuals are scaled as it says.
  for (const double p : {0.02, 0.4, 0.97})
    EXPECT_NEAR(MeanPrediction(0.25, (0.25 - p) * ResidualFactor(p, kOptions), kOptions), p, 1e-9);
}

// The first bias of nobody's events is noise. The rate's logit alone would be as far as it can be.
TEST(LinearUpdate, NoiseAloneHardlySetsTheFirstBias) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (const double clicks_deviation : {20.0, 100.0, 300.0}) {
    double farthest = 0, farthest_logit = 0;
    for (int period = 0; period < 10'000; ++period) {
      const double clicks = clicks_deviation * normal(random), events = 100 * normal(random);
      const double rate = ClickRate(clicks, events, 100, kOptions);
      farthest = std::max(farthest, std::abs(FirstBias({.rate = rate,
                                                        .events = events,
                                                        .clicks_deviation = clicks_deviation,
                                                        .events_deviation = 100})));
      farthest_logit = std::max(farthest_logit, std::abs(std::log(rate / (1 - rate))));
    }
    EXPECT_LT(farthest, 2) << clicks_deviation;
    EXPECT_GT(farthest_logit, clicks_deviation > 50 ? 3 : 0.7);
  }
}

TEST(LinearUpdate, TheClickRateIsOneHalfWhereNoiseHidesIt) {
  EXPECT_NEAR(ClickRate(400, 10'000, 0, kOptions), 0.04, 1e-12);
  EXPECT_NEAR(ClickRate(400, 10'000, 100, kOptions), 450.0 / 10'100, 1e-12);
  EXPECT_NEAR(ClickRate(0, 0, 80, kOptions), 0.5, 1e-12);
  EXPECT_NEAR(ClickRate(0, 0, 0, kOptions), 0.5, 1e-12);
  EXPECT_EQ(ClickRate(-50, 1e6, 80, kOptions), kOptions.rate_least);
  EXPECT_EQ(ClickRate(1e6, -500, 80, kOptions), 1 - kOptions.rate_least);
}

TEST(LinearUpdate, TheCurveIsThatOfTheClickRate) {
  const Curve quarter = CurveAt(0.25, kOptions);
  EXPECT_NEAR(quarter.slope, 0.857 * 0.25 * 0.75 * 0.7 / 0.75, 1e-12);
  EXPECT_NEAR(quarter.variance, 0.9 * 0.25 * 0.75 * 0.49 / 0.5625, 1e-12);
  EXPECT_NEAR(quarter.slope, 0.15, 1e-3) << "what the constants were found with";
  EXPECT_NEAR(CurveAt(0.02, kOptions).slope, CurveAt(0.98, kOptions).slope, 1e-12);
  EXPECT_LT(CurveAt(0.02, kOptions).slope, 0.1 * quarter.slope) << "rare clicks say less a unit";
}

// Sums of nobody's events are noise. Their quotient alone would move the bias by any amount.
TEST(LinearUpdate, NoiseAloneHardlyMovesTheBias) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const double deviation = 25;
  double farthest = 0, farthest_quotient = 0;
  for (int period = 0; period < 10'000; ++period) {
    std::vector<double> residual, count;
    for (int v = 0; v < 16; ++v) {
      residual.push_back(deviation * normal(random));
      count.push_back(deviation / kOptions.count_share * normal(random));
    }
    const ValueSums noise{
        .residual = residual, .count = count, .noise_variance = deviation * deviation};
    const ValueSums silent{.residual = residual, .count = count};
    farthest = std::max(farthest, std::abs(MeanResidual(noise, kSlope)));
    farthest_quotient = std::max(farthest_quotient, std::abs(MeanResidual(silent, kSlope)));
  }
  EXPECT_LT(farthest, 0.75);
  EXPECT_GT(farthest_quotient, 300);
  // Next to nothing is taken from sums twenty times as large as their noise.
  const std::vector<double> residual = {400}, count = {20 * deviation / kSlope};
  const double mean = MeanResidual(
      {.residual = residual, .count = count, .noise_variance = deviation * deviation}, kSlope);
  EXPECT_NEAR(mean, 400 / count[0] / (1 + 1 / 400.0), 1e-12);
}

TEST(LinearUpdate, AnObservationIsTheResidualOverTheCurvature) {
  const std::vector<double> residual = {30, -5}, count = {400, 50};
  const Observed observed = Observe({.residual = residual,
                                     .count = count,
                                     .noise_variance = 8,
                                     .count_noise_variance = 1 / 0.0009},
                                    0.03, {.slope = 0.15, .variance = 0.12});
  EXPECT_NEAR(observed.effect[0], 30 / 60.0 - 0.03 / 0.15, 1e-12);
  EXPECT_NEAR(observed.effect[1], -5 / 7.5 - 0.03 / 0.15, 1e-12);
  EXPECT_NEAR(observed.variance[0], (9 + 48) / 3600.0, 1e-12);
  EXPECT_NEAR(observed.variance[1], (9 + 6) / (7.5 * 7.5), 1e-12);
}

// A column's prior variance is that of its weights, for any noise of their observations.
TEST(LinearUpdate, ThePriorIsTheVarianceOfTheWeights) {
  EXPECT_EQ(Prior().Variance(kOptions), kOptions.prior);
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const double variance : {0.01, 0.2}) {
    Prior prior;
    for (int period = 0; period < 5; ++period) {
      std::vector<float> weights;
      Observed observed;
      for (int i = 0; i < 20'000; ++i) {
        const double truth = std::sqrt(variance) * normal(random);
        weights.push_back(static_cast<float>(0.3 * truth));
        observed.variance.push_back(i % 2 ? 0.02 : 1.0);
        observed.effect.push_back(0.7 * truth +
                                  std::sqrt(observed.variance.back()) * normal(random));
      }
      prior.Add(weights, observed);
    }
    EXPECT_NEAR(prior.Variance(kOptions), variance, 0.05 * variance + 0.002);
  }
  // Rare values' observations are known less well than their effects are large: two percent of an R
  // of 6 would hide a variance of .03.
  Prior prior;
  std::vector<float> weights(20'000);
  Observed observed;
  for (size_t i = 0; i < weights.size(); ++i) {
    observed.variance.push_back(i < 200 ? 0.05 : 6);
    const double variance = i < 200 ? 0.05 : 0.98 * 6;
    observed.effect.push_back(std::sqrt(variance + 0.03) * normal(random));
  }
  prior.Add(weights, observed);
  EXPECT_NEAR(prior.Variance(kOptions), 0.03, 0.02);
  // Bounds.
  EXPECT_EQ((Prior{.sum = -1, .weight = 2}).Variance(kOptions), kOptions.prior_least);
  EXPECT_EQ((Prior{.sum = 5, .weight = 2}).Variance(kOptions), kOptions.prior_most);
}

struct One {
  float weight, variance, move;
  float error = 0;
};
One MoveOne(One at, uint32_t age, double effect, double noise, double prior, double rate) {
  MoveWeights({.effect = {effect}, .variance = {noise}}, prior, rate, kOptions,
              {std::span(&at.weight, 1), std::span(&at.variance, 1), std::span(&at.move, 1),
               std::span(&at.error, 1), std::span(&age, 1)});
  return at;
}

TEST(LinearUpdate, AWeightMovesByItsGain) {
  const One moved = MoveOne({.weight = 0.5, .variance = 0.05, .move = 9}, 1, 0.4, 0.1, 0.2, 0.4);
  const double drifted = 0.05 + 0.1 * 0.2, gain = drifted / (drifted + 0.1);
  EXPECT_NEAR(moved.move, 0.4 * gain * 0.4, 1e-7);
  EXPECT_NEAR(moved.weight, 0.5 + 0.4 * gain * 0.4, 1e-7);
  EXPECT_NEAR(moved.variance, (1 - gain) * drifted, 1e-7);
}

TEST(LinearUpdate, AWeightThatNeverMovedHasThePriorsVariance) {
  const One moved = MoveOne({}, 0, 1, 0.1, 0.2, 1);
  EXPECT_NEAR(moved.weight, 0.2 / 0.3, 1e-7);
  EXPECT_NEAR(moved.variance, 0.2 / 3, 1e-7);
}

TEST(LinearUpdate, DriftAddsUpOverPeriodsAndEndsAtThePrior) {
  const auto variance_before = [](uint32_t age) {
    // The variance of this observation is so large that nothing is learnt.
    return MoveOne({.weight = 0, .variance = 0.05, .move = 0}, age, 0, 1e12, 0.2, 1).variance;
  };
  EXPECT_NEAR(variance_before(1), 0.07, 1e-6);
  EXPECT_NEAR(variance_before(3), 0.11, 1e-6);
  EXPECT_NEAR(variance_before(8), 0.2, 1e-6);
  EXPECT_NEAR(variance_before(1'000'000), 0.2, 1e-6);
}

// The planted fault is Joseph's form of P for a damped gain: it takes the damping for ignorance.
TEST(LinearUpdate, TheRateDoesNotEnterTheVariance) {
  const One slow = MoveOne({}, 0, 1, 0.1, 0.2, 0.1), fast = MoveOne({}, 0, 1, 0.1, 0.2, 0.6);
  EXPECT_EQ(slow.variance, fast.variance);
  const double gain = 0.1 * 0.2 / 0.3;
  const double joseph = (1 - gain) * (1 - gain) * 0.2 + gain * gain * 0.1;
  EXPECT_GT(std::abs(slow.variance - joseph), 0.05);
}

TEST(LinearUpdate, WhatAColumnExplainsIsTheVarianceOfItsShrunkEffects) {
  // Gains of 1/2 and 1/4 of two values, seen in 300 and 100 of 500 events.
  const Observed observed{.effect = {0.8, -2}, .variance = {0.1, 0.3}};
  const std::vector<double> count = {300, 100};
  EXPECT_NEAR(ExplainedVariance(observed, count, 500, 0.1), (300 * 0.16 + 100 * 0.25) / 500, 1e-12);
  EXPECT_EQ(ExplainedVariance(observed, count, -3, 0.1), 0) << "noise may say that nothing came";
}

TEST(LinearUpdate, TheFirstRateIsSharedByColumnsThatExplainTooMuch) {
  EXPECT_EQ(FirstRate(0, kOptions), kOptions.rate);
  EXPECT_EQ(FirstRate(kOptions.explained_most, kOptions), kOptions.rate);
  EXPECT_NEAR(FirstRate(4 * kOptions.explained_most, kOptions), kOptions.rate / 4, 1e-12);
}

TEST(LinearUpdate, TheRateFollowsNewtonsStepAlongTheLastMove) {
  const auto next = [](double rate, double along, double square, double deviation = 1) {
    return NextRate(rate, {.along = along, .square = square, .square_deviation = deviation}, kSlope,
                    kOptions);
  };
  EXPECT_NEAR(next(0.4, 0, 1000), 0.4, 1e-12);
  EXPECT_NEAR(next(0.4, 0.1 * 150, 1000), 0.4 * std::sqrt(1.1), 1e-12);
  EXPECT_NEAR(next(0.4, -0.5 * 150, 1000), 0.4 * std::sqrt(0.5), 1e-12) << "it went too far";
  EXPECT_NEAR(next(0.4, -5 * 150, 1000), 0.4 * std::sqrt(0.3), 1e-12);
  EXPECT_NEAR(next(0.4, 5 * 150, 1000), 0.4 * std::sqrt(1.25), 1e-12);
  EXPECT_EQ(next(0.58, 5 * 150, 1000), 0.6);
  EXPECT_EQ(next(0.4, 150, 1000, 501), 0.4) << "noise alone says nothing";
  EXPECT_EQ(next(0.4, 150, -3, 0), 0.4);
}

// The whole update in double, from the formulas. The faults are those of section "traps".
enum class Fault { kNone, kSmoothedCounts, kJoseph, kNoShift, kDampedVariance, kOneSlopeForAll };
struct Oracle {
  explicit Oracle(size_t values) : w(values), P(values), last(values), mean_count(values) {}

  void Step(const std::vector<double>& S, const std::vector<double>& N, double tau2, double known,
            double eta, Fault fault, double rate = 0.1) {
    const double q = 0.1;
    ++period;
    double sum_s = 0, sum_n = 0;
    for (size_t v = 0; v < w.size(); ++v) {
      sum_s += S[v];
      sum_n += N[v];
      mean_count[v] += (N[v] - mean_count[v]) / static_cast<double>(period);
    }
    const double f = std::min(1.0, 0.7 / std::max(rate, 1 - rate));
    const double h = fault == Fault::kOneSlopeForAll ? 0.15 : 0.857 * rate * (1 - rate) * f;
    const double v = 0.9 * rate * (1 - rate) * f * f;
    const double noise = static_cast<double>(w.size()) * tau2 / (sum_n * h * sum_n * h);
    const double shift = fault == Fault::kNoShift ? 0 : sum_s / sum_n / (1 + noise);
    std::vector<double> o(w.size()), R(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      if (!(N[i] > known)) continue;
      const double n = fault == Fault::kSmoothedCounts ? std::max(mean_count[i], 1.0) : N[i];
      o[i] = S[i] / (n * h) - shift / h;
      R[i] = (tau2 + n * v) / ((n * h) * (n * h));
      const double trust = 1 / ((R[i] + 0.1) * (R[i] + 0.1));
      numerator += trust * ((w[i] + o[i]) * (w[i] + o[i]) - R[i]);
      denominator += trust;
    }
    V = std::min(std::max(numerator / denominator, 1e-4), 0.3);
    for (size_t v = 0; v < w.size(); ++v) {
      if (!(N[v] > known)) continue;
      const double gone = static_cast<double>(period - last[v]);
      const double before = last[v] == 0 ? V : std::min(P[v] + gone * q * V, V);
      const double K = before / (before + R[v]);
      w[v] += eta * K * o[v];
      P[v] = (1 - K) * before;
      if (fault == Fault::kJoseph)
        P[v] = (1 - eta * K) * (1 - eta * K) * before + eta * K * eta * K * R[v];
      if (fault == Fault::kDampedVariance) P[v] = (1 - eta * K) * before;
      last[v] = period;
    }
  }

  std::vector<double> w, P;
  std::vector<uint64_t> last;
  std::vector<double> mean_count;
  double V = 0, numerator = 0, denominator = 0;
  uint64_t period = 0;
};

// The functions as a learner calls them, on one column.
struct Subject {
  explicit Subject(size_t values) : w(values), P(values), move(values), last(values) {}

  void Step(const std::vector<double>& S, const std::vector<double>& N, double tau2, double known,
            double eta) {
    ++period;
    const Curve curve = CurveAt(0.1, kOptions);
    const double mean =
        MeanResidual({.residual = S, .count = N, .noise_variance = tau2}, curve.slope);
    std::vector<size_t> at;
    std::vector<double> residual, count;
    for (size_t v = 0; v < w.size(); ++v) {
      if (!(N[v] > known)) continue;
      at.push_back(v);
      residual.push_back(S[v]);
      count.push_back(N[v]);
    }
    const Observed observed =
        Observe({.residual = residual, .count = count, .noise_variance = tau2}, mean, curve);
    std::vector<float> weight, variance, moved(at.size()), error(at.size());
    std::vector<uint32_t> age;
    for (const size_t v : at) {
      weight.push_back(w[v]);
      variance.push_back(P[v]);
      age.push_back(last[v] == 0 ? 0 : period - last[v]);
    }
    prior.Add(weight, observed);
    MoveWeights(observed, prior.Variance(kOptions), eta, kOptions,
                {weight, variance, moved, error, age});
    for (size_t i = 0; i < at.size(); ++i) {
      w[at[i]] = weight[i];
      P[at[i]] = variance[i];
      move[at[i]] = moved[i];
      last[at[i]] = period;
    }
  }

  std::vector<float> w, P, move;
  std::vector<uint32_t> last;
  Prior prior;
  uint32_t period = 0;
};

// Largest difference of weights and variances after some periods of noised sums, in which values
// come and go.
double FarthestFrom(Fault fault) {
  constexpr size_t kValues = 400;
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  Oracle oracle(kValues);
  Subject subject(kValues);
  std::vector<double> truth(kValues);
  for (double& t : truth) t = 0.5 * normal(random);
  double farthest = 0;
  for (int period = 0; period < 8; ++period) {
    const double tau = 12, known = 60, eta = 0.4 + 0.02 * period;
    std::vector<double> S, N;
    for (size_t v = 0; v < kValues; ++v) {
      const double events = random() % 3 == 0 ? 0 : std::exp(8 * (random() % 1000) / 1000.0);
      N.push_back(events + 30 * normal(random));
      S.push_back(0.15 * events * (truth[v] - subject.w[v] + 0.4) + tau * normal(random));
    }
    oracle.Step(S, N, tau * tau, known, eta, fault);
    subject.Step(S, N, tau * tau, known, eta);
    for (size_t v = 0; v < kValues; ++v)
      farthest = std::max(
          {farthest, std::abs(oracle.w[v] - subject.w[v]), std::abs(oracle.P[v] - subject.P[v])});
  }
  return farthest;
}

TEST(LinearUpdate, IsTheOraclesOverPeriods) { EXPECT_LT(FarthestFrom(Fault::kNone), 1e-5); }

TEST(LinearUpdate, TheOracleFindsFaults) {
  for (const Fault fault : {Fault::kSmoothedCounts, Fault::kJoseph, Fault::kNoShift,
                            Fault::kDampedVariance, Fault::kOneSlopeForAll})
    EXPECT_GT(FarthestFrom(fault), 1e-2) << static_cast<int>(fault);
}

// Sums and counts are of one release. Divided by a count that is a mean over periods, a new value's
// residual would be several times what it is.
TEST(LinearUpdate, ANewValueMovesByItsOwnCount) {
  const auto move = [](Fault fault) {
    Oracle oracle(2);
    for (int period = 0; period < 3; ++period)
      oracle.Step({0, 0}, {5000, 0}, 1, 20, 1, Fault::kNone);
    oracle.Step({0, 150}, {5000, 1000}, 1, 20, 1, fault);
    return oracle.w[1];
  };
  Subject subject(2);
  for (int period = 0; period < 3; ++period) subject.Step({0, 0}, {5000, 0}, 1, 20, 1);
  subject.Step({0, 150}, {5000, 1000}, 1, 20, 1);
  EXPECT_NEAR(subject.w[1], move(Fault::kNone), 1e-6);
  EXPECT_GT(move(Fault::kSmoothedCounts), 3 * subject.w[1]);
}

// The minimum: no bin can be moved without the sum of squares growing. A bin that is not observed
// is left alone and pulls nothing; what is observed well stays.
TEST(LinearUpdate, SmoothedBinsAreTheMinimum) {
  const UpdateOptions options;
  const double V = 0.05;
  const std::vector<float> seen = {0.5f, -0.2f, 0, 0.7f, 0.1f},
                           variance = {0.03f, 1e-6f, 0, 0.2f, 0.01f};
  std::vector<float> smooth = seen;
  SmoothBins(variance, V, options, smooth);
  EXPECT_EQ(smooth[2], 0) << "no observation";
  EXPECT_NEAR(smooth[1], seen[1], 1e-4);
  EXPECT_GT(smooth[3], 0.1);
  EXPECT_LT(smooth[3], 0.6) << "it leans on its neighbours";
  const auto squares = [&](const std::vector<double>& s) {
    double sum = 0;
    for (size_t b = 0; b < s.size(); ++b) {
      if (variance[b] > 0) sum += (s[b] - seen[b]) * (s[b] - seen[b]) / variance[b];
      if (b > 0) sum += (s[b] - s[b - 1]) * (s[b] - s[b - 1]) / V;
    }
    return sum;
  };
  std::vector<double> best(smooth.begin(), smooth.end());
  best[2] = (best[1] + best[3]) / 2;  // where an unobserved bin would be
  for (size_t b = 0; b < best.size(); ++b)
    for (const double by : {-0.01, 0.01}) {
      std::vector<double> other = best;
      other[b] += by;
      EXPECT_GT(squares(other), squares(best)) << b;
    }
  std::vector<float> alone = {0.3f};
  SmoothBins(std::vector<float>{0.1f}, V, options, alone);
  EXPECT_NEAR(alone[0], 0.3f, 1e-5);
}

TEST(LinearState, SurvivesEncoding) {
  const Columns columns = ThreeColumns();
  State state{.periods = 7, .bias = -1.25, .rate = 0.375, .priors = {}};
  for (const double x : {1.0, -2.0, 3.0}) state.priors.push_back({x, 10 * x * x});
  const std::string bytes = state.Encode(columns);
  const auto again = State::Decode(bytes, columns);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->Encode(columns), bytes);
  EXPECT_EQ(again->periods, 7u);
  EXPECT_EQ(again->bias, -1.25);
  EXPECT_EQ(again->priors[2].weight, 90);
}

TEST(LinearState, DamagedBytesAreRefused) {
  const Columns columns = ThreeColumns();
  State state;
  state.priors.resize(columns.size());
  const std::string bytes = state.Encode(columns);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(State::Decode(bytes.substr(0, size), columns)) << size;
  EXPECT_FALSE(State::Decode(bytes + "x", columns));
  const Columns others({{.name = "a", .rows = 2}}, {});
  const auto other = State::Decode(bytes, others);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kCorruption);
  state.bias = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(State::Decode(state.Encode(columns), columns));
}

}  // namespace
}  // namespace tacit::model::linear
