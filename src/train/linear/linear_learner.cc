#include "train/linear/linear_learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/moving_average.h"
#include "model/linear/row.h"
#include "train/learner/loss_sum.h"
#include "train/learner/step_phases.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;
using mechanism::ReleasedSums;
using mechanism::RowSums;
using mechanism::SumTable;
using mechanism::UnitVector;

using linear::kError;
using linear::kEvents;
using linear::kMove;
using linear::kPeriod;
using linear::kVariance;
using linear::kWeight;
// The sums that belong to no row.
enum Number : size_t { kAlong, kSquare, kClicks, kNumbers };

constexpr size_t kFetchedAhead = 4;  // examples whose sums are on their way to the cache
constexpr size_t kSeenAtOnce = 512;  // examples whose places stay in a core's cache

// A label's verdict on a prediction: the loss, and the residual within [-rho, rho]; 0 where that
// is no number.
struct Verdict {
  float loss = 0;
  double residual = 0;
};
Verdict VerdictOf(float label, float logit, const linear::UpdateOptions& update) {
  const double x = logit;
  const double e = std::exp(-std::abs(x));
  const double p = (x >= 0 ? 1 : e) / (1 + e);
  const double residual = (label - p) * linear::ResidualFactor(p, update);
  const double most = update.residual_most;
  return {.loss = static_cast<float>(std::max(x, 0.0) - x * label + std::log1p(e)),
          .residual = std::isnan(residual) ? 0 : std::clamp(residual, -most, most)};
}

std::vector<SumTable> TablesOf(const LinearLearnerOptions& options) {
  std::vector<SumTable> tables;
  for (const RowSpace::Table& table : options.columns->space().tables())
    tables.push_back({table.first, table.rows, table.rows <= options.whole_column_most});
  return tables;
}

mechanism::RowSumsOptions QueryOf(const LinearLearnerOptions& options) {
  return {.clip = linear::ContributionMost(options.columns->size(), options.update),
          .noise_multiplier = options.noise_multiplier,
          .threshold_deviations =
              std::max(options.threshold_deviations, options.update.known_deviations),
          .numbers = kNumbers};
}

// An event's weights. A set's column adds no more than any other.
mechanism::ColumnWeights WeightsOf(const mechanism::RowSumsOptions& query,
                                   std::span<const double> scales,
                                   const linear::UpdateOptions& update) {
  std::vector<double> counts;
  for (const double scale : scales) counts.push_back(scale * update.count_share);
  return {query, scales, counts};
}

// The smallest column that is released whole and has one value for each example, or size().
size_t WholeColumn(const linear::Columns& columns, std::span<const SumTable> tables) {
  size_t best = columns.size();
  for (size_t j = 0; j < columns.size(); ++j)
    if (tables[j].every_row && !columns.IsSet(j) &&
        (best == columns.size() || tables[j].rows < tables[best].rows))
      best = j;
  return best;
}

}  // namespace

Status CheckLinear(const LinearLearnerOptions& options) {
  const std::vector<SumTable> tables = TablesOf(options);
  if (WholeColumn(*options.columns, tables) < tables.size()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': a linear model needs a column of one value for each event "
                          "and of at most {} values",
                          options.id, options.whole_column_most));
}

RateNoise ClickRateNoise(const LinearLearnerOptions& options) {
  const mechanism::RowSumsOptions query = QueryOf(options);
  const double deviation = query.noise_multiplier * query.clip;
  const std::vector<SumTable> tables = TablesOf(options);
  const size_t column = WholeColumn(*options.columns, tables);
  const double scale = linear::ColumnScales(*options.columns, options.update)[column];
  const double of_value = deviation / options.update.count_share / scale;
  return {.clicks = deviation / options.update.click_share,
          .events = of_value * std::sqrt(static_cast<double>(tables[column].rows)),
          .value_events = of_value};
}

privacy::Charge LinearPeriodCharge(const LinearLearnerOptions& options) {
  return RowSums(QueryOf(options), {}).charge();
}

LinearLearner::LinearLearner(LinearLearnerOptions options,
                             std::unique_ptr<noise::NoiseSource> noise, store::WorkingRows& rows)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      scales_(linear::ColumnScales(*options_.columns, options_.update)),
      tables_(TablesOf(options_)),
      sums_(QueryOf(options_)),
      charge_(LinearPeriodCharge(options_)),
      noise_(std::move(noise)),
      rows_(rows),
      weights_(WeightsOf(sums_, scales_, options_.update)),
      places_(*options_.columns, tables_, rows) {
  TACIT_CHECK(CheckLinear(options_).has_value(), "no column tells the mean residual");
  state_.priors.resize(options_.columns->size());
}

