#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ops/backend.h"
#include "ops/matrix_buffer.h"

namespace tacit::model {

// Low-rank carriers of gradients (paper 004, "RGP"). Beside a weight matrix W, in x out, stand L,
// in x r with orthonormal columns, and R, r x out with orthonormal rows. In place of dW a step sums
// and noises
//     dL = (dW) R^T        dR = L^T (dW)
// which are r (in + out) numbers for in * out, and the update is made of what was noised:
//     (dL) R + L (dR) - L L^T (dL) R
// That is dW projected to the matrices whose columns, or rows, L or R spans.
struct CarrierOptions {
  enum class Source {
    kHistorical,  // the main directions of W - W_0: those in which the learner has moved
    kRandom,      // drawn anew for every step
  };
  Source source = Source::kHistorical;
  uint32_t rank = 8;
  uint32_t power_steps = 1;    // historical: steps of the power method
  uint64_t warm_up_steps = 0;  // historical: the learner's first steps, in which W itself is used
};

// True if carriers of this rank are fewer numbers than a matrix of in x out.
inline bool CarriersSave(uint32_t rank, size_t in, size_t out) {
  return rank * (in + out) < in * out;
}

// The carriers of one step, for weight matrices inside a flat vector of parameters. They are a
// function of released parameters and of public coins alone, and so cost no privacy; the same step
// of the same learner has the same ones after a restart. Matrices for which they would not be fewer
// numbers have none, and are summed as they are, like all parameters outside the matrices.
//
// Not thread-safe; one per trainer. Choose and Expand need no memory after the first call.
class Carriers {
 public:
  // A weight matrix, input-major, from `offset` of the flat parameters.
  struct Weights {
    size_t in = 0, out = 0, offset = 0;
  };
  // The carriers of one matrix. Empty (rank 0): it has none.
  struct Pair {
    ops::ConstMatrix left;   // L^T, rank x in
    ops::ConstMatrix right;  // R, rank x out
    size_t rank() const { return left.rows; }
  };

  // `weights` ascend and do not overlap. `initial` are the parameters that the learner began with,
  // the same after every restart. `seed` is public. `backend` must outlive the carriers.
  Carriers(const CarrierOptions& options, std::vector<Weights> weights,
           std::span<const float> initial, uint64_t seed, ops::Backend& backend);

  // The numbers of a step's dense sum, and the place in it of what begins at `offset` of the
  // parameters: a matrix with carriers has dL (in x r), then dR (r x out).
  size_t sum_size() const { return parameters_ - saved_; }
  size_t PlaceOf(size_t offset) const;
  const Pair& pair(size_t matrix) const { return pairs_[matrix]; }
  // Returns the pair of the matrix that begins at `offset` of the parameters, or null if it has
  // none.
  const Pair* PairAt(size_t offset) const;

  // Makes the carriers of a step, which counts from 0. `parameters` must have been released.
  Status Choose(uint64_t step, std::span<const float> parameters);
  // Turns a noised sum of the step into the gradient of all parameters.
  Status Expand(std::span<const float> sum, std::span<float> gradient);

 private:
  Status ChooseHistorical(size_t matrix, uint64_t step, std::span<const float> parameters);
  Status ExpandMatrix(size_t matrix, std::span<const float> sum, std::span<float> gradient);
  // Makes the rows of x orthonormal. What a row adds to those before it may be rounding alone; a
  // row of public coins then takes its place.
  void Orthonormalise(ops::Matrix x, uint64_t step, uint32_t coins);
  void DrawNormal(ops::Matrix x, uint64_t step, uint32_t coins) const;
  size_t SavedBy(const Weights& weights) const;

  const CarrierOptions options_;
  const std::vector<Weights> weights_;
  const size_t parameters_;
  const uint64_t seed_;
  ops::Backend& backend_;
  size_t saved_ = 0;
  std::vector<std::vector<float>> initial_;             // per matrix; empty: it has no carriers
  std::vector<ops::MatrixBuffer<float>> left_, right_;  // per matrix
  std::vector<Pair> pairs_;

  // Working memory.
  ops::MatrixBuffer<float> moved_, crossed_, corrected_;
  std::vector<double> rows_;
};

}  // namespace tacit::model
