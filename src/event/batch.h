#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "event/text_column.h"

namespace tacit::event {

// No item, or one that the catalogue lacks.
inline constexpr uint32_t kNoItem = 0xffffffff;

// Decoded examples in columns, all of one partition and in offset order. Pipeline stages pass
// batches, never single events. A batch is cleared and filled again and keeps its memory.
struct Batch {
  int32_t partition = 0;
  size_t dense_width = 0;  // numbers per example
  size_t slots = 0;        // categorical features per example

  std::vector<uint64_t> offset;       // each example's offset in its partition
  std::vector<int64_t> timestamp_ms;  // 0 when the source has none
  std::vector<float> label;           // 0 or 1
  std::vector<float> dense;           // size() x dense_width, transformed
  std::vector<uint32_t> slot_end;     // size() x slots: end in `row` of each example's slot
  std::vector<uint64_t> row;          // rows of the learner's id space (RowSpace)
  std::vector<float> weight;          // shares of the largest weight, in [0, 1]; if empty, all 1
  std::vector<uint32_t> item;         // item of the ItemCatalogue, or kNoItem; empty without one
  TextColumn user, event_id;          // empty columns when the source has none

  size_t size() const { return label.size(); }
  float WeightOf(size_t i) const { return weight.empty() ? 1.0f : weight[i]; }
  // The rows of slot s of example i.
  std::span<const uint64_t> Slot(size_t i, size_t s) const {
    const size_t at = i * slots + s;
    const uint32_t begin = at == 0 ? 0 : slot_end[at - 1];
    return {row.data() + begin, slot_end[at] - begin};
  }
  void Clear();
  // Appends examples [begin, end) of `other`, which has the same shape.
  void AppendRange(const Batch& other, size_t begin, size_t end);
};

// An empty batch of the same shape and partition.
Batch EmptyLike(const Batch& batch);

}  // namespace tacit::event
