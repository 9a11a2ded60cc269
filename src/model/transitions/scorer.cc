#include "model/transitions/scorer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::model::transitions {
namespace {

std::vector<float> Powers(std::span<const double> values, double power) {
  std::vector<float> powers;
  for (const double value : values) powers.push_back(static_cast<float>(std::pow(value, power)));
  return powers;
}

}  // namespace

Scorer::Scorer(const Estimate& estimate, const Options& options, WorkerPool& workers)
    : items_(estimate.prior().items()), options_(options) {
  if (options.IsDense(items_))
    FillDense(estimate, workers);
  else
    FillSparse(estimate, workers);
}

void Scorer::FillDense(const Estimate& estimate, WorkerPool& workers) {
  const Cells& cells = estimate.cells();
  std::vector<float> weights(size_t{items_} * items_);
  const auto for_items = [&](const auto& row) {
    workers.Run(items_, [&](size_t begin, size_t end, size_t) {
      for (auto a = static_cast<uint32_t>(begin); a < end; ++a) row(a);
    });
  };
  for_items([&](uint32_t a) {
    float* row = &weights[size_t{a} * items_];
    for (uint32_t b = 0; b < items_; ++b) row[b] = estimate.Unmeasured(a, b);
    for (uint64_t place = cells.row_begin(a); place < cells.row_end[a]; ++place)
      row[cells.column[place]] = estimate.weights()[place];
  });
  const auto from = Powers(estimate.prior().popularity(), -options_.score_from);
  const auto to = Powers(estimate.prior().popularity(), -options_.score_to);
  dense_.resize(weights.size());
  const auto reverse = static_cast<float>(options_.reverse_weight);
  const auto power = static_cast<float>(options_.score_power);
  for_items([&](uint32_t a) {
    for (uint32_t b = 0; b < items_; ++b) {
      const float both =
          weights[size_t{a} * items_ + b] + reverse * weights[size_t{b} * items_ + a];
      dense_[size_t{a} * items_ + b] = std::pow(both * from[a] * to[b], power);
    }
  });
}

void Scorer::FillSparse(const Estimate& estimate, WorkerPool& workers) {
  const Cells& cells = estimate.cells();
  const auto popularity = estimate.prior().popularity();
  const double power = options_.score_power;
  from_ = Powers(popularity, (1 - options_.score_from) * power);
  to_ = Powers(popularity, (1 - options_.score_to) * power);
  const auto front =
      static_cast<float>(std::pow(estimate.kappa() * (1 + options_.reverse_weight), power));
  for (float& from : from_) from *= front;

  // Merges the cells and their transposes, row by row: those measured in either direction.
  std::vector<uint64_t> reverse_end(items_);
  for (const uint32_t b : cells.column) ++reverse_end[b];
  for (uint32_t i = 1; i < items_; ++i) reverse_end[i] += reverse_end[i - 1];
  std::vector<uint32_t> reverse(cells.size());
  std::vector<uint64_t> at(items_);
  for (uint32_t i = 1; i < items_; ++i) at[i] = reverse_end[i - 1];
  for (uint32_t a = 0; a < items_; ++a)
    for (const uint32_t b : cells.Row(a)) reverse[at[b]++] = a;
  for (uint32_t a = 0; a < items_; ++a) {
    const auto measured = cells.Row(a);
    const uint64_t begin = a == 0 ? 0 : reverse_end[a - 1];
    std::set_union(
        measured.begin(), measured.end(), reverse.begin() + static_cast<ptrdiff_t>(begin),
        reverse.begin() + static_cast<ptrdiff_t>(reverse_end[a]), std::back_inserter(column_));
    row_end_.push_back(column_.size());
  }

  difference_.resize(column_.size());
  const auto scale_from = Powers(popularity, -options_.score_from);
  const auto scale_to = Powers(popularity, -options_.score_to);
  workers.Run(items_, [&](size_t begin, size_t end, size_t) {
    for (auto a = static_cast<uint32_t>(begin); a < end; ++a)
      for (uint64_t i = a == 0 ? 0 : row_end_[a - 1]; i < row_end_[a]; ++i) {
        const uint32_t b = column_[i];
        const double both = estimate.Of(a, b) + options_.reverse_weight * estimate.Of(b, a);
        difference_[i] = static_cast<float>(std::pow(both * scale_from[a] * scale_to[b], power)) -
                         from_[a] * to_[b];
      }
  });
}

void Scorer::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(scores.size() == items_);
  std::ranges::fill(scores, 0.0f);
  double weight = 1;
  float everywhere = 0;
  const size_t recent = std::min<size_t>(options_.recent_items, history.size());
  for (size_t age = 0; age < recent; ++age, weight *= options_.recent_decay) {
    const uint32_t a = history[history.size() - 1 - age];
    const auto w = static_cast<float>(weight);
    if (!dense_.empty()) {
      const float* row = &dense_[size_t{a} * items_];
      for (uint32_t b = 0; b < items_; ++b) scores[b] += w * row[b];
      continue;
    }
    everywhere += w * from_[a];
    for (uint64_t i = a == 0 ? 0 : row_end_[a - 1]; i < row_end_[a]; ++i)
      scores[column_[i]] += w * difference_[i];
  }
  if (dense_.empty())
    for (uint32_t b = 0; b < items_; ++b) scores[b] += everywhere * to_[b];
}

}  // namespace tacit::model::transitions
