// The encoder of Vaswani et al. (2017): per block attention and a layer of ReLUs, each a branch
// beside the identity. Normalised after each sum (post) or before each branch (pre):
//
//   post  x1 = N1(x + A(x)),      x2 = N2(x1 + F(x1))
//   pre   x1 = x + A(N1(x)),      x2 = x1 + F(N2(x1)),   N(x2) after the last block
#include <cstring>

#include "base/check.h"
#include "model/sequence/attention.h"
#include "model/sequence/encoder.h"
#include "model/sequence/linear.h"

namespace tacit::model {
namespace {

using ops::ConstMatrix;
using ops::Matrix;
using ops::MatrixBuffer;

constexpr float kNormEpsilon = 1e-5f;
// The dropout sites of a block; 0 is the embedding.
constexpr uint32_t AttentionSite(size_t block) { return static_cast<uint32_t>(1 + 2 * block); }
constexpr uint32_t FeedForwardSite(size_t block) { return static_cast<uint32_t>(2 + 2 * block); }

void Copy(ConstMatrix from, Matrix to) {
  for (size_t r = 0; r < to.rows; ++r) std::memcpy(to.Row(r), from.Row(r), to.cols * sizeof(float));
}

// A normalisation's state for the backward pass.
struct Normalised {
  MatrixBuffer<float> normal;
  std::vector<float> inverse;

  void Forward(ops::UnitOps& ops, const NormLayer& layer, std::span<const float> parameters,
               ConstMatrix x, Matrix out) {
    normal.Reset(x.rows, x.cols);
    inverse.resize(x.rows);
    ops.LayerNorm(x, layer.Gain(parameters), layer.Bias(parameters), kNormEpsilon, normal.view(),
                  inverse, out);
  }
  void Backward(ops::UnitOps& ops, const NormLayer& layer, std::span<const float> parameters,
                Matrix grad, UnitGradient* gradient) {
    ops.LayerNormBackward(normal.view(), inverse, layer.Gain(parameters), grad,
                          gradient->Part(layer.offset, layer.width),
                          gradient->Part(layer.offset + layer.width, layer.width));
  }
};

// Memory that all blocks of an encoder use in turn.
struct Work {
  MatrixBuffer<float> branch, inner, qkv, spare;
  MatrixBuffer<float> key_value_variance, branch_variance, inner_variance;
};

// Squared weights, for the propagation of variance.
class SquaredWeights {
 public:
  ConstMatrix Set(const LinearLayer& layer, std::span<const float> parameters) {
    const ConstMatrix weights = layer.Weights(parameters);
    squares_.Reset(weights.rows, weights.cols);
    for (size_t r = 0; r < weights.rows; ++r)
      for (size_t c = 0; c < weights.cols; ++c)
        squares_.view().Row(r)[c] = weights.Row(r)[c] * weights.Row(r)[c];
    return squares_.view();
  }
  ConstMatrix view() const { return squares_.view(); }

 private:
  MatrixBuffer<float> squares_;
};

class Block {
 public:
  Block(const SequenceLayout& layout, size_t index, ops::UnitOps& ops, Work& work)
      : layout_(layout),
        layer_(layout.blocks()[index]),
        index_(index),
        last_(index + 1 == layout.blocks().size()),
        pre_(layout.options().norm == SequenceOptions::Norm::kPre),
        ops_(ops),
        work_(work),
        attention_(layout.options().width, layout.options().heads, ops) {}

  void BeginStep(std::span<const float> parameters, const ParameterNoise& noise) {
    parameters_ = parameters;
    noise_ = noise;
    if (!noise.on()) return;
    qkv_squares_.Set(layer_.qkv, parameters);
    projection_squares_.Set(layer_.projection, parameters);
    inner_squares_.Set(layer_.inner, parameters);
    outer_squares_.Set(layer_.outer, parameters);
  }

