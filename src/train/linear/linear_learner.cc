#include "train/linear/linear_learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/moving_average.h"
#include "model/linear/row.h"
#include "train/learner/step_phases.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;
using mechanism::ReleasedSums;
using mechanism::RowSums;

using linear::kError;
using linear::kEvents;
using linear::kMove;
using linear::kPeriod;
using linear::kVariance;
using linear::kWeight;

}  // namespace

LinearLearner::LinearLearner(const LinearLearnerOptions& options,
                             std::unique_ptr<noise::NoiseSource> noise, store::WorkingRows& rows,
                             WorkerPool& workers)
    : Learner(options.id, options.index),
      query_(options),
      opens_(options.opens),
      bins_(options.bins),
      charge_(LinearPeriodCharge(options)),
      noise_(std::move(noise)),
      rows_(rows),
      workers_(workers),
      sums_(query_, rows_, workers) {
  TACIT_CHECK(CheckLinear(options).has_value(), "no column tells the mean residual");
  state_.priors.resize(query_.columns->size());
}

// Previews of a period are its first parts; what is held out is not learnt from.
Status LinearLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  const bool part = batch.kind == stream::StepBatch::Kind::kPreview;
  return (batch.recount ? Recount() : sums_).See(batch, state_, part, report);
}

SliceSummer& LinearLearner::Recount() {
  if (!recount_) recount_.emplace(query_, rows_, workers_, bins_);
  return *recount_;
}

Result<PartFigures> LinearLearner::AddPart(std::string_view bytes) {
  auto figures = sums_.AddBytes(bytes, bins_);
  if (!figures) return Fail(std::move(figures.error()).Context(fmt::format("learner '{}'", id())));
  return figures;
}

Result<bool> LinearLearner::EndRecount(std::string_view bytes) {
  LinearPart part = Recount().TakePart();
  recount_.reset();
  const bool same = bytes.empty() || part.Encode() == bytes;
  sums_.Add(std::move(part));
  return same;
}

Result<bool> LinearLearner::TakeStep(const stream::StepBatch& step,
                                     const std::atomic<bool>& abandon, StepReport* report) {
  if (step.kind != stream::StepBatch::Kind::kOnce)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("learner '{}': a linear model learns by participation `once`", id()));
  PhaseTimer timer;
  timer.Enter(StepPhase::kGradients);
  TACIT_RETURN_IF_ERROR(sums_.See(step, state_, true, report));
  if (abandon) {
    sums_.Abandon();
    return false;
  }
  RowSums period = sums_.Take(report);
  // From here on the period is released, and charged.
  timer.Enter(StepPhase::kRelease);
  const double deviation = period.deviation();
  ReleasedSums released = std::move(period).Release(*noise_);
  timer.Enter(StepPhase::kUpdate);
  TACIT_ASSIGN(report->rows_written, Update(released, deviation));
  report->row_floats_written = report->rows_written;
  sums_.Keep(std::move(released));
  changed_ = true;
  report->phases = timer.Take();
  return true;
}

// Tells the period from the smallest whole column, whose values all events have.
LinearLearner::Period LinearLearner::PeriodOf(const ReleasedSums& released,
                                              double deviation) const {
  const linear::UpdateOptions& update = query_.update;
  const size_t column = query_.WholeColumn();
  const Known all = ValuesOf(column, released, -std::numeric_limits<double>::infinity());
  const double events = std::accumulate(all.count.begin(), all.count.end(), 0.0);
  const double noise = deviation / update.count_share / query_.scales[column] *
                       std::sqrt(static_cast<double>(all.count.size()));
  Period period;
  period.events = events;
  period.events_deviation = noise;
  period.click_rate =
      linear::ClickRate(released.numbers()[kClicks] / update.click_share, events, noise, update);
  period.curve = linear::CurveAt(period.click_rate, update);
  period.mean_residual = linear::MeanResidual(SumsOf(column, all, deviation), period.curve.slope);
  return period;
}

// The values of a column whose counts, as they are released, are above `least`.
LinearLearner::Known LinearLearner::ValuesOf(size_t column, const ReleasedSums& released,
                                             double least) const {
  const ReleasedSums::Table table = released.table(column);
  const double scale = query_.scales[column];
  const double count_scale = scale * query_.update.count_share;
  Known known;
  table.ForCountsAbove(least, [&](size_t i) {
    known.rows.push_back(table.row(i));
    known.residual.push_back(table.sum(i) / scale);
    known.count.push_back(table.count(i) / count_scale);
  });
  return known;
}

linear::ValueSums LinearLearner::SumsOf(size_t column, const Known& known, double deviation) const {
  const double noise = deviation / query_.scales[column];
  const double count_noise = noise / query_.update.count_share;
  return {.residual = known.residual,
          .count = known.count,
          .noise_variance = noise * noise,
          .count_noise_variance = count_noise * count_noise};
}

linear::Observed LinearLearner::ObservedOf(size_t column, const Known& known, const Period& now,
                                           double deviation) const {
  const linear::ValueSums sums = SumsOf(column, known, deviation);
  // The values of a set share its events, so that what they have in common is the set's own.
  const double mean = query_.columns->IsSet(column) ? linear::MeanResidual(sums, now.curve.slope)
                                                    : now.mean_residual;
  return linear::Observe(sums, mean, now.curve);
}

