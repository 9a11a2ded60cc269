#include "model/dense_net.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "ops/bf16.h"
#include "ops/matrix_buffer.h"

namespace tacit::model {
namespace {

using ops::Bf16;
using ops::ConstMatrix;
using ops::ConstMatrix16;
using ops::Matrix;
using ops::Matrix16;
using ops::MatrixBuffer;
using ops::MatrixView;
using ops::Transpose;

template <class T>
MatrixView<T> FirstColumns(const MatrixView<T>& x, size_t cols) {
  return {x.data, x.rows, cols, x.stride};
}

// The arithmetic in which the precisions differ. `raw` receives a GEMM's f32 result before it
// becomes the kept number.
class F32 {
 public:
  using Element = float;
  static constexpr double kRounding = 0x1p-24;  // of a scaled number
  static constexpr float kOne = 1.0f;

  explicit F32(ops::Backend& backend) : backend_(backend) {}

  Matrix Raw(Matrix kept) { return kept; }
  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, Matrix c) {
    return backend_.Gemm(ta, a, tb, b, 0, c);
  }
  ConstMatrix Weights(ConstMatrix weights, MatrixBuffer<float>*) { return weights; }
  void Keep(ConstMatrix in, Matrix kept) {
    for (size_t r = 0; r < in.rows; ++r) std::copy_n(in.Row(r), in.cols, kept.Row(r));
  }
  void KeepRaw(Matrix, Matrix) {}
  void Activate(Matrix raw, std::span<const float> bias, Matrix) {
    backend_.AddBias(raw, bias, true);
  }
  void ReluBackward(ConstMatrix activation, Matrix raw, Matrix) {
    backend_.ReluBackward(activation, raw);
  }
  void Norms(std::span<const uint32_t> unit_end, ConstMatrix a, ConstMatrix g,
             std::span<float> out) {
    backend_.UnitSquaredNorms(unit_end, a, g, out);
  }
  void Scale(std::span<const float> scale, ConstMatrix x, Matrix out) {
    backend_.ScaleRows(scale, x, out);
  }
  Status AddBlockSums(const ops::SumPieces& pieces, ConstMatrix a, ConstMatrix g, double step,
                      MatrixView<int64_t> sums) {
    return backend_.AddBlockSums(pieces, a, g, step, sums);
  }

 private:
  ops::Backend& backend_;
};

class Rounded16 {
 public:
  using Element = Bf16;
  static constexpr double kRounding = 0x1p-8;
  static constexpr Bf16 kOne = 0x3f80;

  explicit Rounded16(ops::Backend& backend) : backend_(backend) {}

  Matrix Raw(Matrix16 kept) {
    raw_.Reset(kept.rows, kept.cols);
    return raw_.view();
  }
  Status Gemm(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, Matrix c) {
    return backend_.Gemm16(ta, a, tb, b, 0, c);
  }
  ConstMatrix16 Weights(ConstMatrix weights, MatrixBuffer<Bf16>* rounded) {
    rounded->Reset(weights.rows, weights.cols);
    backend_.Round16(weights, rounded->view());
    return rounded->view();
  }
  void Keep(ConstMatrix in, Matrix16 kept) { backend_.Round16(in, kept); }
  void KeepRaw(Matrix raw, Matrix16 kept) { backend_.Round16(raw, kept); }
  void Activate(Matrix raw, std::span<const float> bias, Matrix16 kept) {
    backend_.AddBias16(raw, bias, true, kept);
  }
  void ReluBackward(ConstMatrix16 activation, Matrix raw, Matrix16 kept) {
    backend_.ReluBackward16(activation, raw, kept);
  }
  void Norms(std::span<const uint32_t> unit_end, ConstMatrix16 a, ConstMatrix16 g,
             std::span<float> out) {
    backend_.UnitSquaredNorms16(unit_end, a, g, out);
  }
  void Scale(std::span<const float> scale, ConstMatrix16 x, Matrix16 out) {
    backend_.ScaleRows16(scale, x, out);
  }
  Status AddBlockSums(const ops::SumPieces& pieces, ConstMatrix16 a, ConstMatrix16 g, double step,
                      MatrixView<int64_t> sums) {
    return backend_.AddBlockSums16(pieces, a, g, step, sums);
  }