  Status Forward(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix x, Matrix variance) {
    Reset(x.rows);
    coins_on_ = coins.on();
    TACIT_RETURN_IF_ERROR(Attend(rows, coins, x, variance));
    return FeedForward(coins, variance);
  }
  ConstMatrix out() const { return out_.view(); }

  Status Backward(const UnitRows& rows, Matrix grad, UnitGradient* gradient);

 private:
  void Reset(size_t rows);
  Status Attend(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix x, Matrix variance);
  Status FeedForward(const DropoutCoins& coins, Matrix variance);
  Status AttentionVariance(const UnitRows& rows, Matrix variance);
  void Drop(const DropoutCoins& coins, uint32_t site, MatrixBuffer<float>* factors, Matrix x);
  // The gradient of a branch's output: that of the sum, less what was dropped.
  Matrix BranchGradient(ConstMatrix grad, const MatrixBuffer<float>& factors);

  const SequenceLayout& layout_;
  const SequenceLayout::Block& layer_;
  const size_t index_;
  const bool last_, pre_;
  ops::UnitOps& ops_;
  Work& work_;
  CausalAttention attention_;
  std::span<const float> parameters_;
  ParameterNoise noise_;
  SquaredWeights qkv_squares_, projection_squares_, inner_squares_, outer_squares_;

