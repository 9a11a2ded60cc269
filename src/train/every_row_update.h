#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "mechanism/mechanism.h"
#include "model/gradient.h"
#include "noise/noise.h"
#include "store/working_rows.h"
#include "train/optimizer.h"

namespace tacit::train {

// The update of a step that writes every row of the space (dense DP-SGD): rows of the gradient move
// by it, all others by noise alone, drawn where it is applied. Goes through the tables in chunks,
// and through a chunk in blocks that the first-level cache holds, on the workers of the noise
// source, each of which calls Mechanism::FillUntouched with a source of its own: no buffer of the
// size of a table. Which draws go where depends on sizes alone.
//
// Works on any rows; on FlatRows a table is one chunk. On a cache in front of a store every row of
// the space becomes pinned until the commit it goes into is folded: that is for tables that fit in
// memory. Not thread-safe.
class EveryRowUpdate {
 public:
  // Both must outlive it.
  EveryRowUpdate(const RowSpace& space, const Optimizer& optimizer)
      : space_(space), optimizer_(optimizer) {}

  // To be called after `mechanism` has finalized `gradient`, whose rows are all that somebody
  // activated. After a failure some rows have been updated and others not.
  Status Apply(mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
               model::StepGradient& gradient, store::WorkingRows& rows);

 private:
  // Rows of one table that lie side by side.
  struct Chunk {
    uint64_t first = 0;
    size_t rows = 0, dim = 0, row_floats = 0;
    float* flat = nullptr;  // where the first is, when they lie side by side; else see pointers_
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
  std::vector<uint64_t> ids_;  // of the chunk, as are the pointers
  std::vector<float*> pointers_;
};

}  // namespace tacit::train