Status LinearLearner::UpdateColumn(size_t column, const Known& known, const Period& now,
                                   double deviation) {
  const size_t n = known.rows.size();
  const linear::Observed observed = ObservedOf(column, known, now, deviation);
  const auto period = static_cast<uint32_t>(state_.periods);
  std::vector<float> weight(n), variance(n), move(n), error(n);
  std::vector<uint32_t> age(n);
  const auto read = [&](size_t i, const float* row) {
    weight[i] = row[kWeight];
    variance[i] = row[kVariance];
    error[i] = row[kError];
    const uint32_t moved = CountOf(row[kPeriod]);
    age[i] = moved == 0 ? 0 : period - moved;
  };
  TACIT_RETURN_IF_ERROR(rows_.ForEach(known.rows, false, read));
  linear::Prior& prior = state_.priors[column];
  prior.Add(weight, observed);
  linear::MoveWeights(observed, prior.Variance(query_.update), state_.rate, query_.update,
                      {weight, variance, move, error, age});
  const auto write = [&](size_t i, float* row) {
    row[kWeight] = weight[i];
    row[kVariance] = variance[i];
    row[kMove] = move[i];
    row[kError] = error[i];
    row[kPeriod] = CountAsFloat(period);
    row[kEvents] += static_cast<float>(known.count[i]);
    gives_numbers_ = gives_numbers_ && std::isfinite(weight[i]);
    sums_.Move(column, known.rows[i], {.weight = weight[i], .move = move[i]});
  };
  return rows_.ForEach(known.rows, true, write);
}

// Smooths the weights of a number's bins. Its first value, missing, is no bin.
Status LinearLearner::SmoothColumn(size_t column) {
  std::vector<uint64_t> rows(query_.tables[column].rows - 1);
  std::iota(rows.begin(), rows.end(), query_.tables[column].first + 1);
  std::vector<float> weight, variance;
  TACIT_RETURN_IF_ERROR(rows_.ForEach(rows, false, [&](size_t, const float* row) {
    weight.push_back(row[kWeight]);
    variance.push_back(CountOf(row[kPeriod]) > 0 ? row[kVariance] : 0);
  }));
  const double prior_variance = state_.priors[column].Variance(query_.update);
  linear::SmoothBins(variance, prior_variance, query_.update, weight);
  return rows_.ForEach(rows, true, [&](size_t i, float* row) {
    row[kWeight] = weight[i];
    const bool moved = CountOf(row[kPeriod]) == state_.periods;
    sums_.Move(column, rows[i], {.weight = weight[i], .move = moved ? row[kMove] : 0});
  });
}

double LinearLearner::FirstRate(const ReleasedSums& released, const Period& now,
                                double deviation) const {
  const double least = query_.update.known_deviations * deviation;
  double explained = 0;
  for (size_t j = 0; j < query_.tables.size(); ++j) {
    const Known known = ValuesOf(j, released, least);
    const linear::Observed observed = ObservedOf(j, known, now, deviation);
    linear::Prior prior;
    prior.Add(std::vector<float>(known.rows.size()), observed);
    explained +=
        linear::ExplainedVariance(observed, known.count, now.events, prior.Variance(query_.update));
  }
  return linear::FirstRate(explained, query_.update);
}

void LinearLearner::SetRate(const ReleasedSums& released, const Period& now, double deviation) {
  if (std::ranges::all_of(state_.priors, [](const linear::Prior& p) { return p.weight == 0; })) {
    state_.rate = FirstRate(released, now, deviation);
    return;
  }
  const linear::UpdateOptions& update = query_.update;
  const double root = std::sqrt(static_cast<double>(query_.columns->size()));
  state_.rate = linear::NextRate(state_.rate,
                                 {.along = released.numbers()[kAlong] / update.move_share / root,
                                  .square = released.numbers()[kSquare] / update.move_share,
                                  .square_deviation = deviation / update.move_share},
                                 now.curve.slope, update);
}

// Moves the model by a release; returns the number of weights that moved.
Result<uint64_t> LinearLearner::Update(const ReleasedSums& released, double deviation) {
  const Period period = PeriodOf(released, deviation);
  SetRate(released, period, deviation);
  const bool first = state_.periods++ == 0;
  sums_.EndPeriod();
  const double least = query_.update.known_deviations * deviation;
  // The first period's predictions are all alike, so that their mean need not be read from it.
  if (first)
    state_.bias = linear::FirstBias({.rate = period.click_rate,
                                     .events = period.events,
                                     .clicks_deviation = deviation / query_.update.click_share,
                                     .events_deviation = period.events_deviation});
  else
    state_.bias += linear::BiasMove(period.click_rate, period.mean_residual, query_.update);
  uint64_t moved = 0;
  if (first && opens_) return moved;
  for (size_t j = 0; j < query_.tables.size(); ++j) {
    const Known known = ValuesOf(j, released, least);
    if (known.rows.empty()) continue;
    TACIT_RETURN_IF_ERROR(UpdateColumn(j, known, period, deviation));
    if (query_.columns->IsNumber(j)) TACIT_RETURN_IF_ERROR(SmoothColumn(j));
    moved += known.rows.size();
  }
  gives_numbers_ = gives_numbers_ && std::isfinite(state_.bias) && std::isfinite(state_.rate);
  return moved;
}

std::shared_ptr<const std::string> LinearLearner::TakeReleased() {
  if (!std::exchange(changed_, false) || !gives_numbers_) return nullptr;
  return std::make_shared<const std::string>(state_.Encode(*query_.columns));
}

Status LinearLearner::LoadReleased(std::string_view bytes) {
  auto state = linear::State::Decode(bytes, *query_.columns);
  if (!state)
    return Fail(std::move(state.error())
                    .Context(fmt::format("learner '{}': what its mechanism had released", id())));
  state_ = std::move(*state);
  changed_ = false;
  sums_.Abandon();
  sums_.Forget();
  return {};
}

}  // namespace tacit::train