 private:
  ops::Backend& backend_;
  MatrixBuffer<float> raw_;
};

template <class Arithmetic>
class Net final : public DenseNet {
  using T = typename Arithmetic::Element;
  using View = MatrixView<T>;
  using ConstView = MatrixView<const T>;

 public:
  Net(std::vector<LinearLayer> layers, ops::Backend& backend)
      : layers_(std::move(layers)),
        backend_(backend),
        arithmetic_(backend),
        input_(layers_.size()),
        gradient_(layers_.size()),
        weights_(layers_.size()),
        weight_buffer_(layers_.size()),
        thin_input_(layers_.size()),
        thin_gradient_(layers_.size()) {
    TACIT_CHECK(!layers_.empty() && layers_.back().out == 1, "a net ends in one logit");
  }

  Status Forward(std::span<const float> dense, ConstMatrix input,
                 std::span<float> logits) override {
    rows_ = input.rows;
    Prepare(dense);
    arithmetic_.Keep(input, Inputs(0));
    for (size_t l = 0; l < layers_.size(); ++l) {
      const bool last = l + 1 == layers_.size();
      const Matrix raw = last ? Matrix(logits.data(), rows_, 1) : arithmetic_.Raw(Inputs(l + 1));
      TACIT_RETURN_IF_ERROR(
          arithmetic_.Gemm(Transpose::kNo, Inputs(l), Transpose::kNo, weights_[l], raw));
      if (last) {
        backend_.AddBias(raw, layers_[l].Biases(dense), false);
      } else {
        arithmetic_.Activate(raw, layers_[l].Biases(dense), Inputs(l + 1));
      }
    }
    return {};
  }

  Status Backward(std::span<const float> dlogit, Matrix input_gradient) override {
    map_ = &kWholeGradient;
    for (size_t l = 0; l < layers_.size(); ++l) gradient_[l].Reset(rows_, layers_[l].out);
    arithmetic_.Keep(ConstMatrix(dlogit.data(), rows_, 1), gradient_.back().view());
    for (size_t l = layers_.size() - 1; l > 0; --l) {
      const View kept = gradient_[l - 1].view();
      const Matrix raw = arithmetic_.Raw(kept);
      TACIT_RETURN_IF_ERROR(
          arithmetic_.Gemm(Transpose::kNo, gradient_[l].view(), Transpose::kYes, weights_[l], raw));
      arithmetic_.ReluBackward(Inputs(l), raw, kept);
    }
    return arithmetic_.Gemm(Transpose::kNo, gradient_[0].view(), Transpose::kYes,
                            weights_[0].Rows(0, input_gradient.cols), input_gradient);
  }

  Status SumBy(const SumMap& map) override {
    map_ = &map;
    for (size_t l = 0; l < layers_.size(); ++l) {
      const SumMap::Pair* pair = PairOf(l);
      if (pair == nullptr) continue;
      const size_t rank = pair->rank();
      thin_input_[l].Reset(rows_, rank + 1);
      const View kept = thin_input_[l].view();
      TACIT_RETURN_IF_ERROR(Project(Inputs(l), pair->left, FirstColumns(kept, rank)));
      for (size_t r = 0; r < rows_; ++r) kept.Row(r)[rank] = Arithmetic::kOne;
      thin_gradient_[l].Reset(rows_, rank);
      TACIT_RETURN_IF_ERROR(Project(gradient_[l].view(), pair->right, thin_gradient_[l].view()));
    }
    return {};
  }

