#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace tacit::mechanism {

// One unit's weights on the cells of a query, summed per cell: no cell is there twice, and each is
// one of the query's. Its memory is that of the query's cells and is reused from unit to unit; its
// work is that of the cells that have weight.
class UnitVector {
 public:
  explicit UnitVector(size_t cells) : place_(cells, 0) {}

  // The number of the query's cells.
  size_t size() const { return place_.size(); }
  // The query has got further cells, behind those that it had.
  void Grow(size_t cells) {
    TACIT_CHECK(cells >= place_.size(), "a query does not lose cells");
    place_.resize(cells, 0);
  }
  // REQUIRES a cell of the query.
  void Add(uint32_t cell, double weight) {
    TACIT_CHECK(cell < place_.size(), "a cell that the query does not have");
    uint32_t& place = place_[cell];
    if (place == 0) {
      cells_.push_back(cell);
      weights_.push_back(weight);
      place = static_cast<uint32_t>(cells_.size());
    } else {
      weights_[place - 1] += weight;
    }
  }
  // Adds to a cell and to the one behind it, by one look-up. REQUIRES that nothing else adds to
  // either of the two.
  void AddPair(uint32_t cell, double weight, double next_weight) {
    TACIT_CHECK(size_t{cell} + 1 < place_.size(), "a cell that the query does not have");
    uint32_t& place = place_[cell];
    if (place == 0) {
      cells_.insert(cells_.end(), {cell, cell + 1});
      weights_.insert(weights_.end(), {weight, next_weight});
      place = static_cast<uint32_t>(cells_.size()) - 1;
    } else {
      weights_[place - 1] += weight;
      weights_[place] += next_weight;
    }
  }
  // Asks for the cell's memory ahead of its use. REQUIRES a cell of the query.
  void Prefetch(uint32_t cell) const { __builtin_prefetch(&place_[cell], /*rw=*/1); }
  bool Has(uint32_t cell) const { return place_[cell] != 0; }
  void Clear() {
    for (uint32_t cell : cells_) place_[cell] = 0;
    cells_.clear();
    weights_.clear();
  }

  // Distinct cells, in the order in which they were first added.
  std::span<const uint32_t> cells() const { return cells_; }
  std::span<const double> weights() const { return weights_; }

 private:
  std::vector<uint32_t> place_;  // per cell its place in cells_, from 1
  std::vector<uint32_t> cells_;
  std::vector<double> weights_;
};

}  // namespace tacit::mechanism
