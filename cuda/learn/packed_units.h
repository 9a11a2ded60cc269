#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/sequence/unit_rows.h"

namespace tacit::cuda {

// The rows of some units, packed: one unit's behind the other's.
struct PackedUnits {
  std::vector<uint32_t> item, position, crop_end, unit_end;
  // Rows that predict: which of those, their item and weight; per unit and crop where its own end.
  std::vector<uint32_t> counted, target, counted_end, crop_counted_end;
  std::vector<uint32_t> id_low, id_high;  // per unit
  std::vector<float> weight;
  std::vector<uint32_t> coordinates;  // per unit: the numbers in its gradient
  uint32_t longest = 0;               // crop

  size_t units() const { return unit_end.size(); }
  size_t rows() const { return item.size(); }
  void Clear() { *this = {}; }
  // A unit without a row that predicts has no row here.
  void Append(const model::UnitRows& rows, uint64_t id, uint32_t coordinates_of);
};

}  // namespace tacit::cuda
