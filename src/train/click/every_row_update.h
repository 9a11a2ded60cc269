#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "mechanism/mechanism.h"
#include "model/gradient.h"
#include "noise/noise.h"
#include "store/rows/working_rows.h"
#include "train/optimizer/optimizer.h"

namespace tacit::train {

// The update of a step that writes every row of the space (dense DP-SGD). Rows of the gradient move
// by it, all others by noise alone, drawn where it is applied. The tables are walked in chunks, and
// a chunk in blocks that fit the first-level cache. The noise source's workers share the blocks;
// each calls Mechanism::FillUntouched with a source of its own, so no buffer has the size of a
// table. Which draws go where depends on sizes alone.
//
// Works on any rows; on FlatRows a table is one chunk. On a cache in front of a store every row of
// the space becomes pinned until the commit it goes into is folded: that is for tables that fit in
// memory. Not thread-safe.
class EveryRowUpdate {
 public:
  // Both arguments must outlive this object.
  EveryRowUpdate(const RowSpace& space, const Optimizer& optimizer)
      : space_(space), optimizer_(optimizer) {}

  // Applies `gradient` after `mechanism` has finalized it. REQUIRES that its rows are all activated
  // rows. After a failure some rows have been updated and others not.
  Status Apply(mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
               model::StepGradient& gradient, store::WorkingRows& rows);

 private:
  // A chunk of consecutive rows of one table.
  struct Chunk {
    uint64_t first = 0;
    size_t rows = 0, dim = 0, row_floats = 0;
    float* flat = nullptr;  // the first row if all are contiguous; else null, see pointers_
  };

  void ApplyChunk(const Chunk& chunk, mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
                  model::StepGradient& gradient) const;
  void ApplyRows(const Chunk& chunk, size_t begin, size_t end, mechanism::Mechanism& mechanism,
                 noise::NoiseSource& noise, model::StepGradient& gradient) const;
  float* Row(const Chunk& chunk, size_t i) const {
    return chunk.flat != nullptr ? chunk.flat + i * chunk.row_floats : pointers_[i];
  }
  size_t RunLength(const Chunk& chunk, size_t begin, size_t end) const;

  const RowSpace& space_;
  const Optimizer& optimizer_;
  std::vector<uint64_t> ids_;  // row ids of the chunk; pointers_ matches
  std::vector<float*> pointers_;
};

}  // namespace tacit::train
