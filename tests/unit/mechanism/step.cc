#include "step.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tacit::mechanism {
namespace {

size_t PlaceOf(const std::vector<uint64_t>& rows, uint64_t row) {
  return static_cast<size_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
}

}  // namespace

uint32_t DimOf(const RowSpace& space, uint64_t row) {
  return space.tables()[space.TableOf(row)].dim;
}

model::Activations ActivationsOf(const StepUnits& units) {
  std::set<uint64_t> rows;
  for (const UnitGradient& unit : units)
    for (const auto& [row, values] : unit.rows) rows.insert(row);
  model::Activations activations;
  activations.rows.assign(rows.begin(), rows.end());
  for (const UnitGradient& unit : units) {
    for (const auto& [row, values] : unit.rows)
      activations.unit_row.push_back(static_cast<uint32_t>(PlaceOf(activations.rows, row)));
    activations.unit_end.push_back(static_cast<uint32_t>(activations.unit_row.size()));
  }
  return activations;
}

std::vector<double> ScoresOf(const StepUnits& units, const model::Activations& activations,
                             double clip) {
  std::vector<double> scores(activations.rows.size());
  for (const UnitGradient& unit : units) {
    for (const auto& [row, values] : unit.rows) {
      double squared = 0;
      for (double value : values) squared += value * value;
      scores[PlaceOf(activations.rows, row)] += std::min(std::sqrt(squared), clip);
    }
  }
  return scores;
}

const Update& StepRunner::Run(Mechanism& mechanism, noise::NoiseSource& noise) {
  const double clip = mechanism.row_score_clip();
  if (clip > 0 && scores_.empty()) scores_ = ScoresOf(units_, activations_, clip);
  mechanism.Select({.activations = activations_, .scores = scores_}, noise, &selection_);
  sum_.Reset(space_, activations_, selection_, kDenseSize);
  const model::ScaleRule& rule = mechanism.scale_rule();
  Norms(rule.grid_step());
  Sum(rule);
  mechanism.Finalize(noise, norms_, &sum_);
  TakeUpdate(mechanism, noise);
  return update_;
}

// Squared norms of the dense part and of the selected rows, per unit, and what rounding adds.
void StepRunner::Norms(double grid_step) {
  norms_ = {.groups = 2, .units = units_.size(), .squared = {}, .rounding = {}};
  norms_.squared.assign(2 * units_.size(), 0);
  for (size_t u = 0; u < units_.size(); ++u) {
    double dense = 0, rows = 0, coordinates = 0;
    for (double value : units_[u].dense) dense += value * value;
    size_t i = 0;
    for (const auto& [row, values] : units_[u].rows) {
      if (!selection_.kept[activations_.UnitRows(u)[i++]]) continue;
      coordinates += static_cast<double>(values.size());
      for (double value : values) rows += value * value;
    }
    if (grid_step > 0)
      norms_.rounding.push_back(static_cast<float>(
          grid_step * (std::sqrt(double{kDenseSize}) + std::sqrt(coordinates) / 2)));
    norms_.squared[u] = static_cast<float>(dense);
    norms_.squared[units_.size() + u] = static_cast<float>(rows);
  }
}

void StepRunner::Sum(const model::ScaleRule& rule) {
  const double step = rule.grid_step();
  if (step > 0) sum_.row_sums.assign(sum_.row_values.size(), 0);
  std::vector<float> scales(norms_.squared.size());
  rule.Scales(norms_, scales);
  for (size_t u = 0; u < units_.size(); ++u) {
    for (size_t i = 0; i < units_[u].dense.size(); ++i)
      sum_.dense[i] += scales[u] * static_cast<float>(units_[u].dense[i]);
    size_t entry = 0;
    for (const auto& [row, values] : units_[u].rows) {
      const uint32_t place = sum_.kept_place[activations_.UnitRows(u)[entry++]];
      if (place == model::StepGradient::kNotKept) continue;
      for (size_t i = 0; i < values.size(); ++i) {
        const double scaled = double{scales[units_.size() + u]} * values[i];
        if (step > 0) {
          sum_.RowSum(place)[i] += std::llround(scaled / step);
        } else {
          sum_.Row(place)[i] += static_cast<float>(scaled);
        }
      }
    }
  }
  if (step > 0)
    for (const float x : sum_.dense) sum_.dense_sums.push_back(std::llround(double{x} / step));
}

void StepRunner::TakeUpdate(Mechanism& mechanism, noise::NoiseSource& noise) {
  update_.dense.assign(sum_.dense.begin(), sum_.dense.end());
  if (!selection_.every_row) {
    update_.rows = sum_.rows;
    update_.values.assign(sum_.row_values.begin(), sum_.row_values.end());
    return;
  }
  update_.rows.clear();
  update_.values.clear();
  std::vector<float> untouched(space_.max_dim());
  size_t place = 0;
  for (uint64_t row = 0; row < space_.rows(); ++row) {
    std::span<const float> values;
    if (place < sum_.rows.size() && sum_.rows[place] == row) {
      values = sum_.Row(place++);
    } else {
      const std::span<float> fill = std::span(untouched).first(DimOf(space_, row));
      mechanism.FillUntouched(noise, fill);
      values = fill;
    }
    update_.rows.push_back(row);
    update_.values.insert(update_.values.end(), values.begin(), values.end());
  }
}

Update RunStep(Mechanism& mechanism, const RowSpace& space, const StepUnits& units,
               noise::NoiseSource& noise) {
  return StepRunner(space, units).Run(mechanism, noise);
}

}  // namespace tacit::mechanism
