#pragma once

#include <memory>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "store/working_rows.h"

namespace tacit::train {

// Dense DP-SGD whose noise on rows that nobody looks at is drawn later, for experiments: what a row
// owes after k steps in which nobody activated it is one draw of variance k sigma^2, made when the
// row is next gathered. Who gathers sees what eager noise would have shown: the law of everything
// read, over all rows and times together, is the same. A step then costs what the batch costs and
// not what the table costs.
//
// ONLY for `evaluate`, where nobody but the experiment sees a row. An owed draw belongs to the
// row's one history: a reader who drew it again would average the noise away, and a row that has
// not been settled is a row without noise, as private as the data. It is no way to serve, commit or
// checkpoint. It holds for plain SGD alone, where noise adds up: Adam, momentum and averages of
// weights are not linear in it or see each step's.
//
// On the grid: k steps' eager noise is a sum of k draws, each a Gaussian rounded to steps of 2^-30
// of the clip with a dither; here it is one such draw times sqrt(k). Mean and variance are equal
// exactly, the laws to within the dither, 1e-5 of a deviation.
struct LazyDense {
  std::unique_ptr<mechanism::Mechanism> mechanism;  // for the learner
  std::unique_ptr<store::WorkingRows> rows;         // likewise; both of one learner
};

// `dense` selects every row and draws the same noise in every step (no clip that adapts: checked).
// `row_learning_rate` is that of the learner's SGD; `noise` pays what rows owe.
LazyDense MakeLazyDense(std::unique_ptr<mechanism::Mechanism> dense,
                        std::unique_ptr<store::WorkingRows> rows, store::RowLayout layout,
                        float row_learning_rate, std::unique_ptr<noise::NoiseSource> noise);

}  // namespace tacit::train
