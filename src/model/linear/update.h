#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/linear/columns.h"

// The update of the linear model from one release (docs/internals/model.md, linear): pure functions
// of released numbers, so that they cost nothing. Arrays hold a number for each value.
namespace tacit::model::linear {

// All are public constants: they are set before the data is seen.
struct UpdateOptions {
  // The contribution of an event. In a column of scale a, a value gets a * residual * input in its
  // sum and a * count_share * input^2 in its count.
  double count_share = 0.4;    // alpha
  double residual_most = 0.7;  // rho: residuals lie in [-rho, rho]
  double move_share = 0.3;     // beta: of the two sums that say how far to go
  double click_share = 0.3;    // gamma: of the number of clicks
  double scale_power = 0.05;   // a column's scale grows with its number of values to this power

  // Shares of r (1 - r), r being the click rate: p (1 - p) is less in the mean, since predictions
  // differ.
  double slope_share = 0.857, variance_share = 0.9;
  double drift = 0.1;           // q: share of the prior variance that a period adds
  double known_deviations = 2;  // a weight moves if its noised count has this many deviations

  // Variance of the difference between a number's neighbouring bins, in variances of its column.
  double bin_step = 1;

  double rate = 0.4;  // eta of the first move, unless columns say the same (FirstRate)
  double rate_most = 0.6;
  double explained_most = 2.2;  // variance of logits that columns of their own can explain
  double factor_least = 0.3, factor_most = 1.25;  // of eta's square, a period

  double prior = 0.1;  // V before any value was known
  double prior_least = 1e-4, prior_most = 0.3;

  double rate_least = 0.001;  // a rate lies this far from 0 and 1

  // A weight is short of this share of itself while other columns are not learnt yet.
  double short_share = 0.15;
};

// The factor of an event's residual y - p: the larger one of both outcomes is cut to rho, and the
// other as much. So the mean of a right prediction's residuals stays 0. (Cut to [-rho, rho] alone,
// they would make every prediction of a rare click too small.)
double ResidualFactor(double p, const UpdateOptions& options);

// The residuals at a click rate.
struct Curve {
  double slope = 0;     // h: how much a residual falls when its event's logit rises by 1
  double variance = 0;  // of a residual
};
Curve CurveAt(double rate, const UpdateOptions& options);

// The columns' scales a_j: (values of column j)^scale_power, their squares adding up to the number
// of columns.
std::vector<double> ColumnScales(const Columns& columns, const UpdateOptions& options);
// The longest contribution of an event, with any values and label: C, with C^2 = (alpha^2 +
// rho^2) J + J beta^2 rho^2 + beta^2 + gamma^2 for J columns.
double ContributionMost(size_t columns, const UpdateOptions& options);

// Noised sums of some values of a column, freed of the column's scale and shares.
struct ValueSums {
  std::span<const double> residual;  // S: residuals times inputs
  std::span<const double> count;     // N: squares of inputs; above 0
  double noise_variance = 0;         // tau^2: of the noise on S
  double count_noise_variance = 0;   // of the noise on N
};

// S / N summed over all values: the mean residual of their events, if each event has one of them.
// It is shrunk by what noise may have made of it, 1 / (1 + n tau^2 / (N h)^2) for n values: the
// sums of a period with hardly any events are noise, and so is their quotient. 0 unless the counts'
// sum is above 0 and above 4 deviations of its noise: over many such periods it would add up.
double MeanResidual(const ValueSums& sums, double slope);

// The period's click rate, by its noised numbers of clicks and of events. Where `deviation`, that
// of the noise on both, hides them, it is 1/2, as predicted by a model that knows nothing.
double ClickRate(double clicks, double events, double deviation, const UpdateOptions& options);
// The mean prediction at which events of this click rate have this mean residual.
double MeanPrediction(double rate, double mean_residual, const UpdateOptions& options);
// The bias moves by the difference of the two's logits.
double BiasMove(double rate, double mean_residual, const UpdateOptions& options);
// A period's click rate, its noised number of events, and the deviations of the noise on that and
// on the number of clicks.
struct NoisedRate {
  double rate = 0, events = 0;
  double clicks_deviation = 0, events_deviation = 0;
};
// The bias of a model without weights, whose predictions are all the click rate: its logit, shrunk
// by what noise may have made of it, as MeanResidual is.
double FirstBias(const NoisedRate& noised);

// A release's estimates: how far values' weights are off, and the variance of that.
struct Observed {
  std::vector<double> effect;  // o = S / (N h) - shift / h
  // R = (tau^2 + mean^2 nu^2 + N v) / (N h)^2, with v the variance of a residual and nu^2 that of
  // the noise on N, which counts as far as residuals have a mean to be taken off.
  std::vector<double> variance;
};
// `mean_residual` is what values of no effect have on average.
Observed Observe(const ValueSums& sums, double mean_residual, const Curve& curve);

// The running estimate of the variance of a column's weights, from observations whose R is at most
// 1.
struct Prior {
  double sum = 0, weight = 0;  // of (w + o)^2 - R, weighted by 1 / (R + .1)^2

