#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "stream/steps/participation.h"

namespace tacit::cuda {

// A part of a step that goes through the model at a time: whole units, side by side.
struct StepChunk {
  uint32_t first_unit = 0, first_example = 0, first_entry = 0;
  uint32_t entries = 0;
  bool one_row_each = true;                // every unit has exactly one example
  std::vector<uint32_t> unit_of = {};      // per example: its unit, counted from the first
  std::vector<uint32_t> example_end = {};  // per unit: end of its examples, counted from the same
  uint32_t first_piece = 0;
  // The pieces of its sums (ops::SumPieces), with ends counted from the chunk's first example. The
  // only chunk of a step has some without examples at the end, which fill it up. The last block may
  // go on in the next chunk.
  std::vector<uint32_t> piece_end = {}, piece_closes = {};

  uint32_t examples() const { return static_cast<uint32_t>(unit_of.size()); }
  uint32_t units() const { return static_cast<uint32_t>(example_end.size()); }
};

// Cuts a step into parts of at most `examples_max` examples; one part at least. A sum block is in
// one part, or begins one where it has more examples: so no other block's units decide where it is
// cut. `slots` is that of the examples, 0 for a model without tables. Fails with kRefused if a unit
// alone has more.
Result<std::vector<StepChunk>> CutIntoChunks(const stream::StepBatch& step, uint32_t slots,
                                             uint32_t examples_max);

}  // namespace tacit::cuda