  // The state of the last Forward. Inputs of the two branches are the block's own rows if layers
  // are normalised after the sums.
  bool coins_on_ = false;
  ConstMatrix branch1_, branch2_;
  Normalised norm1_, norm2_;
  MatrixBuffer<float> normed1_, normed2_, qkv_, attended_, middle_, inner_, out_;
  MatrixBuffer<float> dropped1_, dropped2_;
};

void Block::Reset(size_t rows) {
  const size_t width = layout_.options().width;
  qkv_.Reset(rows, 3 * width);
  attended_.Reset(rows, width);
  middle_.Reset(rows, width);
  inner_.Reset(rows, layer_.inner.out);
  out_.Reset(rows, width);
  if (!pre_) return;
  normed1_.Reset(rows, width);
  normed2_.Reset(rows, width);
}

void Block::Drop(const DropoutCoins& coins, uint32_t site, MatrixBuffer<float>* factors, Matrix x) {
  if (!coins.on()) return;
  factors->Reset(x.rows, x.cols);
  coins.Draw(site, factors->view());
  Multiply(factors->view(), x);
}

Status Block::Attend(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix x,
                     Matrix variance) {
  branch1_ = x;
  if (pre_) {
    norm1_.Forward(ops_, layer_.first, parameters_, x, normed1_.view());
    branch1_ = normed1_.view();
  }
  TACIT_RETURN_IF_ERROR(LinearForward(ops_, layer_.qkv, parameters_, branch1_, false, qkv_.view()));
  ConstMatrix key_variance;
  if (noise_.on()) {
    TACIT_RETURN_IF_ERROR(AttentionVariance(rows, variance));
    const Matrix both = work_.key_value_variance.view();
    key_variance = Matrix(both.data, both.rows, both.cols / 2, both.stride);
  }
  TACIT_RETURN_IF_ERROR(attention_.Forward(
      rows.crop_end, qkv_.view(), layout_.options().re_attention, key_variance, attended_.view()));
  TACIT_RETURN_IF_ERROR(
      LinearForward(ops_, layer_.projection, parameters_, attended_.view(), false, middle_.view()));
  Drop(coins, AttentionSite(index_), &dropped1_, middle_.view());
  ops_.Add(x, middle_.view());
  if (!pre_) norm1_.Forward(ops_, layer_.first, parameters_, middle_.view(), middle_.view());
  if (!noise_.on() || last_) return {};

  const Matrix both = work_.key_value_variance.view();
  const ConstMatrix value_variance(both.data + both.cols / 2, both.rows, both.cols / 2,
                                   both.stride);
  work_.spare.Reset(x.rows, x.cols);
  work_.branch_variance.Reset(x.rows, x.cols);
  const Matrix branch = work_.branch_variance.view();
  TACIT_RETURN_IF_ERROR(attention_.Variance(rows.crop_end, value_variance, work_.spare.view()));
  TACIT_RETURN_IF_ERROR(LinearVariance(ops_, attended_.view(), work_.spare.view(),
                                       projection_squares_.view(), 0, noise_.Of(layer_.projection),
                                       branch));
  for (int twice = 0; coins_on_ && twice < 2; ++twice) Multiply(dropped1_.view(), branch);
  ops_.Add(branch, variance);
  if (!pre_) LayerNormVariance(norm1_.inverse, layer_.first.Gain(parameters_), variance);
  return {};
}

// Computes the variance of keys and values side by side from that of the block's input; the last
// block needs no values.
Status Block::AttentionVariance(const UnitRows& rows, Matrix variance) {
  const size_t width = layout_.options().width;
  Matrix in = variance;
  if (pre_) {
    work_.spare.Reset(rows.size(), width);
    in = work_.spare.view();
    Copy(variance, in);
    LayerNormVariance(norm1_.inverse, layer_.first.Gain(parameters_), in);
  }
  work_.key_value_variance.Reset(rows.size(), 2 * width);
  const Matrix both = work_.key_value_variance.view();
  return LinearVariance(ops_, branch1_, in, qkv_squares_.view(), width, noise_.Of(layer_.qkv),
                        {both.data, both.rows, last_ ? width : 2 * width, both.stride});
}

Status Block::FeedForward(const DropoutCoins& coins, Matrix variance) {
  const bool propagates = noise_.on() && !last_;
  branch2_ = middle_.view();
  if (pre_) {
    norm2_.Forward(ops_, layer_.second, parameters_, middle_.view(), normed2_.view());
    branch2_ = normed2_.view();
  }
  TACIT_RETURN_IF_ERROR(
      LinearForward(ops_, layer_.inner, parameters_, branch2_, false, inner_.view()));
  if (propagates) {
    Matrix in = variance;
    if (pre_) {
      work_.spare.Reset(variance.rows, variance.cols);
      in = work_.spare.view();
      Copy(variance, in);
      LayerNormVariance(norm2_.inverse, layer_.second.Gain(parameters_), in);
    }
    work_.inner_variance.Reset(inner_.view().rows, inner_.view().cols);
    TACIT_RETURN_IF_ERROR(LinearVariance(ops_, branch2_, in, inner_squares_.view(), 0,
                                         noise_.Of(layer_.inner), work_.inner_variance.view()));
    ops_.ReluVariance(inner_.view(), work_.inner_variance.view());
  }
  ops_.AddBias(inner_.view(), {}, true);
  TACIT_RETURN_IF_ERROR(
      LinearForward(ops_, layer_.outer, parameters_, inner_.view(), false, out_.view()));
  Drop(coins, FeedForwardSite(index_), &dropped2_, out_.view());
  ops_.Add(middle_.view(), out_.view());
  if (!pre_) norm2_.Forward(ops_, layer_.second, parameters_, out_.view(), out_.view());
  if (!propagates) return {};

  work_.branch_variance.Reset(variance.rows, variance.cols);
  const Matrix branch = work_.branch_variance.view();
  TACIT_RETURN_IF_ERROR(LinearVariance(ops_, inner_.view(), work_.inner_variance.view(),
                                       outer_squares_.view(), 0, noise_.Of(layer_.outer), branch));
  for (int twice = 0; coins_on_ && twice < 2; ++twice) Multiply(dropped2_.view(), branch);
  ops_.Add(branch, variance);
  if (!pre_) LayerNormVariance(norm2_.inverse, layer_.second.Gain(parameters_), variance);
  return {};
}

Matrix Block::BranchGradient(ConstMatrix grad, const MatrixBuffer<float>& factors) {
  work_.branch.Reset(grad.rows, grad.cols);
  Copy(grad, work_.branch.view());
  if (coins_on_) Multiply(factors.view(), work_.branch.view());
  return work_.branch.view();
}

Status Block::Backward(const UnitRows& rows, Matrix grad, UnitGradient* gradient) {
  work_.inner.Reset(grad.rows, layer_.inner.out);
  work_.spare.Reset(grad.rows, grad.cols);
  work_.qkv.Reset(grad.rows, 3 * grad.cols);
  const Matrix below = work_.spare.view();

  if (!pre_) norm2_.Backward(ops_, layer_.second, parameters_, grad, gradient);
  TACIT_RETURN_IF_ERROR(LinearBackward(ops_, layer_.outer, parameters_, inner_.view(),
                                       BranchGradient(grad, dropped2_), gradient,
                                       work_.inner.view()));
  ops_.ReluBackward(inner_.view(), work_.inner.view());
  TACIT_RETURN_IF_ERROR(LinearBackward(ops_, layer_.inner, parameters_, branch2_,
                                       work_.inner.view(), gradient, below));
  if (pre_) norm2_.Backward(ops_, layer_.second, parameters_, below, gradient);
  ops_.Add(below, grad);

  if (!pre_) norm1_.Backward(ops_, layer_.first, parameters_, grad, gradient);
  TACIT_RETURN_IF_ERROR(LinearBackward(ops_, layer_.projection, parameters_, attended_.view(),
                                       BranchGradient(grad, dropped1_), gradient, below));
  TACIT_RETURN_IF_ERROR(attention_.Backward(rows.crop_end, qkv_.view(), below, work_.qkv.view()));
  TACIT_RETURN_IF_ERROR(
      LinearBackward(ops_, layer_.qkv, parameters_, branch1_, work_.qkv.view(), gradient, below));
  if (pre_) norm1_.Backward(ops_, layer_.first, parameters_, below, gradient);
  ops_.Add(below, grad);
  return {};
}

class Transformer final : public Encoder {
 public:
  Transformer(const SequenceLayout& layout, ops::UnitOps& ops) : layout_(layout), ops_(ops) {
    for (size_t b = 0; b < layout.blocks().size(); ++b)
      blocks_.push_back(std::make_unique<Block>(layout, b, ops, work_));
  }