  // Adds the values of a release. `weights` are those before it.
  void Add(std::span<const float> weights, const Observed& observed);
  // V_j, within the options' bounds.
  double Variance(const UpdateOptions& options) const;
};

// Some weights of a column.
struct Weights {
  std::span<float> weight;
  std::span<float> variance;  // P
  std::span<float> move;      // dw of the last move
  std::span<float> error;     // E
  // Periods since the last move; 0: never moved, the variance is then the prior's.
  std::span<const uint32_t> age;
};
// Moves weights by what was observed of them:
//   P = min(P + age q V, V);  K = P / (P + R);  dw = rate K o;  w += dw;  P = (1 - K) P.
// The rate does not enter P: what it damps is the columns' overlap, not what is known (Joseph's
// form of P would enter it, and overshoots). It does enter the variance of the weight's error,
// which begins at V:
//   E = (1 - rate K)^2 (E + surprise) + (rate K)^2 R.
void MoveWeights(const Observed& observed, double prior_variance, double rate,
                 const UpdateOptions& options, const Weights& weights);

// Takes the weights of a number's bins, from the lowest on, as observations of a function that
// walks at random from bin to bin, and sets them to its mean given all of them: the minimum of
//   sum_b (s_b - w_b)^2 / P_b + sum_b (s_b+1 - s_b)^2 / (bin_step V).
// A bin that many events had keeps its weight; a rare one leans on its neighbours. `variance`: P; 0
// of a bin that never moved, which is no observation.
void SmoothBins(std::span<const float> variance, double prior_variance,
                const UpdateOptions& options, std::span<float> weight);

// By how much observations are off beyond E and R, in the mean of the weights that moved before:
// what drift adds to their errors. 0 as long as chance explains it.
double Surprise(const Observed& observed, std::span<const float> error,
                std::span<const uint32_t> age);

// The deviation of a weight from the effect that it stands for.
double DeviationOf(float weight, float error, const UpdateOptions& options);

// The variance of logits, over `events` events, that a column's values come to when their weights
// move from 0 at a rate of 1: the mean of (K o)^2. `count`: N of each value.
double ExplainedVariance(const Observed& observed, std::span<const double> count, double events,
                         double prior_variance);
// The rate of the first move. No label is foretold by logits of a larger variance than
// `explained_most` (2.2: an AUC of .85), so columns that explain more one by one, `explained` in
// their sum, say the same, and each of them takes its share.
double FirstRate(double explained, const UpdateOptions& options);

// A release's sums over the moves of the period before. With d_i the sum of the moves of event i's
// values, cut to [-1, 1]:
struct MoveSums {
  double along = 0;             // T: residuals times d
  double square = 0;            // Q: squares of d
  double square_deviation = 0;  // of the noise on Q
};
// The next rate: along / (slope square) is Newton's step along the last move, negative where it
// went too far. The rate stays as it is while the noise hides `square`.
double NextRate(double rate, const MoveSums& sums, double slope, const UpdateOptions& options);

}  // namespace tacit::model::linear