// Predicts the examples that were read last; returns the sum of their losses.
double LinearLearner::Predict(std::span<const float> labels, std::span<float> logits) {
  effects_.resize(labels.size());
  residuals_.resize(labels.size());
  linear::AddUp(places_.places(), 0, labels.size(), places_.effects(), effects_);
  const auto bias = static_cast<float>(state_.bias);
  double loss_sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    logits[i] = effects_[i].weight + bias;
    const Verdict verdict = VerdictOf(labels[i], logits[i], options_.update);
    residuals_[i] = verdict.residual;
    loss_sum += SumOfLosses({&verdict.loss, 1});
  }
  return loss_sum;
}

// Predicts the step with the model as it is, and adds it to the open period if it is learnt from.
Status LinearLearner::See(const stream::StepBatch& step, bool learn, StepReport* report) {
  const event::Batch& examples = step.examples;
  TACIT_CHECK(!learn || step.unit_of.size() == examples.size(), "a unit for each example");
  if (learn && !open_) open_.emplace(RowSums(sums_, tables_, std::exchange(released_, {})));
  logits_.resize(examples.size());
  double loss_sum = 0;
  for (size_t begin = 0, end; begin < examples.size(); begin = end) {
    end = std::min(examples.size(), begin + kSeenAtOnce);
    while (learn && end < examples.size() && step.unit_of[end] == step.unit_of[end - 1]) ++end;
    TACIT_RETURN_IF_ERROR(places_.Read(examples, begin, end, state_.periods));
    loss_sum += Predict(std::span(examples.label).subspan(begin, end - begin),
                        std::span(logits_).subspan(begin, end - begin));
    if (learn) AddEvents(step, begin, end);
  }
  *report = {.logits = logits_,
             .examples = examples.size(),
             .loss_sum = loss_sum,
             .losses = examples.size()};
  if (!learn) return {};
  open_->examples += examples.size();
  open_->losses += examples.size();
  open_->loss_sum += loss_sum;
  return {};
}

// Previews of a period are its first parts; what is held out is not learnt from.
Status LinearLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  const bool part = batch.kind == stream::StepBatch::Kind::kPreview;
  return See(batch, part, report);
}

// An event's further numbers.
std::array<double, 3> LinearLearner::NumbersOf(size_t example, float label) const {
  static_assert(kNumbers == 3);
  const linear::UpdateOptions& update = options_.update;
  const double residual = residuals_[example], move = effects_[example].move;
  const double moved = std::isnan(move) ? 0 : std::clamp(move, -1.0, 1.0);
  const double root = std::sqrt(static_cast<double>(scales_.size()));
  std::array<double, 3> numbers{};
  numbers[kAlong] = update.move_share * root * residual * moved;
  numbers[kSquare] = update.move_share * moved * moved;
  numbers[kClicks] = label > 0.5f ? update.click_share : 0;
  return numbers;
}

// Adds an event's contribution to its unit's, `weight` times; no weight is above 1, so that a
// contribution is no longer than one of an event without weights. `example`: among those read last.
void LinearLearner::AddEvent(size_t example, float label, double weight) {
  const linear::Places places = places_.places();
  for (size_t j = 0; j < places.columns; ++j) {
    const size_t run = example * places.columns + j;
    const size_t begin = places.Begin(run), end = places.end[run];
    // A set's inputs are a vector of norm 1.
    const double input = linear::InputOf(end - begin);
    const double sum = weight * weights_.sum(j) * residuals_[example] * input;
    const double count = weight * weights_.count(j) * input * input;
    for (size_t k = begin; k < end; ++k)
      unit_.AddPair(open_->sums.SumOf(places.place[k]), sum, count);
  }
  const std::array<double, 3> numbers = NumbersOf(example, label);
  for (size_t i = 0; i < numbers.size(); ++i) unit_.Add(RowSums::Number(i), weight * numbers[i]);
}

// Adds whole units, of any number of events.
void LinearLearner::AddUnits(const stream::StepBatch& step, size_t begin, size_t end) {
  RowSums& sums = open_->sums;
  if (unit_.size() > sums.cells()) unit_ = UnitVector(0);
  unit_.Grow(sums.cells());
  const linear::Places places = places_.places();
  for (size_t i = begin; i < end;) {
    const uint32_t unit = step.unit_of[i];
    unit_.Clear();
    for (; i < end && step.unit_of[i] == unit; ++i) {
      if (i + 1 < end) {
        const size_t next = (i + 1 - begin) * places.columns;
        for (size_t k = places.Begin(next); k < places.end[next + places.columns - 1]; ++k)
          unit_.Prefetch(sums.SumOf(places.place[k]));
      }
      AddEvent(i - begin, step.examples.label[i], step.examples.WeightOf(i));
    }
    open_->clipped += sums.Add(unit_);
  }
}