  void SquaredNorms(size_t layer, std::span<const uint32_t> unit_end,
                    std::span<float> out) override {
    if (PairOf(layer) == nullptr) return FactorNorms(Whole(layer), unit_end, out);
    FactorNorms(OfLeft(layer), unit_end, out);
    half_norm_.resize(out.size());
    FactorNorms(OfRight(layer), unit_end, half_norm_);
    // The sum may be rounded down; the clip's own slack covers that.
    for (size_t u = 0; u < out.size(); ++u) out[u] += half_norm_[u];
  }

  void ClearRow(size_t row) override {
    const auto clear = [row](const View& x) { std::fill_n(x.Row(row), x.cols, T{0}); };
    for (size_t l = 0; l < layers_.size(); ++l) {
      clear(input_[l].view());
      clear(gradient_[l].view());
      if (PairOf(l) == nullptr) continue;
      clear(thin_input_[l].view());
      clear(thin_gradient_[l].view());
    }
  }

  Status Sum(std::span<const float> scale, std::span<float> gradient) override {
    return ForFactors(scale, [&](const ConstView& a, const ConstView& g, size_t place) {
      return arithmetic_.Gemm(Transpose::kYes, a, Transpose::kNo, g,
                              {gradient.data() + place, a.cols, g.cols});
    });
  }

  Status SumOnGrid(std::span<const float> scale, const ops::SumPieces& pieces, double step,
                   std::span<int64_t> sums) override {
    return ForFactors(scale, [&](const ConstView& a, const ConstView& g, size_t place) {
      return arithmetic_.AddBlockSums(pieces, a, g, step, {sums.data() + place, a.cols, g.cols});
    });
  }

 private:
  // A layer's input rows without the 1 after them.
  View Inputs(size_t layer) { return FirstColumns(input_[layer].view(), layers_[layer].in); }

  // Two factors of a gradient: the sum over rows of (row of a) (row of g).
  struct Factors {
    ConstView a, g;
  };
  const SumMap::Pair* PairOf(size_t layer) const { return map_->PairAt(layers_[layer].offset); }
  Factors Whole(size_t l) const { return {input_[l].view(), gradient_[l].view()}; }
  // Those of (dW) right^T; and of left (dW), with the biases.
  Factors OfLeft(size_t l) { return {Inputs(l), thin_gradient_[l].view()}; }
  Factors OfRight(size_t l) const { return {thin_input_[l].view(), gradient_[l].view()}; }

  // out = x factor^T.
  Status Project(ConstView x, ConstMatrix factor, View out) {
    const Matrix raw = arithmetic_.Raw(out);
    TACIT_RETURN_IF_ERROR(arithmetic_.Gemm(Transpose::kNo, x, Transpose::kYes,
                                           arithmetic_.Weights(factor, &factor_), raw));
    arithmetic_.KeepRaw(raw, out);
    return {};
  }

  void FactorNorms(const Factors& factors, std::span<const uint32_t> unit_end,
                   std::span<float> out) {
    const size_t rows = unit_end.empty() ? 0 : unit_end.back();
    const Factors of_units{First(rows, factors.a), First(rows, factors.g)};
    arithmetic_.Norms(unit_end, of_units.a, of_units.g, out);
    if (!OneRowEach(unit_end)) BoundByRows(of_units, unit_end, out);
  }

