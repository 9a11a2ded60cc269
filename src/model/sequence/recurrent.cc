// Recurrent encoders, the paper's baselines: layers of GRU (Cho et al. 2014, the reset gate applied
// after the recurrent product, so that one product serves all gates) or LSTM (Hochreiter and
// Schmidhuber 1997). Each crop begins with an empty state. With a_t the input's part of the gates
// and u_t = h_{t-1} U + c the state's:
//
//   GRU    r, z = sigmoid(a + u),  n = tanh(a_n + r u_n),  h = (1 - z) n + z h_{t-1}
//   LSTM   i, f, o = sigmoid(a + u),  g = tanh(a_g + u_g),  s = f s_{t-1} + i g,  h = o tanh(s)
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "model/sequence/encoder.h"
#include "model/sequence/linear.h"

namespace tacit::model {
namespace {

using ops::ConstMatrix;
using ops::Matrix;
using ops::MatrixBuffer;
using ops::Transpose;

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

void Clear(Matrix x) {
  for (size_t r = 0; r < x.rows; ++r) std::fill_n(x.Row(r), x.cols, 0.0f);
}

// One layer, and what it keeps of a unit for the backward pass.
class Layer {
 public:
  Layer(const SequenceLayout& layout, size_t index, ops::UnitOps& ops)
      : layer_(layout.recurrent()[index]),
        index_(index),
        width_(layout.options().width),
        gru_(layout.options().encoder == SequenceOptions::Encoder::kGru),
        ops_(ops) {}

  void BeginStep(std::span<const float> parameters) { parameters_ = parameters; }
  Status Forward(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix x);
  Status Backward(const UnitRows& rows, Matrix grad, UnitGradient* gradient);
  ConstMatrix out() const { return out_.view(); }

 private:
  Status RecurrentGates(size_t row);
  void Step(size_t row);
  void GruBack(size_t row, const float* grad);
  void LstmBack(size_t row, const float* grad);

  const SequenceLayout::Recurrent& layer_;
  const size_t index_, width_;
  const bool gru_;
  ops::UnitOps& ops_;
  std::span<const float> parameters_;

