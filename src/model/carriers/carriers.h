#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/sum_map.h"
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

// The carriers of one step: of a pair, L^T is on the left, R on the right. The same step of the
// same learner has the same ones after a restart. Matrices for which they would not be fewer
// numbers have none, and are summed as they are. Choose and Expand need no memory after the first
// call.
class Carriers final : public SumMap {
 public:
  // Takes the arguments of SumMapOptions::make.
  Carriers(const CarrierOptions& options, std::vector<Weights> weights,
           std::span<const float> initial, uint64_t seed, ops::Backend& backend);

  size_t sum_size() const { return PlaceOf(parameters_); }
  // The pair; of rank 0 where the matrix has no carriers.
  const Pair& pair(size_t matrix) const { return pairs_[matrix]; }
  size_t PlaceOf(size_t offset) const override;
  const Pair* PairAt(size_t offset) const override;
  Status Choose(uint64_t step, std::span<const float> parameters) override;
  Result<std::span<const float>> Expand(std::span<const float> sum) override;

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
  std::vector<std::vector<float>> initial_;             // per matrix; empty: it has no carriers
  std::vector<ops::MatrixBuffer<float>> left_, right_;  // per matrix
  std::vector<Pair> pairs_;

  // Working memory.
  ops::MatrixBuffer<float> moved_, crossed_, corrected_;
  std::vector<double> rows_;
  std::vector<float> gradient_;
};

// The `make` of CarriersOf.
struct CarrierMaker {
  CarrierOptions options;
  std::unique_ptr<SumMap> operator()(auto&&... arguments) const {
    return std::make_unique<Carriers>(options, std::forward<decltype(arguments)>(arguments)...);
  }
};

// The map of such carriers, or its refusal.
SumMapOptions CarriersOf(const CarrierOptions& options);

}  // namespace tacit::model