  // Calls add(a, g, place) for the factors of each part of the sum, which lies at `place`, with the
  // rows of g scaled.
  template <class Add>
  Status ForFactors(std::span<const float> scale, const Add& add) {
    const size_t rows = scale.empty() ? rows_ : scale.size() / layers_.size();
    const auto put = [&](size_t l, const Factors& factors, size_t place) -> Status {
      ConstView g = First(rows, factors.g);
      if (!scale.empty()) {
        scaled_.Reset(g.rows, g.cols);
        arithmetic_.Scale(scale.subspan(l * rows, rows), g, scaled_.view());
        g = scaled_.view();
      }
      return add(First(rows, factors.a), g, place);
    };
    for (size_t l = 0; l < layers_.size(); ++l) {
      const size_t place = map_->PlaceOf(layers_[l].offset);
      const SumMap::Pair* pair = PairOf(l);
      if (pair == nullptr) {
        TACIT_RETURN_IF_ERROR(put(l, Whole(l), place));
        continue;
      }
      TACIT_RETURN_IF_ERROR(put(l, OfLeft(l), place));
      // The biases follow left (dW), as they follow weights.
      TACIT_RETURN_IF_ERROR(put(l, OfRight(l), place + layers_[l].in * pair->rank()));
    }
    return {};
  }
  static ConstView First(size_t rows, const ConstView& x) { return x.Rows(0, rows); }

  static bool OneRowEach(std::span<const uint32_t> unit_end) {
    for (size_t u = 0; u < unit_end.size(); ++u)
      if (unit_end[u] != u + 1) return false;
    return true;
  }

  // |sum of rounded rows| <= |sum| + rounding * (sum of |row|). For a unit of one row the clip's
  // own slack, or shrinking all scales, covers that. The second bound limits the rows' lengths
  // before they cancel: scaled to a norm of C, they add up to at most kRowsOverNorm * C.
  void BoundByRows(const Factors& factors, std::span<const uint32_t> unit_end,
                   std::span<float> out) {
    row_end_.resize(factors.a.rows);
    std::iota(row_end_.begin(), row_end_.end(), 1);
    row_norm_.resize(factors.a.rows);
    arithmetic_.Norms(row_end_, factors.a, factors.g, row_norm_);
    for (size_t u = 0, r = 0; u < unit_end.size(); ++u) {
      const size_t count = unit_end[u] - r;
      double lengths = 0;
      for (; r < unit_end[u]; ++r) lengths += std::sqrt(double{row_norm_[r]});
      if (count < 2) continue;
      const double bound = std::max(std::sqrt(double{out[u]}) + Arithmetic::kRounding * lengths,
                                    lengths / kRowsOverNorm);
      out[u] = static_cast<float>(bound * bound);
    }
  }

  void Prepare(std::span<const float> dense) {
    for (size_t l = 0; l < layers_.size(); ++l) {
      weights_[l] = arithmetic_.Weights(layers_[l].Weights(dense), &weight_buffer_[l]);
      input_[l].Reset(rows_, layers_[l].in + 1);
      for (size_t r = 0; r < rows_; ++r) input_[l].view().Row(r)[layers_[l].in] = Arithmetic::kOne;
    }
  }

  const std::vector<LinearLayer> layers_;
  ops::Backend& backend_;
  Arithmetic arithmetic_;
  size_t rows_ = 0;
  std::vector<MatrixBuffer<T>> input_, gradient_;  // per layer
  std::vector<ConstView> weights_;                 // the caller's, or rounded into weight_buffer_
  std::vector<MatrixBuffer<T>> weight_buffer_;
  MatrixBuffer<T> scaled_;
  std::vector<uint32_t> row_end_;
  std::vector<float> row_norm_;
  // Per layer with factors: input rows times left^T, with a 1 after them, and output gradients
  // times right^T.
  const SumMap* map_ = &kWholeGradient;
  std::vector<MatrixBuffer<T>> thin_input_, thin_gradient_;
  MatrixBuffer<T> factor_;  // rounded
  std::vector<float> half_norm_;
};

}  // namespace

std::unique_ptr<DenseNet> MakeDenseNet(ops::Precision precision, std::vector<LinearLayer> layers,
                                       ops::Backend& backend) {
  if (precision == ops::Precision::kBf16)
    return std::make_unique<Net<Rounded16>>(std::move(layers), backend);
  return std::make_unique<Net<F32>>(std::move(layers), backend);
}

}  // namespace tacit::model
