#include "train/linear_learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/moving_average.h"
#include "model/linear/row.h"
#include "train/loss_sum.h"
#include "train/row_map.h"

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
using linear::kRowFloats;
using linear::kVariance;
using linear::kWeight;
// The sums that belong to no row.
enum Number : size_t { kAlong, kSquare, kClicks, kNumbers };

constexpr size_t kGatherMost = 1 << 14;  // rows that are asked for at a time

// Replaces `rows` by the distinct rows of `row`, ascending, and `place` by where each lies in them.
void FindPlaces(std::span<const uint64_t> row, std::vector<uint64_t>* rows,
                std::vector<uint32_t>* place) {
  rows->clear();
  place->resize(row.size());
  RowMap<uint32_t> found;  // each row's number from 1, by first appearance
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < row.size(); ++i) {
    if (i + kAhead < row.size()) found.Prefetch(row[i + kAhead]);
    uint32_t& number = found[row[i]];
    if (number == 0) {
      rows->push_back(row[i]);
      number = static_cast<uint32_t>(rows->size());
    }
    (*place)[i] = number - 1;
  }
  std::vector<uint32_t> order(rows->size()), rank(rows->size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return (*rows)[i]; });
  for (uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  for (uint32_t& at : *place) at = rank[at];
  std::ranges::sort(*rows);
}

// Calls each(i, floats) for every row, gathered a few at a time.
template <class Each>
Status ForRows(store::WorkingRows& rows, std::span<const uint64_t> wanted,
               std::vector<float*>* pointers, bool change, const Each& each) {
  for (size_t begin = 0; begin < wanted.size(); begin += kGatherMost) {
    const auto some = wanted.subspan(begin, std::min(kGatherMost, wanted.size() - begin));
    pointers->resize(some.size());
    TACIT_RETURN_IF_ERROR(rows.Gather(some, *pointers));
    for (size_t i = 0; i < some.size(); ++i) each(begin + i, (*pointers)[i]);
    if (change) rows.MarkChanged(some);
  }
  return {};
}

// The loss of a logit for a label of 0 or 1.
float LogisticLoss(float logit, float label) {
  return std::max(logit, 0.0f) - logit * label + std::log1p(std::exp(-std::abs(logit)));
}

// The event's residual, within [-rho, rho]; 0 where it is no number.
double Residual(float label, float logit, const linear::UpdateOptions& update) {
  const double p = 1 / (1 + std::exp(-static_cast<double>(logit)));
  const double most = update.residual_most;
  const double residual = (label - p) * linear::ResidualFactor(p, update);
  return std::isnan(residual) ? 0 : std::clamp(residual, -most, most);
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

privacy::Charge LinearPeriodCharge(const LinearLearnerOptions& options) {
  return RowSums(QueryOf(options), {}, {}).charge();
}

linear::Columns LinearColumns(const event::FeatureSchema& schema) {
  std::vector<linear::CategoryColumn> categories;
  for (const event::CategoricalFeature& feature : schema.categorical)
    categories.push_back({feature.name, feature.buckets, feature.multi_hot});
  std::vector<linear::NumberColumn> numbers;
  for (const event::DenseFeature& feature : schema.dense)
    numbers.push_back({feature.name, feature.transform == event::DenseTransform::kIdentity});
  return {std::move(categories), std::move(numbers)};
}

store::RowLayout LinearRowLayout(const linear::Columns& columns) {
  store::RowLayout layout;
  layout.space = columns.space();
  layout.state_floats.assign(columns.size(), kRowFloats - 1);
  layout.initial_scale.assign(columns.size(), 0);
  return layout;
}

LinearLearner::LinearLearner(LinearLearnerOptions options,
                             std::unique_ptr<noise::NoiseSource> noise, store::WorkingRows& rows,
                             WorkerPool& workers)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      scales_(linear::ColumnScales(*options_.columns, options_.update)),
      tables_(TablesOf(options_)),
      sums_(QueryOf(options_)),
      charge_(LinearPeriodCharge(options_)),
      noise_(std::move(noise)),
      rows_(rows),
      workers_(workers) {
  TACIT_CHECK(CheckLinear(options_).has_value(), "no column tells the mean residual");
  state_.priors.resize(options_.columns->size());
}

linear::Places LinearLearner::Batch::Places() const {
  return {.columns = runs.columns, .place = place, .end = runs.end, .one_each = runs.one_each};
}

// Fills batch_, logits_ and moves_ with the model as it is.
Status LinearLearner::Predict(const stream::StepBatch& step, StepReport* report) {
  const event::Batch& examples = step.examples;
  options_.columns->Read({.examples = examples.size(),
                          .numbers = examples.dense,
                          .slot_end = examples.slot_end,
                          .row = examples.row},
                         &batch_.runs);
  FindPlaces(batch_.runs.row, &batch_.rows, &batch_.place);
  batch_.weight.resize(batch_.rows.size());
  batch_.move.resize(batch_.rows.size());
  const auto period = static_cast<uint32_t>(state_.periods);
  const auto read = [&](size_t i, const float* row) {
    batch_.weight[i] = row[kWeight];
    batch_.move[i] = period > 0 && CountOf(row[kPeriod]) == period ? row[kMove] : 0;
  };
  TACIT_RETURN_IF_ERROR(ForRows(rows_, batch_.rows, &row_pointers_, false, read));

  logits_.resize(examples.size());
  moves_.resize(examples.size());
  const linear::Places places = batch_.Places();
  const auto bias = static_cast<float>(state_.bias);
  workers_.Run(examples.size(), [&](size_t begin, size_t end, size_t) {
    const auto logits = std::span(logits_).subspan(begin, end - begin);
    linear::AddUp(places, begin, end, batch_.weight, logits);
    for (float& logit : logits) logit += bias;
    linear::AddUp(places, begin, end, batch_.move, std::span(moves_).subspan(begin, end - begin));
  });
  *report = {.logits = logits_,
             .examples = examples.size(),
             .losses = examples.size(),
             .rows_touched = batch_.rows.size()};
  for (size_t i = 0; i < examples.size(); ++i) {
    const float loss = LogisticLoss(logits_[i], examples.label[i]);
    report->loss_sum += SumOfLosses({&loss, 1});
  }
  return {};
}

Status LinearLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  TACIT_RETURN_IF_ERROR(Predict(batch, report));
  batch_ = {};
  return {};
}

