#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/sum_blocks.h"
#include "model/sum_map.h"
#include "ops/backend.h"

namespace tacit::model {

// One linear layer: `in` x `out` weights, input-major, then `out` biases, from `offset` of the flat
// parameters. Biases follow the weights at once, so weights and biases are together one matrix of
// in + 1 rows: the gradient of an input row with a 1 appended.
struct LinearLayer {
  size_t in = 0, out = 0, offset = 0;

  size_t size() const { return (in + 1) * out; }
  ops::ConstMatrix Weights(std::span<const float> dense) const {
    return {dense.data() + offset, in, out};
  }
  std::span<const float> Biases(std::span<const float> dense) const {
    return dense.subspan(offset + in * out, out);
  }
};

// Linear layers with ReLU between them and one output. It keeps all that one backward pass needs
// (book-keeping): each layer's input rows and output gradients. Two versions, f32 and bf16; in the
// second every kept number and every weight is rounded once, and norms are of the rounded numbers.
//
// Calls come in order: Forward, Backward, then the rest. Not thread-safe. Memory grows to the
// largest batch.
class DenseNet {
 public:
  virtual ~DenseNet() = default;

  // `input` is rows x layers[0].in; `logits` one per row. The calls below that name units or scales
  // take the first rows: the caller may put rows of zeros behind them (ops::kRowGrain).
  virtual Status Forward(std::span<const float> dense, ops::ConstMatrix input,
                         std::span<float> logits) = 0;
  // Takes the logits' gradient. `input_gradient` gets the gradient of the input's first columns, as
  // many as it has. The parameters must still be those of Forward.
  virtual Status Backward(std::span<const float> dlogit, ops::Matrix input_gradient) = 0;
  // Has the calls below, until the next Backward, give and bound the sums of what `map` makes of
  // the gradients: where a layer's weights have factors, its rows are projected here, so that no
  // unit's gradient is formed. `map` must live as long; until this, it is kWholeGradient.
  virtual Status SumBy(const SumMap& map) = 0;
  // Squared norms of a layer's gradient, weights and biases, per unit (rows end at unit_end[u]). A
  // unit of several rows gets an upper bound, because its rows may cancel and two things do not:
  // what rounding adds to the rows when they are scaled (at most 2^-24 of each, in bf16 2^-8), and
  // the error they leave in a sum of floats. So the norm is also at least (sum of row lengths) /
  // kRowsOverNorm.
  virtual void SquaredNorms(size_t layer, std::span<const uint32_t> unit_end,
                            std::span<float> out) = 0;
  // Wipes a row's inputs and gradients, so that it adds exact zeros to every sum.
  virtual void ClearRow(size_t row) = 0;
  // gradient = the sum of all layers' gradients over rows, row r scaled by scale[l * rows + r].
  // An empty `scale` is all ones.
  virtual Status Sum(std::span<const float> scale, std::span<float> gradient) = 0;
  // sums = the same in whole steps, summed in these pieces (ops::SumPieces).
  virtual Status SumOnGrid(std::span<const float> scale, const ops::SumPieces& pieces, double step,
                           std::span<int64_t> sums) = 0;
};

// `backend` must outlive the net. The last layer has one output.
std::unique_ptr<DenseNet> MakeDenseNet(ops::Precision precision, std::vector<LinearLayer> layers,
                                       ops::Backend& backend);

}  // namespace tacit::model
