#pragma once

#include <memory>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "store/rows/working_rows.h"

namespace tacit::lab {

// Dense DP-SGD for experiments that postpones the noise on rows until they are read. A row that no
// unit activated in k steps owes one draw of variance k sigma^2, made when the row is next
// gathered. The reader sees what eager noise would have shown: the joint law of all values read,
// over all rows and times, is the same. A step then costs in proportion to the batch, not to the
// table.
//
// ONLY for `evaluate`, where only the experiment sees a row. An owed draw belongs to the
// row's one history. A reader who drew it again would average the noise away, and an unsettled row
// has no noise and is as private as the data. Never serve, commit or checkpoint such rows. The
// method holds for plain SGD alone, where noise adds up: Adam, momentum and weight averages are not
// linear in the noise or see each step's.
//
// On the grid: k steps' eager noise is a sum of k draws, each a Gaussian rounded to steps of 2^-30
// of the clip with a dither; here it is one such draw times sqrt(k). Mean and variance are equal
// exactly, the laws to within the dither, 1e-5 of a deviation.
struct LazyDense {
  std::unique_ptr<mechanism::Mechanism> mechanism;  // for the learner
  std::unique_ptr<store::WorkingRows> rows;         // for the same learner
};

// REQUIRES that `dense` selects every row and draws the same noise in every step (no adaptive clip:
// checked). `row_learning_rate` is that of the learner's SGD; `noise` draws the owed noise.
LazyDense MakeLazyDense(std::unique_ptr<mechanism::Mechanism> dense,
                        std::unique_ptr<store::WorkingRows> rows, store::RowLayout layout,
                        float row_learning_rate, std::unique_ptr<noise::NoiseSource> noise);

}  // namespace tacit::lab