// Adds the units of examples [begin, end), which were read last, each once.
void LinearLearner::AddEvents(const stream::StepBatch& step, size_t begin, size_t end) {
  RowSums& sums = open_->sums;
  const linear::Places places = places_.places();
  const std::span<const uint64_t> met = places_.met();
  for (size_t i = met.size() - (places_.effects().size() - sums.places()); i < met.size(); ++i)
    sums.Touch(met[i]);
  bool single = places.one_each && step.examples.weight.empty();  // all units
  for (size_t i = begin + 1; i < end; ++i) single &= step.unit_of[i] != step.unit_of[i - 1];
  if (!single) return AddUnits(step, begin, end);
  const std::span<const int64_t> cells = sums.sums();
  for (size_t i = 0; i < end - begin; ++i) {
    const size_t ahead = (i + kFetchedAhead) * places.columns;
    if (ahead < places.place.size())
      for (const uint32_t place : places.place.subspan(ahead, places.columns))
        __builtin_prefetch(&cells[sums.SumOf(place)], /*rw=*/1);
    open_->clipped += sums.Add(weights_, places.place.subspan(i * places.columns, places.columns),
                               residuals_[i], NumbersOf(i, step.examples.label[begin + i]));
  }
}

// Tells of the whole period, of which the report has the last part.
void LinearLearner::Tell(StepReport* report) const {
  report->examples = open_->examples;
  report->earlier_losses = open_->losses - report->losses;
  report->earlier_loss_sum = open_->loss_sum - report->loss_sum;
  report->rows_touched = open_->sums.CountTouched();
  report->units_clipped = open_->clipped;
}

Result<bool> LinearLearner::TakeStep(const stream::StepBatch& step,
                                     const std::atomic<bool>& abandon, StepReport* report) {
  if (step.kind != stream::StepBatch::Kind::kOnce)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("learner '{}': a linear model learns by participation `once`", id()));
  PhaseTimer timer;
  timer.Enter(StepPhase::kGradients);
  TACIT_RETURN_IF_ERROR(See(step, true, report));
  if (abandon) {
    open_.reset();
    return false;
  }
  Tell(report);
  // From here on the period is released, and charged.
  timer.Enter(StepPhase::kRelease);
  const double deviation = open_->sums.deviation();
  released_ = std::move(open_->sums).Release(*noise_);
  open_.reset();
  timer.Enter(StepPhase::kUpdate);
  TACIT_ASSIGN(report->rows_written, Update(released_, deviation));
  report->row_floats_written = report->rows_written;
  changed_ = true;
  report->phases = timer.Take();
  return true;
}

// Tells the period from the smallest whole column, whose values all events have.
LinearLearner::Period LinearLearner::PeriodOf(const ReleasedSums& released,
                                              double deviation) const {
  const linear::UpdateOptions& update = options_.update;
  const size_t column = WholeColumn(*options_.columns, tables_);
  const Known all = ValuesOf(column, released, -std::numeric_limits<double>::infinity());
  const double events = std::accumulate(all.count.begin(), all.count.end(), 0.0);
  const double noise = deviation / update.count_share / scales_[column] *
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
  const double scale = scales_[column];
  const double count_scale = scale * options_.update.count_share;
  Known known;
  table.ForCountsAbove(least, [&](size_t i) {
    known.rows.push_back(table.row(i));
    known.residual.push_back(table.sum(i) / scale);
    known.count.push_back(table.count(i) / count_scale);
  });
  return known;
}

linear::ValueSums LinearLearner::SumsOf(size_t column, const Known& known, double deviation) const {
  const double noise = deviation / scales_[column];
  const double count_noise = noise / options_.update.count_share;
  return {.residual = known.residual,
          .count = known.count,
          .noise_variance = noise * noise,
          .count_noise_variance = count_noise * count_noise};
}