// Adds an event's contribution to its unit's.
template <class Unit>
void LinearLearner::AddEvent(size_t example, float label, float move, Unit* unit) const {
  const linear::UpdateOptions& update = options_.update;
  const linear::Places places = batch_.Places();
  const double residual = Residual(label, logits_[example], update);
  for (size_t j = 0; j < places.columns; ++j) {
    const size_t run = example * places.columns + j;
    const size_t begin = places.Begin(run), end = places.end[run];
    // A set's inputs are a vector of norm 1: its column adds no more than any other.
    const double input = linear::InputOf(end - begin);
    const double sum = scales_[j] * residual * input;
    const double count = scales_[j] * update.count_share * input * input;
    for (size_t k = begin; k < end; ++k) {
      unit->Add(RowSums::SumOf(places.place[k]), sum);
      unit->Add(RowSums::CountOf(places.place[k]), count);
    }
  }
  const double moved = std::isnan(move) ? 0 : std::clamp<double>(move, -1, 1);
  const double root = std::sqrt(static_cast<double>(places.columns));
  const auto numbers = static_cast<uint32_t>(2 * batch_.rows.size());
  unit->Add(numbers + kAlong, update.move_share * root * residual * moved);
  unit->Add(numbers + kSquare, update.move_share * moved * moved);
  if (label > 0.5f) unit->Add(numbers + kClicks, update.click_share);
}

// The contribution of a single event that has one value of each column: no cell is there twice, so
// that none has to be looked for.
struct LinearLearner::SingleEvent {
  std::vector<uint32_t> cells;
  std::vector<double> weights;

  void Add(uint32_t cell, double weight) {
    cells.push_back(cell);
    weights.push_back(weight);
  }
  void Clear() {
    cells.clear();
    weights.clear();
  }
};

// Adds every unit once; returns how many were clipped.
uint64_t LinearLearner::AddEvents(const stream::StepBatch& step, RowSums* sums) {
  std::vector<size_t> begins(step.units + 1);  // per unit its first example, and the end
  for (size_t u = 0, i = 0; u <= step.units; begins[u++] = i)
    while (i < step.unit_of.size() && step.unit_of[i] < u) ++i;
  std::atomic<uint64_t> clipped = 0;
  workers_.Run(step.units, [&](size_t begin, size_t end, size_t) {
    const auto add = [&](size_t u, auto* unit) {
      unit->Clear();
      for (size_t i = begins[u]; i < begins[u + 1]; ++i)
        AddEvent(i, step.examples.label[i], moves_[i], unit);
    };
    UnitVector several(sums->cells());
    SingleEvent single;
    uint64_t cut = 0;
    for (size_t u = begin; u < end; ++u) {
      if (batch_.runs.one_each && begins[u + 1] - begins[u] == 1) {
        add(u, &single);
        cut += sums->Add(single.cells, single.weights);
      } else {
        add(u, &several);
        cut += sums->Add(several);
      }
    }
    clipped += cut;
  });
  return clipped;
}

