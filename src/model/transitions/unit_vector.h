#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tacit::model::transitions {

// One unit's weights on the cells of a query, added up as they come. Its memory is that of the
// query's cells and is used again from unit to unit; work is that of the cells that have weight.
class UnitVector {
 public:
  explicit UnitVector(size_t cells) : place_(cells, 0) {}

  // REQUIRES weight > 0.
  void Add(uint32_t cell, double weight) {
    uint32_t& place = place_[cell];
    if (place == 0) {
      cells_.push_back(cell);
      weights_.push_back(weight);
      place = static_cast<uint32_t>(cells_.size());
    } else {
      weights_[place - 1] += weight;
    }
  }
  bool Has(uint32_t cell) const { return place_[cell] != 0; }
  void Clear() {
    for (uint32_t cell : cells_) place_[cell] = 0;
    cells_.clear();
    weights_.clear();
  }

  // Distinct, in the order in which they came.
  std::span<const uint32_t> cells() const { return cells_; }
  std::span<const double> weights() const { return weights_; }

 private:
  std::vector<uint32_t> place_;  // per cell its place in cells_, from 1
  std::vector<uint32_t> cells_;
  std::vector<double> weights_;
};

// Each of a history's last `items_most` items, once, whatever it was repeated.
inline void AddPopularity(std::span<const uint32_t> history, uint32_t items_most,
                          UnitVector* vector) {
  for (const uint32_t item : history.last(std::min<size_t>(history.size(), items_most)))
    if (!vector->Has(item)) vector->Add(item, 1);
}

// visit(a, b, weight) for every two different items of a history, a before b, not further apart
// than `lags`: weight decay^(lag - 1). The same pair may come more than once.
template <class Visit>
void ForPairs(std::span<const uint32_t> history, uint32_t lags, double decay, const Visit& visit) {
  for (size_t i = 1; i < history.size(); ++i) {
    double weight = 1;
    for (size_t lag = 1; lag <= std::min<size_t>(lags, i); ++lag, weight *= decay)
      if (history[i - lag] != history[i]) visit(history[i - lag], history[i], weight);
  }
}

}  // namespace tacit::model::transitions
