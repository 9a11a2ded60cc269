#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tacit::model {

// A step's examples as a model sees them: views, nothing owned. An embedding row is named by its
// place in the step's list of distinct rows (Activations::rows).
struct Examples {
  size_t size = 0;
  size_t units = 0;
  std::span<const uint32_t> unit_of;   // size; ascending from 0
  std::span<const float> label;        // size
  std::span<const float> dense;        // size x dense width
  std::span<const uint32_t> slot_end;  // size x slots: end in `slot_row` of each slot
  std::span<const uint32_t> slot_row;  // places in Activations::rows
  std::span<const float> weight = {};  // of each example's gradient, at least 0; if empty, all 1
  // Ends of the step's sum blocks, in examples (stream::StepBatch). If empty, it is one block.
  std::span<const uint32_t> block_end = {};
  // A step to learn from: no bit of what comes of one example depends on how many others there are.
  bool apart = false;
};

// The rows that each privacy unit activates, over one id space spanning all tables. Made from
// public shapes and private data alike: it never leaves the step.
struct Activations {
  std::vector<uint64_t> rows;      // distinct rows of the step, ascending
  std::vector<uint32_t> unit_end;  // per unit: end of its run in unit_row
  std::vector<uint32_t> unit_row;  // distinct places in `rows`, per unit
  std::vector<uint32_t> slot_row;  // per entry of the batch's row column: its place in `rows`

  size_t units() const { return unit_end.size(); }
  std::span<const uint32_t> UnitRows(size_t unit) const {
    const uint32_t begin = unit == 0 ? 0 : unit_end[unit - 1];
    return {unit_row.data() + begin, unit_end[unit] - begin};
  }
};

// Fills `out` (whose memory is reused) from a batch's row column: `slot_end` has size x slots
// entries, `row` the rows, `unit_of` the unit of each example. Linear, beside one radix sort.
class ActivationIndexer {
 public:
  void Index(std::span<const uint64_t> row, std::span<const uint32_t> slot_end, size_t slots,
             std::span<const uint32_t> unit_of, size_t units, Activations* out);

 private:
  std::vector<uint64_t> keys_, keys_swap_;
  std::vector<uint32_t> places_, places_swap_;
  std::vector<uint32_t> last_unit_;
};

}  // namespace tacit::model