  ConstMatrix input_;
  bool coins_on_ = false;
  // Gates after their functions; the state's part of them; states and (LSTM) cells before and after
  // each position.
  MatrixBuffer<float> gates_, recurrent_, before_, state_, cell_before_, cell_, out_, dropped_;
  // Gradients of the two parts of the gates, and of the state and the cell that are carried back.
  MatrixBuffer<float> gate_grad_, recurrent_grad_, carried_, cell_carried_, total_;
};

Status Layer::Forward(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix x) {
  input_ = x;
  gates_.Reset(x.rows, layer_.input.out);
  recurrent_.Reset(x.rows, layer_.input.out);
  for (MatrixBuffer<float>* buffer : {&before_, &state_, &cell_before_, &cell_, &out_})
    buffer->Reset(x.rows, width_);
  TACIT_RETURN_IF_ERROR(LinearForward(ops_, layer_.input, parameters_, x, false, gates_.view()));
  size_t row = 0;
  for (const uint32_t end : rows.crop_end) {
    for (const size_t begin = row; row < end; ++row) {
      for (auto [before, after] :
           {std::pair(&before_, &state_), std::pair(&cell_before_, &cell_)}) {
        float* to = before->view().Row(row);
        if (row == begin) std::fill_n(to, width_, 0.0f);
        if (row > begin) std::copy_n(after->view().Row(row - 1), width_, to);
      }
      TACIT_RETURN_IF_ERROR(RecurrentGates(row));
      Step(row);
      std::copy_n(state_.view().Row(row), width_, out_.view().Row(row));
    }
  }
  coins_on_ = coins.on();
  if (!coins_on_) return {};
  dropped_.Reset(x.rows, width_);
  coins.Draw(static_cast<uint32_t>(1 + index_), dropped_.view());
  Multiply(dropped_.view(), out_.view());
  return {};
}

Status Layer::RecurrentGates(size_t row) {
  return LinearForward(ops_, layer_.recurrent, parameters_, before_.view().Rows(row, row + 1),
                       false, recurrent_.view().Rows(row, row + 1));
}

void Layer::Step(size_t row) {
  float* const gate = gates_.view().Row(row);
  const float* const own = recurrent_.view().Row(row);
  const float* const before = before_.view().Row(row);
  float* const state = state_.view().Row(row);
  for (size_t c = 0; c < width_; ++c) {
    float* const at[] = {gate + c, gate + width_ + c, gate + 2 * width_ + c};
    if (gru_) {
      *at[0] = Sigmoid(*at[0] + own[c]);
      *at[1] = Sigmoid(*at[1] + own[width_ + c]);
      *at[2] = std::tanh(*at[2] + *at[0] * own[2 * width_ + c]);
      state[c] = (1 - *at[1]) * *at[2] + *at[1] * before[c];
      continue;
    }
    float* const output = gate + 3 * width_ + c;
    *at[0] = Sigmoid(*at[0] + own[c]);
    *at[1] = Sigmoid(*at[1] + own[width_ + c]);
    *at[2] = std::tanh(*at[2] + own[2 * width_ + c]);
    *output = Sigmoid(*output + own[3 * width_ + c]);
    float& cell = cell_.view().Row(row)[c];
    cell = *at[1] * cell_before_.view().Row(row)[c] + *at[0] * *at[2];
    state[c] = *output * std::tanh(cell);
  }
}

// `grad` is that of the state after this position. Sets carried_ to what the state before it gets
// from inside the cell, without what comes through the gates.
void Layer::GruBack(size_t row, const float* grad) {
  const float* const gate = gates_.view().Row(row);
  const float* const own = recurrent_.view().Row(row);
  const float* const before = before_.view().Row(row);
  float* const to = gate_grad_.view().Row(row);
  float* const back = recurrent_grad_.view().Row(row);
  float* const carried = carried_.view().Row(0);
  for (size_t c = 0; c < width_; ++c) {
    const float r = gate[c], z = gate[width_ + c], n = gate[2 * width_ + c];
    const float candidate = grad[c] * (1 - z) * (1 - n * n);
    to[c] = back[c] = candidate * own[2 * width_ + c] * r * (1 - r);
    to[width_ + c] = back[width_ + c] = grad[c] * (before[c] - n) * z * (1 - z);
    to[2 * width_ + c] = candidate;
    back[2 * width_ + c] = candidate * r;
    carried[c] = grad[c] * z;
  }
}

void Layer::LstmBack(size_t row, const float* grad) {
  const float* const gate = gates_.view().Row(row);
  const float* const cell = cell_.view().Row(row);
  const float* const cell_before = cell_before_.view().Row(row);
  float* const to = gate_grad_.view().Row(row);
  float* const back = recurrent_grad_.view().Row(row);
  float* const carried = carried_.view().Row(0);
  float* const cell_carried = cell_carried_.view().Row(0);
  for (size_t c = 0; c < width_; ++c) {
    const float i = gate[c], f = gate[width_ + c], g = gate[2 * width_ + c];
    const float o = gate[3 * width_ + c], t = std::tanh(cell[c]);
    const float of_cell = cell_carried[c] + grad[c] * o * (1 - t * t);
    to[c] = of_cell * g * i * (1 - i);
    to[width_ + c] = of_cell * cell_before[c] * f * (1 - f);
    to[2 * width_ + c] = of_cell * i * (1 - g * g);
    to[3 * width_ + c] = grad[c] * t * o * (1 - o);
    cell_carried[c] = of_cell * f;
    carried[c] = 0;
  }
  std::copy_n(to, 4 * width_, back);
}

Status Layer::Backward(const UnitRows& rows, Matrix grad, UnitGradient* gradient) {
  if (coins_on_) Multiply(dropped_.view(), grad);
  gate_grad_.Reset(grad.rows, layer_.input.out);
  recurrent_grad_.Reset(grad.rows, layer_.input.out);
  for (MatrixBuffer<float>* buffer : {&carried_, &cell_carried_, &total_}) buffer->Reset(1, width_);
  for (size_t crop = rows.crop_end.size(); crop-- > 0;) {
    const size_t begin = crop == 0 ? 0 : rows.crop_end[crop - 1];
    Clear(carried_.view());
    Clear(cell_carried_.view());
    for (size_t row = rows.crop_end[crop]; row-- > begin;) {
      float* const total = total_.view().Row(0);
      for (size_t c = 0; c < width_; ++c) total[c] = grad.Row(row)[c] + carried_.view().Row(0)[c];
      if (gru_) {
        GruBack(row, total);
      } else {
        LstmBack(row, total);
      }
      TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, recurrent_grad_.view().Rows(row, row + 1),
                                      Transpose::kYes, layer_.recurrent.Weights(parameters_), 1,
                                      carried_.view()));
    }
  }
  TACIT_RETURN_IF_ERROR(
      gradient->AddLinear(layer_.recurrent, before_.view(), recurrent_grad_.view()));
  return LinearBackward(ops_, layer_.input, parameters_, input_, gate_grad_.view(), gradient, grad);
}

class RecurrentEncoder final : public Encoder {
 public:
  RecurrentEncoder(const SequenceLayout& layout, ops::UnitOps& ops) {
    for (size_t l = 0; l < layout.recurrent().size(); ++l)
      layers_.push_back(std::make_unique<Layer>(layout, l, ops));
  }

  Status BeginStep(std::span<const float> parameters, const ParameterNoise& noise) override {
    TACIT_CHECK(!noise.on(), "there is no attention to correct");
    for (const auto& layer : layers_) layer->BeginStep(parameters);
    return {};
  }
  Status Forward(const UnitRows& rows, const DropoutCoins& coins, ConstMatrix input, Matrix,
                 ConstMatrix* hidden) override {
    *hidden = input;
    for (const auto& layer : layers_) {
      TACIT_RETURN_IF_ERROR(layer->Forward(rows, coins, *hidden));
      *hidden = layer->out();
    }
    return {};
  }
  Status Backward(const UnitRows& rows, Matrix grad, UnitGradient* gradient) override {
    for (size_t l = layers_.size(); l-- > 0;)
      TACIT_RETURN_IF_ERROR(layers_[l]->Backward(rows, grad, gradient));
    return {};
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace

std::unique_ptr<Encoder> MakeRecurrentEncoder(const SequenceLayout& layout, ops::UnitOps& ops) {
  return std::make_unique<RecurrentEncoder>(layout, ops);
}

}  // namespace tacit::model
