#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/sequence/unit_rows.h"

namespace tacit::cuda {

// The rows of some units, packed: one unit's behind the other's. Memory is kept.
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
  void Clear();
  // A unit without a row that predicts has no row here.
  void Append(const model::UnitRows& rows, uint64_t id, uint32_t coordinates_of);

  // The parts of one piece of memory that has all of it, each beginning at a multiple of 16 bytes.
  enum Part : size_t {
    kItem,
    kPosition,
    kCropEnd,
    kUnitEnd,
    kCounted,
    kTarget,
    kCountedEnd,
    kCropCountedEnd,
    kIdLow,
    kIdHigh,
    kWeight,
    kCoordinates,
    kParts
  };
  struct Place {
    const void* from = nullptr;
    size_t begin = 0, words = 0;
  };
  std::array<Place, kParts> Places() const;
  // The words of the piece; CopyTo writes them.
  size_t words() const;
  void CopyTo(std::span<uint32_t> words) const;
};

}  // namespace tacit::cuda
