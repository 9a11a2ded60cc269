#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/row_space.h"
#include "model/examples.h"

// The seam between a model and a mechanism:
//   Select(activations) -> selection;  model.ClippedSum(selection, scale_rule) -> {sum, norms};
//   Finalize(sum) -> update.
namespace tacit::model {

// The embedding rows a step may write. Decided before any gradient is formed, because masking comes
// before clipping.
struct RowSelection {
  std::vector<uint8_t> kept;    // per row of Activations::rows: 1 = may be written
  std::vector<uint64_t> extra;  // rows no unit activated that are written all the same, ascending
  // Every row of the space is written: all activated ones are kept, and the rest, too many to list,
  // get an update of noise alone (Mechanism::FillUntouched). `extra` is then empty.
  bool every_row = false;
};

// A sum of gradients over all dense parameters and the selected rows; later the noisy update.
struct StepGradient {
  std::vector<float> dense;
  // The dense sums in steps of the rule's grid; `dense` is then all zero until Finalize. Empty if
  // the rule has no grid.
  std::vector<int64_t> dense_sums;
  std::vector<uint64_t> rows;   // kept and extra rows, ascending
  std::vector<size_t> row_end;  // per row: end of its floats in row_values
  std::vector<float> row_values;
  // The rows' sums in steps of the rule's grid, laid out as row_values, which are then all zero
  // until Finalize. Empty if the rule has no grid.
  std::vector<int64_t> row_sums;
  std::vector<uint32_t>
      kept_place;  // per row of Activations::rows: its place in `rows`, or kNotKept

  static constexpr uint32_t kNotKept = 0xffffffff;

  std::span<float> Row(size_t i) {
    const size_t begin = i == 0 ? 0 : row_end[i - 1];
    return {row_values.data() + begin, row_end[i] - begin};
  }
  std::span<int64_t> RowSum(size_t i) {
    const size_t begin = i == 0 ? 0 : row_end[i - 1];
    return {row_sums.data() + begin, row_end[i] - begin};
  }
  // Lays out zeroed rows for the selection and zeroed dense parameters.
  void Reset(const RowSpace& space, const Activations& activations, const RowSelection& selection,
             size_t dense_size);
};

// Squared gradient norms per unit, by group: group g of unit u is at [g * units + u].
struct GroupNorms {
  size_t groups = 0;
  size_t units = 0;
  std::vector<float> squared;
  // By how much rounding to the rule's grid can lengthen what a unit changes in the scaled sum, per
  // unit. Empty if the rule has no grid.
  std::vector<float> rounding = {};
  // By how much a unit moves the rounding errors of sums in floats, in units of the clip. Public.
  double error = 0;
};

// Returns by how much rounding each of a unit's numbers to the nearest step can lengthen the unit;
// a little more, because a float keeps it.
float RoundingOf(double step, size_t numbers);

// Turns one unit's squared group norms into the factor of each of its groups. Pure: the model calls
// it whenever its norms are known: for a batch at a time or, if a unit's work is large
// (sequence/sequence_model.h), for one unit at a time and from several threads at once.
class ScaleRule {
 public:
  virtual ~ScaleRule() = default;
  // False when every scale is 1 for any norms: the model then skips them, does not call
  // Scales and leaves GroupNorms::squared empty.
  virtual bool needs_norms() const { return true; }
  // A power of two: each unit's scaled gradient of a row, and each block of the dense sum, is
  // rounded to the nearest multiple of it and summed as integers. 0: all sums are in floats.
  // REQUIRES needs_norms() unless it is 0.
  virtual double grid_step() const { return 0; }
  // Sets scales[g * units + u] for every group and unit.
  virtual void Scales(const GroupNorms& norms, std::span<float> scales) const = 0;
};

// The rule without a clip.
class Unscaled final : public ScaleRule {
 public:
  bool needs_norms() const override { return false; }
  void Scales(const GroupNorms&, std::span<float> scales) const override {
    std::ranges::fill(scales, 1.0f);
  }
};

}  // namespace tacit::model