linear::Observed LinearLearner::ObservedOf(size_t column, const Known& known, const Period& now,
                                           double deviation) const {
  const linear::ValueSums sums = SumsOf(column, known, deviation);
  // The values of a set share its events, so that what they have in common is the set's own.
  const double mean = options_.columns->IsSet(column) ? linear::MeanResidual(sums, now.curve.slope)
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
  TACIT_RETURN_IF_ERROR(ForRows(rows_, known.rows, false, read));
  linear::Prior& prior = state_.priors[column];
  prior.Add(weight, observed);
  linear::MoveWeights(observed, prior.Variance(options_.update), state_.rate, options_.update,
                      {weight, variance, move, error, age});
  const auto write = [&](size_t i, float* row) {
    row[kWeight] = weight[i];
    row[kVariance] = variance[i];
    row[kMove] = move[i];
    row[kError] = error[i];
    row[kPeriod] = CountAsFloat(period);
    row[kEvents] += static_cast<float>(known.count[i]);
    gives_numbers_ = gives_numbers_ && std::isfinite(weight[i]);
    places_.Move(column, known.rows[i], {.weight = weight[i], .move = move[i]});
  };
  return ForRows(rows_, known.rows, true, write);
}

// Smooths the weights of a number's bins. Its first value, missing, is no bin.
Status LinearLearner::SmoothColumn(size_t column) {
  std::vector<uint64_t> rows(tables_[column].rows - 1);
  std::iota(rows.begin(), rows.end(), tables_[column].first + 1);
  std::vector<float> weight, variance;
  TACIT_RETURN_IF_ERROR(ForRows(rows_, rows, false, [&](size_t, const float* row) {
    weight.push_back(row[kWeight]);
    variance.push_back(CountOf(row[kPeriod]) > 0 ? row[kVariance] : 0);
  }));
  const double prior_variance = state_.priors[column].Variance(options_.update);
  linear::SmoothBins(variance, prior_variance, options_.update, weight);
  return ForRows(rows_, rows, true, [&](size_t i, float* row) {
    row[kWeight] = weight[i];
    const bool moved = CountOf(row[kPeriod]) == state_.periods;
    places_.Move(column, rows[i], {.weight = weight[i], .move = moved ? row[kMove] : 0});
  });
}

double LinearLearner::FirstRate(const ReleasedSums& released, const Period& now,
                                double deviation) const {
  const double least = options_.update.known_deviations * deviation;
  double explained = 0;
  for (size_t j = 0; j < tables_.size(); ++j) {
    const Known known = ValuesOf(j, released, least);
    const linear::Observed observed = ObservedOf(j, known, now, deviation);
    linear::Prior prior;
    prior.Add(std::vector<float>(known.rows.size()), observed);
    explained += linear::ExplainedVariance(observed, known.count, now.events,
                                           prior.Variance(options_.update));
  }
  return linear::FirstRate(explained, options_.update);
}

void LinearLearner::SetRate(const ReleasedSums& released, const Period& now, double deviation) {
  if (std::ranges::all_of(state_.priors, [](const linear::Prior& p) { return p.weight == 0; })) {
    state_.rate = FirstRate(released, now, deviation);
    return;
  }
  const linear::UpdateOptions& update = options_.update;
  const double root = std::sqrt(static_cast<double>(options_.columns->size()));
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
  places_.EndPeriod();
  const double least = options_.update.known_deviations * deviation;
  // The first period's predictions are all alike, so that their mean need not be read from it.
  if (first)
    state_.bias = linear::FirstBias({.rate = period.click_rate,
                                     .events = period.events,
                                     .clicks_deviation = deviation / options_.update.click_share,
                                     .events_deviation = period.events_deviation});
  else
    state_.bias += linear::BiasMove(period.click_rate, period.mean_residual, options_.update);
  uint64_t moved = 0;
  if (first && options_.opens) return moved;
  for (size_t j = 0; j < tables_.size(); ++j) {
    const Known known = ValuesOf(j, released, least);
    if (known.rows.empty()) continue;
    TACIT_RETURN_IF_ERROR(UpdateColumn(j, known, period, deviation));
    if (options_.columns->IsNumber(j)) TACIT_RETURN_IF_ERROR(SmoothColumn(j));
    moved += known.rows.size();
  }
  gives_numbers_ = gives_numbers_ && std::isfinite(state_.bias) && std::isfinite(state_.rate);
  return moved;
}

std::shared_ptr<const std::string> LinearLearner::TakeReleased() {
  if (!std::exchange(changed_, false) || !gives_numbers_) return nullptr;
  return std::make_shared<const std::string>(state_.Encode(*options_.columns));
}

Status LinearLearner::LoadReleased(std::string_view bytes) {
  auto state = linear::State::Decode(bytes, *options_.columns);
  if (!state)
    return Fail(std::move(state.error())
                    .Context(fmt::format("learner '{}': what its mechanism had released", id())));
  state_ = std::move(*state);
  changed_ = false;
  open_.reset();
  places_.Forget();
  return {};
}

}  // namespace tacit::train
