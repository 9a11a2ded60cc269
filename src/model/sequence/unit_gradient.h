#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/gradient.h"
#include "model/sequence/layout.h"
#include "model/sum_map.h"
#include "ops/matrix_buffer.h"
#include "ops/unit_ops.h"

namespace tacit::model {

// A sum over units of what a step's map makes of their gradients: in floats, or in whole steps of a
// rule's grid.
struct SequenceSum {
  std::vector<float> values;
  std::vector<int64_t> steps;  // where the rule has a grid; `values` is then empty
  GroupNorms norms;            // per unit, by group of the layout; empty where the rule needs none
  std::vector<float> loss;     // per unit. Un-noised, as the norms are: operator-only
};

// The rows of a table that one unit's gradient is in.
class TouchedRows {
 public:
  void Begin(size_t table_rows) {
    if (last_unit_.size() != table_rows) last_unit_.assign(table_rows, unit_ = 0);
    rows_.clear();
    if (++unit_ == 0) last_unit_.assign(table_rows, 0), unit_ = 1;
  }
  void Touch(uint32_t row) {
    if (last_unit_[row] == unit_) return;
    last_unit_[row] = unit_;
    rows_.push_back(row);
  }
  std::span<const uint32_t> rows() const { return rows_; }

 private:
  std::vector<uint32_t> rows_, last_unit_;
  uint32_t unit_ = 0;
};

// One worker's gradient of the current unit, laid out as a step's map says. It is formed in full,
// while it is in the caches: embeddings are read and predicted through the same rows, and ONE norm
// is taken, in the end, of the sum of both sides. (Paper 000's eq. 4.1 takes it as a sum of three
// terms that cancel, the first of them squared by mistake.) A unit's contribution is therefore
// known number by number, and rounded to the grid before it is summed: the sum does not depend on
// the order of units, nor on how many workers share them.
//
// If the whole catalogue's softmax writes a table, each unit overwrites it; of other tables the
// touched rows are listed, and are zero again when the unit is done.
class UnitGradient {
 public:
  UnitGradient(const SequenceLayout& layout, ops::UnitOps& ops);

  // Makes later units have what this map makes of their gradients. Comes before AddStraightTo and
  // FormEach; `map` must outlive those units.
  void SumBy(const SumMap& map);
  // Makes units add straight into `sum`, unscaled; the caller keeps `sum`. Norms and AddTo are then
  // not asked for.
  void AddStraightTo(std::span<float> sum);
  // Makes units form their gradients one by one.
  void FormEach();

  void BeginUnit();
  std::span<float> values() { return values_; }
  bool straight() const { return straight_; }
  // The numbers of what is `size` parameters from `offset`, without a matrix that has factors.
  std::span<float> Part(size_t offset, size_t size) {
    return values_.subspan(PlaceOf(offset), size);
  }
  // Adds a layer's gradient, given its input rows and the gradients of its output rows.
  Status AddLinear(const LinearLayer& layer, ops::ConstMatrix in, ops::ConstMatrix grad);
  // Single rows of the item table and of the output table (the items' own if it is tied), for the
  // caller to add into.
  float* ItemRow(uint32_t item) { return Row(layout_.items(), items_dense_, &items_, item); }
  float* OutputRow(uint32_t item) {
    return layout_.options().tied ? ItemRow(item)
                                  : Row(layout_.output(), output_is_dense_, &output_, item);
  }

  // Sets squared[g] for each group of the layout; a matrix with factors has the norm of both parts.
  void SquaredNorms(std::span<float> squared);
  // The count of numbers in this unit's gradient.
  size_t Coordinates() const;
  // sum += scale[g] * the unit's group g.
  void AddTo(std::span<const float> scale, std::span<float> sum);
  // The same in steps of a grid, each number rounded once.
  void AddTo(std::span<const float> scale, double step, std::span<int64_t> sum);
  void EndUnit();

 private:
  size_t PlaceOf(size_t offset) const { return map_->PlaceOf(offset); }
  Status AddThin(const SumMap::Pair& pair, size_t place, ops::ConstMatrix in,
                 ops::ConstMatrix grad);
  float* Row(const ParameterTable& table, bool dense, TouchedRows* touched, uint32_t row) {
    if (!straight_ && !dense) touched->Touch(row);
    return values_.data() + table.offset + row * table.cols;
  }
  // The rows of a group that is written row by row, or null.
  const TouchedRows* RowsOf(size_t group) const;
  // Calls body(offset, size) for each run of numbers of a group that may not be zero.
  template <class Body>
  void ForRuns(size_t group, const Body& body) const;

  const SequenceLayout& layout_;
  ops::UnitOps& ops_;
  const bool output_is_dense_, items_dense_;
  const size_t rest_;  // start of what is neither table
  const SumMap* map_ = &kWholeGradient;
  size_t size_;  // numbers
  ops::MatrixBuffer<float> projected_;
  std::vector<float> own_;
  std::span<float> values_;
  bool straight_ = false;
  TouchedRows items_, output_;
};

}  // namespace tacit::model