Result<bool> LinearLearner::TakeStep(const stream::StepBatch& step,
                                     const std::atomic<bool>& abandon, StepReport* report) {
  if (step.kind != stream::StepBatch::Kind::kOnce)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("learner '{}': a linear model learns by participation `once`", id()));
  TACIT_RETURN_IF_ERROR(Predict(step, report));
  if (abandon) return false;
  RowSums sums(sums_, tables_, batch_.rows);
  report->units_clipped = AddEvents(step, &sums);
  // From here on the period is released, and charged.
  if (abandon) return false;
  const double deviation = sums.deviation();
  released_ = std::move(sums).Release(*noise_, std::move(released_));
  batch_ = {};  // as large as a period
  TACIT_ASSIGN(report->rows_written, Update(released_, deviation));
  report->row_floats_written = report->rows_written;
  changed_ = true;
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
  period.click_rate =
      linear::ClickRate(released.numbers[kClicks] / update.click_share, events, noise, update);
  period.curve = linear::CurveAt(period.click_rate, update);
  period.mean_residual = linear::MeanResidual(SumsOf(column, all, deviation), period.curve.slope);
  return period;
}

// The values of a column whose counts, as they are released, are above `least`.
LinearLearner::Known LinearLearner::ValuesOf(size_t column, const ReleasedSums& released,
                                             double least) const {
  const SumTable& table = tables_[column];
  const double scale = scales_[column];
  const double count_scale = scale * options_.update.count_share;
  const auto first = std::ranges::lower_bound(released.rows, table.first) - released.rows.begin();
  Known known;
  for (auto i = static_cast<size_t>(first);
       i < released.rows.size() && released.rows[i] < table.first + table.rows; ++i) {
    if (!(released.counts[i] > least)) continue;
    known.rows.push_back(released.rows[i]);
    known.residual.push_back(released.sums[i] / scale);
    known.count.push_back(released.counts[i] / count_scale);
  }
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

Status LinearLearner::UpdateColumn(size_t column, const Known& known, const Period& now,
                                   double deviation) {
  const size_t n = known.rows.size();
  const linear::ValueSums sums = SumsOf(column, known, deviation);
  // The values of a set share its events, so that what they have in common is the set's own.
  const double mean = options_.columns->IsSet(column) ? linear::MeanResidual(sums, now.curve.slope)
                                                      : now.mean_residual;
  const auto observed = linear::Observe(sums, mean, now.curve);
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
  TACIT_RETURN_IF_ERROR(ForRows(rows_, known.rows, &row_pointers_, false, read));
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
  };
  return ForRows(rows_, known.rows, &row_pointers_, true, write);
}

void LinearLearner::SetRate(const ReleasedSums& released, double slope, double deviation) {
  const linear::UpdateOptions& update = options_.update;
  const double root = std::sqrt(static_cast<double>(options_.columns->size()));
  state_.rate =
      state_.periods == 0
          ? update.rate
          : linear::NextRate(state_.rate,
                             {.along = released.numbers[kAlong] / update.move_share / root,
                              .square = released.numbers[kSquare] / update.move_share,
                              .square_deviation = deviation / update.move_share},
                             slope, update);
}

// Moves the model by a release; returns the number of weights that moved.
Result<uint64_t> LinearLearner::Update(const ReleasedSums& released, double deviation) {
  const Period period = PeriodOf(released, deviation);
  SetRate(released, period.curve.slope, deviation);
  ++state_.periods;
  const double least = options_.update.known_deviations * deviation;
  state_.bias += linear::BiasMove(period.click_rate, period.mean_residual, options_.update);
  uint64_t moved = 0;
  for (size_t j = 0; j < tables_.size(); ++j) {
    const Known known = ValuesOf(j, released, least);
    if (known.rows.empty()) continue;
    TACIT_RETURN_IF_ERROR(UpdateColumn(j, known, period, deviation));
    moved += known.rows.size();
  }
  gives_numbers_ = gives_numbers_ && std::isfinite(state_.bias) && std::isfinite(state_.rate);
  return moved;
}

std::shared_ptr<const std::string> LinearLearner::TakeReleased() {
  if (!std::exchange(changed_, false)) return nullptr;
  return std::make_shared<const std::string>(state_.Encode(*options_.columns));
}

Status LinearLearner::LoadReleased(std::string_view bytes) {
  auto state = linear::State::Decode(bytes, *options_.columns);
  if (!state)
    return Fail(std::move(state.error())
                    .Context(fmt::format("learner '{}': what its mechanism had released", id())));
  state_ = std::move(*state);
  changed_ = false;
  return {};
}

}  // namespace tacit::train
