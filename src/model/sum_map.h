#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ops/backend.h"

namespace tacit::model {

// A linear map from the gradient of a flat vector of parameters to the numbers that a step sums,
// bounds and noises in its place. This one maps a gradient to itself. Another may give weight
// matrices W, in x out, two thin factors: dW is then replaced by
//     (dW) right^T (in x r), then left (dW) (r x out)
// and all numbers outside such matrices stay. A map is a function of released parameters and of
// public coins alone, and so costs no privacy. Not thread-safe; one per trainer.
class SumMap {
 public:
  // A weight matrix, input-major, from `offset` of the flat parameters.
  struct Weights {
    size_t in = 0, out = 0, offset = 0;
  };
  // The factors of one matrix.
  struct Pair {
    ops::ConstMatrix left;   // rank x in
    ops::ConstMatrix right;  // rank x out
    size_t rank() const { return left.rows; }
  };

  virtual ~SumMap() = default;

  // The place in the sum of what begins at `offset` of the parameters; of their end: the sum's
  // size.
  virtual size_t PlaceOf(size_t offset) const { return offset; }
  // Returns the factors of the matrix that begins at `offset`, or null if it stays as it is.
  virtual const Pair* PairAt(size_t) const { return nullptr; }
  // Makes the factors of a step, which counts from 0. `parameters` must have been released.
  virtual Status Choose(uint64_t, std::span<const float>) { return {}; }
  // Turns a noised sum of the step into the gradient of all parameters, valid until the next call
  // or as long as `sum` is.
  virtual Result<std::span<const float>> Expand(std::span<const float> sum) { return sum; }
};

inline const SumMap kWholeGradient;

// The map that a learner takes.
struct SumMapOptions {
  uint32_t rank = 0;              // of a matrix's factors; 0: the whole gradient is summed
  std::string_view refusal = {};  // why there is no such map; empty: there is
  // Null where the rank is 0. `weights` ascend and do not overlap. `initial` are the parameters of
  // the learner's start, the same after a restart. `seed` is public. `backend` outlives the map.
  std::function<std::unique_ptr<SumMap>(std::vector<SumMap::Weights> weights,
                                        std::span<const float> initial, uint64_t seed,
                                        ops::Backend& backend)>
      make = nullptr;

  explicit operator bool() const { return rank > 0; }
  std::unique_ptr<SumMap> Make(auto&&... arguments) const {
    return make ? make(std::forward<decltype(arguments)>(arguments)...)
                : std::make_unique<SumMap>();
  }
};

// The numbers that such a map keeps: the initial weights of the matrices, the way of one of them
// from there, and the gradient of all parameters that it makes.
inline size_t NumbersKept(std::span<const SumMap::Weights> matrices, size_t parameters) {
  size_t kept = parameters, largest = 0;
  for (const SumMap::Weights& matrix : matrices) {
    kept += matrix.in * matrix.out;
    largest = std::max(largest, matrix.in * matrix.out);
  }
  return kept + largest;
}

// True if factors of this rank are fewer numbers than a matrix of in x out.
inline bool FactorsSave(uint32_t rank, size_t in, size_t out) {
  return rank * (in + out) < in * out;
}

}  // namespace tacit::model
