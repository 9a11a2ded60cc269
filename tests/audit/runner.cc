#include "audit/runner.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::audit {

StepRunner::StepRunner(const RowSpace& space, const StepUnits& units, ModelFault fault)
    : space_(space), fault_(fault), activations_(mechanism::ActivationsOf(units)) {
  for (const UnitGradient& unit : units) {
    TACIT_CHECK(unit.dense.size() == kDense);
    dense_.emplace_back(unit.dense.begin(), unit.dense.end());
    std::vector<UnitRow>& rows = rows_.emplace_back();
    for (const auto& [row, values] : unit.rows) {
      const auto at = std::ranges::lower_bound(activations_.rows, row);
      UnitRow& unit_row = rows.emplace_back();
      unit_row.row = row;
      unit_row.place = static_cast<uint32_t>(at - activations_.rows.begin());
      unit_row.gradient.assign(values.begin(), values.end());
      for (double value : values) unit_row.squared += static_cast<float>(value * value);
    }
  }
  norms_ = {.groups = kGroups, .units = units.size(), .squared = {}, .rounding = {}};
}

void StepRunner::Run(mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
                     const Update* before, Update* update) {
  if (mechanism.row_score_clip() > 0 && scores_.empty()) Score(mechanism.row_score_clip());
  mechanism.Select({.activations = activations_, .scores = scores_}, noise, &selection_);
  sum_.Reset(space_, activations_, selection_, kDense);
  const double grid_step = mechanism.scale_rule().grid_step();
  TACIT_CHECK(grid_step > 0, "what is audited sums on a grid");
  FormNorms(grid_step, before);
  scales_.resize(norms_.squared.size());
  mechanism.scale_rule().Scales(norms_, scales_);
  FormSum(grid_step);
  mechanism.Finalize(noise, norms_, &sum_);
  Publish(mechanism, noise, update);
}

void StepRunner::Score(double clip) {
  scores_.assign(activations_.rows.size(), 0);
  for (const auto& rows : rows_) {
    for (const UnitRow& row : rows) {
      const double norm = std::sqrt(row.squared);
      scores_[row.place] += fault_ == ModelFault::kScoresUnclipped ? norm : std::min(clip, norm);
    }
  }
}

void StepRunner::FormNorms(double grid_step, const Update* before) {
  const size_t units = norms_.units;
  norms_.squared.assign(kGroups * units, 0);
  norms_.rounding.assign(units, 0);
  for (size_t u = 0; u < units; ++u) {
    for (size_t i = 0; i < kDense; ++i)
      norms_.squared[i / kLayerSize * units + u] += dense_[u][i] * dense_[u][i];
    size_t coordinates = 0;
    for (const UnitRow& row : rows_[u]) {
      bool counts = selection_.kept[row.place];
      if (counts) coordinates += row.gradient.size();
      if (fault_ == ModelFault::kClipBeforeMask) counts = true;
      if (fault_ == ModelFault::kMaskOfLastStep && before != nullptr)
        counts = before->written[row.row];
      if (counts) norms_.squared[(kGroups - 1) * units + u] += row.squared;
    }
    norms_.rounding[u] = static_cast<float>(
        grid_step * (std::sqrt(double{kDense}) + std::sqrt(static_cast<double>(coordinates)) / 2));
  }
}

void StepRunner::FormSum(double grid_step) {
  const size_t units = norms_.units;
  sum_.row_sums.assign(sum_.row_values.size(), 0);
  for (size_t u = 0; u < units; ++u) {
    for (size_t i = 0; i < kDense; ++i)
      sum_.dense[i] += scales_[i / kLayerSize * units + u] * dense_[u][i];
    const double scale = scales_[(kGroups - 1) * units + u];
    for (const UnitRow& row : rows_[u]) {
      const uint32_t place = sum_.kept_place[row.place];
      if (place == model::StepGradient::kNotKept) continue;
      const auto sums = sum_.RowSum(place);
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += std::llrint(scale * double{row.gradient[i]} / grid_step);
    }
  }
  for (const float x : sum_.dense) sum_.dense_sums.push_back(std::llrint(double{x} / grid_step));
}

void StepRunner::Publish(mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
                         Update* update) {
  if (update->row_begin.empty()) {
    size_t floats = 0;
    for (uint64_t row = 0; row < space_.rows(); ++row) {
      update->row_begin.push_back(floats);
      floats += space_.tables()[space_.TableOf(row)].dim;
    }
    update->values.resize(floats);
  }
  update->dense.assign(sum_.dense.begin(), sum_.dense.end());
  update->written.assign(space_.rows(), 0);
  std::fill(update->values.begin(), update->values.end(), 0.0f);
  for (size_t i = 0; i < sum_.rows.size(); ++i) {
    update->written[sum_.rows[i]] = 1;
    std::ranges::copy(sum_.Row(i), update->values.begin() +
                                       static_cast<ptrdiff_t>(update->row_begin[sum_.rows[i]]));
  }
  if (!selection_.every_row) return;
  for (uint64_t row = 0; row < space_.rows(); ++row) {
    if (update->written[row]) continue;
    const size_t end = row + 1 < space_.rows() ? update->row_begin[row + 1] : update->values.size();
    update->written[row] = 1;
    mechanism.FillUntouched(
        noise,
        std::span(update->values).subspan(update->row_begin[row], end - update->row_begin[row]));
  }
}

}  // namespace tacit::audit