  Status BeginStep(std::span<const float> parameters, const ParameterNoise& noise) override {
    parameters_ = parameters;
    for (const auto& block : blocks_) block->BeginStep(parameters, noise);
    return {};
  }

  Status Forward(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix input,
                 Matrix variance, ConstMatrix* hidden) override {
    *hidden = input;
    for (const auto& block : blocks_) {
      TACIT_RETURN_IF_ERROR(block->Forward(rows, coins, *hidden, variance));
      *hidden = block->out();
    }
    if (layout_.last_norm().width == 0) return {};
    normed_.Reset(input.rows, input.cols);
    last_.Forward(ops_, layout_.last_norm(), parameters_, *hidden, normed_.view());
    *hidden = normed_.view();
    return {};
  }

  Status Backward(const UnitRows& rows, Matrix grad, UnitGradient* gradient) override {
    if (layout_.last_norm().width > 0)
      last_.Backward(ops_, layout_.last_norm(), parameters_, grad, gradient);
    for (size_t b = blocks_.size(); b-- > 0;)
      TACIT_RETURN_IF_ERROR(blocks_[b]->Backward(rows, grad, gradient));
    return {};
  }

 private:
  const SequenceLayout& layout_;
  ops::UnitOps& ops_;
  Work work_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::span<const float> parameters_;
  Normalised last_;
  MatrixBuffer<float> normed_;
};

}  // namespace

std::unique_ptr<Encoder> MakeTransformer(const SequenceLayout& layout, ops::UnitOps& ops) {
  return std::make_unique<Transformer>(layout, ops);
}

}  // namespace tacit::model
