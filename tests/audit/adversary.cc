#include "audit/adversary.h"

#include <cmath>

#include "base/check.h"

namespace tacit::audit {
namespace {

using Scales = std::array<double, kGroups>;

// The clips of src/mechanism, naively: one scale for all, or each group to its equal share. (The
// automatic clip differs from the flat one by 1/1000 on the gradients used here.)
Scales ScalesOf(const std::array<double, kGroups>& squared, bool per_layer, double clip) {
  Scales scales;
  double joint = 0;
  for (double s : squared) joint += s;
  for (size_t g = 0; g < kGroups; ++g) {
    const double norm = std::sqrt(per_layer ? squared[g] * kGroups : joint);
    scales[g] = norm > clip ? clip / norm : 1;
  }
  return scales;
}

std::array<double, kGroups> DenseSquared(const UnitGradient& unit) {
  std::array<double, kGroups> squared{};
  for (size_t i = 0; i < kDense; ++i) squared[i / kLayerSize] += unit.dense[i] * unit.dense[i];
  return squared;
}

}  // namespace

Adversary::Adversary(const Setting& setting, const Evidence& evidence)
    : evidence_(evidence),
      clip_(setting.clip_gradient),
      batch_(setting.expected_batch),
      dense_(setting.canary.dense),
      squared_(DenseSquared(setting.canary)),
      background_(kDense) {
  for (const auto& [row, gradient] : setting.canary.rows) {
    double squared = 0;
    for (double value : gradient) squared += value * value;
    rows_.push_back({.id = row, .gradient = gradient, .squared = squared});
  }
  for (const UnitGradient& unit : setting.background) {
    for (const auto& [row, gradient] : unit.rows) TACIT_CHECK(!setting.canary.rows.contains(row));
    if (unit.rows.empty()) {
      const Scales scales = ScalesOf(DenseSquared(unit), evidence.per_layer, clip_);
      for (size_t i = 0; i < kDense; ++i) background_[i] += scales[i / kLayerSize] * unit.dense[i];
      continue;
    }
    for (size_t i = 0; i < kDense; ++i)
      TACIT_CHECK(unit.dense[i] == 0 || setting.canary.dense[i] == 0);
  }
}

// Given what was written, the canary adds its masked and clipped gradient m to the sum, under noise
// of the standard deviation s: (<sum, m> - |m|^2 / 2) / s^2.
double Adversary::GradientLikelihood(const Update& update) const {
  auto squared = squared_;
  for (const Row& row : rows_)
    if (update.written[row.id]) squared[kGroups - 1] += row.squared;
  const Scales scales = ScalesOf(squared, evidence_.per_layer, clip_);
  double along = 0, length = 0;
  for (size_t i = 0; i < kDense; ++i) {
    const double m = scales[i / kLayerSize] * dense_[i];
    along += (double{update.dense[i]} * batch_ - background_[i]) * m;
  }
  for (const Row& row : rows_) {
    if (!update.written[row.id]) continue;
    const float* values = update.values.data() + update.row_begin[row.id];
    for (size_t i = 0; i < row.gradient.size(); ++i)
      along += double{values[i]} * batch_ * scales[kGroups - 1] * row.gradient[i];
  }
  for (size_t g = 0; g < kGroups; ++g) length += scales[g] * scales[g] * squared[g];
  const double stddev = evidence_.sigma_gradient * clip_;
  return (along - length / 2) / (stddev * stddev);
}

Statistics Adversary::Look(const View& view) const {
  Statistics statistics{};
  const Update& update = view.update;
  double& likelihood = statistics[kLikelihood];
  likelihood = GradientLikelihood(update) + evidence_.per_log_clip * view.log_clip;
  for (uint64_t row : evidence_.rows) {
    likelihood += update.written[row] ? evidence_.written : evidence_.unwritten;
    if (!view.counts.empty()) likelihood += evidence_.per_count * double{view.counts[row]};
  }
  if (!view.before.dense.empty())
    for (size_t i = 0; i < kDense; ++i)
      statistics[kDifference] += (update.dense[i] - view.before.dense[i]) * dense_[i];
  statistics[kContrast] = update.dense[0] - update.dense[1];
  for (const Row& row : rows_) {
    if (!update.written[row.id]) continue;
    const float* values = update.values.data() + update.row_begin[row.id];
    bool silent = true;
    for (size_t i = 0; i < row.gradient.size(); ++i) silent = silent && values[i] == 0;
    statistics[kSilence] += silent;
  }
  for (size_t i = 0; i < kDense; ++i) {
    const double fine = double{update.dense[i]} * batch_ / clip_ * 0x1p25;
    if (dense_[i] != 0) statistics[kFineBits] += fine != std::floor(fine);
  }
  return statistics;
}

}  // namespace tacit::audit
