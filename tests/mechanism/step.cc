#include "step.h"

#include <algorithm>
#include <set>

namespace tacit::mechanism {
namespace {

uint32_t DimOf(const RowSpace& space, uint64_t row) {
  return space.tables()[space.TableOf(row)].dim;
}

uint32_t PlaceOf(const std::vector<uint64_t>& rows, uint64_t row) {
  return static_cast<uint32_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
}

// Zeroed rows for what was selected.
model::StepGradient Layout(const RowSpace& space, const model::Activations& activations,
                           const model::RowSelection& selection, double grid_step) {
  model::StepGradient sum;
  sum.dense.assign(kDenseSize, 0);
  sum.rows = selection.extra;
  for (size_t i = 0; i < activations.rows.size(); ++i)
    if (selection.kept[i]) sum.rows.push_back(activations.rows[i]);
  std::sort(sum.rows.begin(), sum.rows.end());
  size_t end = 0;
  for (uint64_t row : sum.rows) sum.row_end.push_back(end += DimOf(space, row));
  sum.row_values.assign(end, 0);
  if (grid_step > 0) sum.row_sums.assign(end, 0);
  return sum;
}

// Squared norms of the dense part and of the selected rows, per unit, and what rounding adds.
model::GroupNorms NormsOf(const StepUnits& units, const model::Activations& activations,
                          const model::RowSelection& selection, double grid_step) {
  model::GroupNorms norms{.groups = 2, .units = units.size(), .squared = {}, .rounding = {}};
  norms.squared.assign(2 * units.size(), 0);
  for (size_t u = 0; u < units.size(); ++u) {
    double dense = 0, rows = 0, coordinates = 0;
    for (double value : units[u].dense) dense += value * value;
    for (const auto& [row, values] : units[u].rows) {
      if (!selection.kept[PlaceOf(activations.rows, row)]) continue;
      coordinates += static_cast<double>(values.size());
      for (double value : values) rows += value * value;
    }
    if (grid_step > 0)
      norms.rounding.push_back(static_cast<float>(
          grid_step * (std::sqrt(double{kDenseSize}) + std::sqrt(coordinates) / 2)));
    norms.squared[u] = static_cast<float>(dense);
    norms.squared[units.size() + u] = static_cast<float>(rows);
  }
  return norms;
}

}  // namespace

model::Activations ActivationsOf(const StepUnits& units) {
  std::set<uint64_t> rows;
  for (const UnitGradient& unit : units)
    for (const auto& [row, values] : unit.rows) rows.insert(row);
  model::Activations activations;
  activations.rows.assign(rows.begin(), rows.end());
  for (const UnitGradient& unit : units) {
    for (const auto& [row, values] : unit.rows)
      activations.unit_row.push_back(PlaceOf(activations.rows, row));
    activations.unit_end.push_back(static_cast<uint32_t>(activations.unit_row.size()));
  }
  return activations;
}

Update RunStep(Mechanism& mechanism, const RowSpace& space, const StepUnits& units,
               noise::NoiseSource& noise) {
  const model::Activations activations = ActivationsOf(units);
  model::RowSelection selection;
  mechanism.Select({.activations = activations}, noise, &selection);
  const double step = mechanism.scale_rule().grid_step();
  model::StepGradient sum = Layout(space, activations, selection, step);
  const model::GroupNorms norms = NormsOf(units, activations, selection, step);
  std::vector<float> scales(norms.squared.size());
  mechanism.scale_rule().Scales(norms, scales);
  for (size_t u = 0; u < units.size(); ++u) {
    for (size_t i = 0; i < kDenseSize; ++i)
      sum.dense[i] += scales[u] * static_cast<float>(units[u].dense[i]);
    for (const auto& [row, values] : units[u].rows) {
      if (!selection.kept[PlaceOf(activations.rows, row)]) continue;
      const size_t place = PlaceOf(sum.rows, row);
      for (size_t i = 0; i < values.size(); ++i) {
        const double scaled = double{scales[units.size() + u]} * values[i];
        if (step > 0) {
          sum.RowSum(place)[i] += std::llround(scaled / step);
        } else {
          sum.Row(place)[i] += static_cast<float>(scaled);
        }
      }
    }
  }
  mechanism.Finalize(noise, norms, &sum);
  Update update;
  update.dense.assign(sum.dense.begin(), sum.dense.end());
  for (size_t i = 0; i < sum.rows.size(); ++i) {
    const auto values = sum.Row(i);
    update.rows[sum.rows[i]].assign(values.begin(), values.end());
  }
  return update;
}

}  // namespace tacit::mechanism
