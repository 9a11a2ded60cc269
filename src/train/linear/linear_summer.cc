#include "train/linear/linear_summer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;
using mechanism::RowSums;
using mechanism::UnitVector;

constexpr size_t kFetchedAhead = 4;  // examples whose sums are on their way to the cache

// A label's verdict on a prediction: the loss, and the residual within [-rho, rho]; 0 where that
// is no number.
struct Verdict {
  double probability = 0;
  float loss = 0;
  double residual = 0;
};
Verdict VerdictOf(float label, float logit, const linear::UpdateOptions& update) {
  const double x = logit;
  const double e = std::exp(-std::abs(x));
  const double p = (x >= 0 ? 1 : e) / (1 + e);
  const double residual = (label - p) * linear::ResidualFactor(p, update);
  const double most = update.residual_most;
  return {.probability = p,
          .loss = static_cast<float>(std::max(x, 0.0) - x * label + std::log(1 + e)),
          .residual = std::isnan(residual) ? 0 : std::clamp(residual, -most, most)};
}

}  // namespace

LinearSummer::LinearSummer(const LinearQuery& query, LinearRows& rows, uint32_t bins)
    : query_(query),
      places_(*query.columns, query.tables, rows),
      bins_(bins > 0 ? std::optional(ScoreBins(bins)) : std::nullopt) {}

void LinearSummer::Open(RowSums sums) {
  TACIT_CHECK(!open(), "sums are open");
  sums_.emplace(std::move(sums));
  figures_ = {};
  if (bins_) figures_.bins.resize(size_t{2} * bins_->size());
}

LinearPart LinearSummer::Close() {
  LinearPart part{mechanism::PartialSums(std::move(*sums_)), std::move(figures_)};
  Abandon();
  return part;
}

void LinearSummer::Abandon() {
  sums_.reset();
  places_.DropMet();
}

Status LinearSummer::See(const stream::StepBatch& step, size_t begin, size_t end,
                         const linear::State& model, bool add, const Seen& seen) {
  const event::Batch& examples = step.examples;
  for (size_t at = begin, next; at < end; at = next) {
    next = std::min(end, at + kAtOnce);
    while (add && next < end && step.unit_of[next] == step.unit_of[next - 1]) ++next;
    TACIT_RETURN_IF_ERROR(places_.Read(examples, at, next, model.periods));
    Predict(std::span(examples.label).subspan(at, next - at), model.bias, add,
            {seen.logits.subspan(at, next - at), seen.losses.subspan(at, next - at)});
    if (!add) continue;
    AddEvents(step, at, next);
    figures_.examples += next - at;
  }
  return {};
}

// Predicts the examples that were read last.
void LinearSummer::Predict(std::span<const float> labels, double bias, bool add, const Seen& seen) {
  effects_.resize(labels.size());
  residuals_.resize(labels.size());
  linear::AddUp(places_.places(), 0, labels.size(), places_.effects(), effects_);
  for (size_t i = 0; i < labels.size(); ++i) {
    seen.logits[i] = effects_[i].weight + static_cast<float>(bias);
    const Verdict verdict = VerdictOf(labels[i], seen.logits[i], query_.update);
    residuals_[i] = verdict.residual;
    seen.losses[i] = verdict.loss;
    if (add && bins_)
      figures_.See(*bins_, seen.logits[i], verdict.probability, verdict.loss, labels[i]);
  }
}

// An event's further numbers.
std::array<double, kLinearNumbers> LinearSummer::NumbersOf(size_t example, float label) const {
  const linear::UpdateOptions& update = query_.update;
  const double residual = residuals_[example], move = effects_[example].move;
  const double moved = std::isnan(move) ? 0 : std::clamp(move, -1.0, 1.0);
  const double root = std::sqrt(static_cast<double>(query_.scales.size()));
  std::array<double, kLinearNumbers> numbers{};
  numbers[kAlong] = update.move_share * root * residual * moved;
  numbers[kSquare] = update.move_share * moved * moved;
  numbers[kClicks] = label > 0.5f ? update.click_share : 0;
  return numbers;
}

// Adds an event's contribution to its unit's, `weight` times; no weight is above 1, so that a
// contribution is no longer than one of an event without weights. `example`: among those read last.
void LinearSummer::AddEvent(size_t example, float label, double weight) {
  const linear::Places places = places_.places();
  for (size_t j = 0; j < places.columns; ++j) {
    const size_t run = example * places.columns + j;
    const size_t begin = places.Begin(run), end = places.end[run];
    // A set's inputs are a vector of norm 1.
    const double input = linear::InputOf(end - begin);
    const double sum = weight * query_.weights.sum(j) * residuals_[example] * input;
    const double count = weight * query_.weights.count(j) * input * input;
    for (size_t k = begin; k < end; ++k) unit_.AddPair(sums_->SumOf(places.place[k]), sum, count);
  }
  const std::array<double, kLinearNumbers> numbers = NumbersOf(example, label);
  for (size_t i = 0; i < numbers.size(); ++i) unit_.Add(RowSums::Number(i), weight * numbers[i]);
}

// Adds a unit of any events: examples [begin, end) of those read last.
void LinearSummer::AddUnit(const event::Batch& examples, size_t first, size_t begin, size_t end) {
  RowSums& sums = *sums_;
  if (unit_.size() > sums.cells()) unit_ = UnitVector(0);
  unit_.Grow(sums.cells());
  unit_.Clear();
  const linear::Places places = places_.places();
  for (size_t i = begin; i < end; ++i) {
    if (i + 1 < places.examples())
      for (const uint32_t place : places.Of(i + 1)) unit_.Prefetch(sums.SumOf(place));
    AddEvent(i, examples.label[first + i], examples.WeightOf(first + i));
  }
  figures_.clipped += sums.Add(unit_);
}

// Adds the units of examples [begin, end), which were read last, each once. A unit's own events
// alone say which way it is added: the two may round a last digit differently.
void LinearSummer::AddEvents(const stream::StepBatch& step, size_t begin, size_t end) {
  RowSums& sums = *sums_;
  const event::Batch& examples = step.examples;
  const linear::Places places = places_.places();
  const std::span<const uint64_t> met = places_.met();
  for (size_t i = met.size() - (places_.effects().size() - sums.places()); i < met.size(); ++i)
    sums.Touch(met[i]);
  const std::span<const int64_t> cells = sums.sums();
  const auto unit_of = std::span(step.unit_of).subspan(begin, end - begin);
  for (size_t i = 0, next; i < unit_of.size(); i = next) {
    for (next = i + 1; next < unit_of.size() && unit_of[next] == unit_of[i];) ++next;
    if (const size_t ahead = i + kFetchedAhead; ahead < unit_of.size())
      for (const uint32_t place : places.Of(ahead))
        __builtin_prefetch(&cells[sums.SumOf(place)], /*rw=*/1);
    const std::span<const uint32_t> values = places.Of(i);
    const bool is_plain =
        next == i + 1 && values.size() == places.columns && examples.WeightOf(begin + i) == 1;
    if (is_plain)
      figures_.clipped +=
          sums.Add(query_.weights, values, residuals_[i], NumbersOf(i, examples.label[begin + i]));
    else
      AddUnit(examples, begin, i, next);
  }
}

}  // namespace tacit::train
