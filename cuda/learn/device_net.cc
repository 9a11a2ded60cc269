#include "cuda/learn/device_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_library.h"
#include "cuda/kernels/norms.h"
#include "cuda/kernels/pointwise.h"
#include "cuda/kernels/scales.h"

namespace tacit::cuda {
namespace {

// Rows of all matrices begin at multiples of 16 bytes, whichever numbers they hold.
uint64_t StrideOf(size_t cols) { return (cols + 7) / 8 * 8; }

template <class T>
constexpr bool kRoundsTo = !std::is_same_v<T, float>;

template <class T>
GemmPlan PlanOn(const DeviceFacts& facts, uint32_t m, uint32_t n, uint32_t k) {
  return PlanGemm(facts.multiprocessors, m, n, k, kRoundsTo<T> ? OwnWay(facts) : GemmWay::kMma);
}

// The floats that the products of a net's largest step work with.
template <class T>
size_t WorkFloats(const DeviceFacts& facts, const std::vector<model::LinearLayer>& layers,
                  uint32_t rows_max) {
  size_t work = 0;
  for (const model::LinearLayer& layer : layers) {
    const auto in = static_cast<uint32_t>(layer.in), out = static_cast<uint32_t>(layer.out);
    work = std::max({work, GemmWorkFloats(PlanOn<T>(facts, in + 1, out, rows_max), in + 1, out),
                     GemmWorkFloats(PlanOn<T>(facts, rows_max, out, in), rows_max, out),
                     GemmWorkFloats(PlanOn<T>(facts, rows_max, in, out), rows_max, in)});
  }
  return work;
}

size_t Widest(const std::vector<model::LinearLayer>& layers) {
  size_t widest = 0;
  for (const model::LinearLayer& layer : layers) widest = std::max({widest, layer.in, layer.out});
  return widest;
}

// The floats into which the trial of products sums.
size_t TrialFloats(const std::vector<model::LinearLayer>& layers, uint32_t rows_max) {
  size_t most = rows_max;
  for (const model::LinearLayer& layer : layers) most = std::max(most, layer.size());
  return most;
}

// A matrix with memory of its own, of as many rows as are asked for at a time.
template <class T>
class Rows {
 public:
  static Result<Rows> Make(Device& device, uint32_t rows_max, size_t cols) {
    Rows rows;
    rows.cols_ = static_cast<uint32_t>(cols);
    TACIT_ASSIGN(rows.buffer_, Buffer<T>::Make(device, rows_max * StrideOf(cols)));
    return rows;
  }
  Rows() = default;
  DeviceMatrix<T> First(uint32_t rows) const {
    return {buffer_.span().data, rows, cols_, StrideOf(cols_)};
  }
  DeviceSpan<T> all() const { return buffer_.span(); }

 private:
  Buffer<T> buffer_;
  uint32_t cols_ = 0;
};

template <class T>
DeviceMatrix<T> FirstColumns(const DeviceMatrix<T>& x, size_t cols) {
  return {x.data, x.rows, static_cast<uint32_t>(cols), x.stride};
}

template <class T>
class Net final : public DeviceNet {
  static constexpr bool kRounds = kRoundsTo<T>;
  // The rounding of a scaled number, as model/dense_net.cc has it.
  static constexpr double kRounding = kRounds ? 0x1p-8 : 0x1p-24;

 public:
  Net(Stream& stream, std::vector<model::LinearLayer> layers)
      : stream_(stream), layers_(std::move(layers)) {}

  Status Take(uint32_t rows_max);
  // Decides what multiplies. Called once, after Take.
  Status Choose(const ProductOptions& options, uint32_t rows_max);

  Status Input(const GatherInput& from, uint32_t rows) override {
    rows_ = rows;
    return GatherSum<T>(stream_, from, input_[0].First(rows));
  }

  Status Forward(DeviceSpan<const float> dense, DeviceSpan<float> logits) override {
    dense_ = dense;
    if constexpr (kRounds) {
      MatrixList<const float> weights;
      MatrixList<T> rounded;
      for (size_t l = 0; l < layers_.size(); ++l) {
        weights.Add(Weights(l));
        rounded.Add(rounded_[l].First(In(l)));
      }
      TACIT_RETURN_IF_ERROR(RoundAll(stream_, weights, rounded));
    }
    for (size_t l = 0; l < layers_.size(); ++l)
      TACIT_RETURN_IF_ERROR(
          PutLayer(l, dense.Sub(layers_[l].offset + layers_[l].in * layers_[l].out, layers_[l].out),
                   logits));
    return {};
  }

  Status Backward(DeviceSpan<const float> dlogit, DeviceMatrix<float> input_gradient) override {
    const DeviceMatrix<const float> last(dlogit.data, rows_, 1, 1);
    TACIT_RETURN_IF_ERROR(AddBias<T>(stream_, last, {}, false, gradient_.back().First(rows_)));
    for (size_t l = layers_.size() - 1; l > 0; --l) TACIT_RETURN_IF_ERROR(PutLayerBackward(l));
    auto first_rows = Factor(0);
    first_rows.rows = input_gradient.cols;
    return Multiply(Form::kAsIs, gradient_[0].First(rows_), Form::kTransposed, first_rows, 0,
                    input_gradient);
  }

  Status SquaredNorms(DeviceSpan<const uint32_t> unit_end, bool one_row_each,
                      DeviceSpan<float> out) override {
    const MatrixList<const T> a = All(input_), g = All(gradient_);
    const auto own = own_.span().Sub(0, layers_.size() * rows_);
    TACIT_RETURN_IF_ERROR(RowGradientNorms<T>(stream_, a, g, own));
    if (one_row_each) return OneRowNorms(stream_, unit_end, rows_, own, out);
    TACIT_RETURN_IF_ERROR(UnitSquaredNorms<T>(stream_, unit_end, a, g, own, out));
    return BoundByRows(stream_, unit_end, own, rows_, kRounding, out);
  }

  Status Clear(DeviceSpan<const uint8_t> bounded, DeviceSpan<const uint32_t> unit_of,
               DeviceMatrix<float> input_gradient) override {
    return ClearUnbounded<T>(stream_, bounded, unit_of, All(input_), All(gradient_),
                             input_gradient);
  }

  Status Sum(DeviceSpan<const float> scale, float beta, DeviceSpan<float> sums) override {
    const MatrixList<T> scaled = All(scale.size > 0 ? scaled_ : gradient_);
    if (scale.size > 0) TACIT_RETURN_IF_ERROR(ScaleRows<T>(stream_, scale, All(gradient_), scaled));
    for (size_t l = 0; l < layers_.size(); ++l) {
      const DeviceMatrix<float> sum(sums.data + layers_[l].offset, In(l) + 1, Out(l), Out(l));
      TACIT_RETURN_IF_ERROR(Multiply(Form::kTransposed, input_[l].First(rows_), Form::kAsIs,
                                     scaled.at[l], beta, sum));
    }
    return {};
  }

 private:
  uint32_t In(size_t l) const { return static_cast<uint32_t>(layers_[l].in); }
  uint32_t Out(size_t l) const { return static_cast<uint32_t>(layers_[l].out); }
  MatrixList<T> All(const std::vector<Rows<T>>& of_layers) const {
    MatrixList<T> all;
    for (const Rows<T>& rows : of_layers) all.Add(rows.First(rows_));
    return all;
  }
  // A layer's input rows without the 1 behind them.
  DeviceMatrix<T> Inputs(size_t l) { return FirstColumns(input_[l].First(rows_), layers_[l].in); }
  // The place of a product before it becomes the kept numbers.
  DeviceMatrix<float> Raw(DeviceMatrix<T> kept) {
    if constexpr (kRounds)
      return FirstColumns(raw_.First(kept.rows), kept.cols);
    else
      return kept;
  }
  DeviceMatrix<const float> Weights(size_t l) const {
    return {dense_.data + layers_[l].offset, In(l), Out(l), Out(l)};
  }
  DeviceMatrix<const T> Factor(size_t l) const {
    if constexpr (kRounds)
      return rounded_[l].First(In(l));
    else
      return Weights(l);
  }
  GemmPlan PlanOf(uint32_t m, uint32_t n, uint32_t k) const {
    return PlanOn<T>(stream_.device().facts(), m, n, k);
  }
  Status Multiply(Form form_a, DeviceMatrix<const T> a, Form form_b, DeviceMatrix<const T> b,
                  float beta, DeviceMatrix<float> c) {
    const uint32_t k = form_a == Form::kTransposed ? a.rows : a.cols;
    if constexpr (kRounds) {
      // The library refuses sums of nothing.
      if (library_ != nullptr && k > 0)
        return GemmByLibrary(*library_, form_a, a, form_b, b, beta, c);
    }
    GemmPlan plan = PlanOf(c.rows, c.cols, k);
    // The work is that of the largest step: a smaller one splits no more than fits.
    while (plan.splits > 1 && GemmWorkFloats(plan, c.rows, c.cols) > work_.size()) --plan.splits;
    if constexpr (kRounds)
      return Gemm16(stream_, form_a, a, form_b, b, beta, c, plan, work_.span());
    else
      return Gemm32(stream_, form_a, a, form_b, b, beta, c, plan, work_.span());
  }

  // Says whether the product's own kernel may write what becomes of it: ours does, where no part of
  // k has a block of its own.
  bool EndsItself(const GemmPlan& plan) const {
    return kRounds && library_ == nullptr && plan.splits == 1;
  }
  // The layer's outputs: the next one's inputs, or the logits.
  Status PutLayer(size_t l, DeviceSpan<const float> bias, DeviceSpan<float> logits) {
    const bool last = l + 1 == layers_.size();
    const DeviceMatrix<float> of_logits(logits.data, rows_, 1, 1);
    const GemmPlan plan = PlanOf(rows_, Out(l), In(l));
    if constexpr (kRounds) {
      if (EndsItself(plan))
        return last ? Gemm16AddBias(stream_, Inputs(l), Factor(l), bias, of_logits, plan)
                    : Gemm16Activate(stream_, Inputs(l), Factor(l), bias,
                                     input_[l + 1].First(rows_), plan);
    }
    const DeviceMatrix<float> raw = last ? of_logits : Raw(Inputs(l + 1));
    TACIT_RETURN_IF_ERROR(Multiply(Form::kAsIs, Inputs(l), Form::kAsIs, Factor(l), 0, raw));
    return last ? AddBias<float>(stream_, raw, bias, false, raw)
                : AddBias<T>(stream_, raw, bias, true, input_[l + 1].First(rows_));
  }
  // The gradient of the outputs of the layer before.
  Status PutLayerBackward(size_t l) {
    const auto kept = gradient_[l - 1].First(rows_);
    const GemmPlan plan = PlanOf(rows_, In(l), Out(l));
    if constexpr (kRounds) {
      if (EndsItself(plan))
        return Gemm16ReluBackward(stream_, gradient_[l].First(rows_), Factor(l), Inputs(l), kept,
                                  plan);
    }
    const auto raw = Raw(kept);
    TACIT_RETURN_IF_ERROR(
        Multiply(Form::kAsIs, gradient_[l].First(rows_), Form::kTransposed, Factor(l), 0, raw));
    return ReluBackward<T>(stream_, Inputs(l), raw, kept);
  }

  Status PutAllProducts(DeviceSpan<float> sums);

  Stream& stream_;
  const std::vector<model::LinearLayer> layers_;
  Blas* library_ = nullptr;  // what multiplies; null: our own
  uint32_t rows_ = 0;
  DeviceSpan<const float> dense_;
  std::vector<Rows<T>> input_, gradient_, scaled_;  // per layer, as is rounded_
  std::vector<Rows<T>> rounded_;                    // weights, for bf16
  Rows<float> raw_;                                 // for bf16
  Buffer<double> own_;
  Buffer<float> work_;
  std::unique_ptr<Blas> kept_library_;
};

template <class T>
Status Net<T>::Take(uint32_t rows_max) {
  TACIT_CHECK(!layers_.empty() && layers_.back().out == 1, "a net ends in one logit");
  Device& device = stream_.device();
  for (const model::LinearLayer& layer : layers_) {
    const auto in = static_cast<uint32_t>(layer.in);
    TACIT_ASSIGN(Rows<T> input, Rows<T>::Make(device, rows_max, layer.in + 1));
    input_.push_back(std::move(input));
    TACIT_ASSIGN(Rows<T> gradient, Rows<T>::Make(device, rows_max, layer.out));
    gradient_.push_back(std::move(gradient));
    TACIT_ASSIGN(Rows<T> scaled, Rows<T>::Make(device, rows_max, layer.out));
    scaled_.push_back(std::move(scaled));
    if (!kRounds) continue;
    TACIT_ASSIGN(Rows<T> rounded, Rows<T>::Make(device, in, layer.out));
    rounded_.push_back(std::move(rounded));
  }
  if (kRounds) {
    TACIT_ASSIGN(raw_, Rows<float>::Make(device, rows_max, Widest(layers_)));
  }
  TACIT_ASSIGN(own_, Buffer<double>::Make(device, layers_.size() * rows_max));
  TACIT_ASSIGN(work_,
               Buffer<float>::Make(device, WorkFloats<T>(device.facts(), layers_, rows_max)));
  return {};
}

// As Take and Choose take it.
template <class T>
DeviceNetBytes BytesOf(const DeviceFacts& facts, const std::vector<model::LinearLayer>& layers,
                       uint32_t rows_max, train::GpuProducts by) {
  MemoryNeed need(facts.memory_piece_bytes);
  for (const model::LinearLayer& layer : layers) {
    for (const uint64_t stride : {StrideOf(layer.in + 1), StrideOf(layer.out), StrideOf(layer.out)})
      need.Add<T>(rows_max * stride);
    if (kRoundsTo<T>) need.Add<T>(layer.in * StrideOf(layer.out));
  }
  if (kRoundsTo<T>) need.Add<float>(rows_max * StrideOf(Widest(layers)));
  need.Add<double>(layers.size() * rows_max);
  need.Add<float>(WorkFloats<T>(facts, layers, rows_max));
  const bool tries = kRoundsTo<T> && by != train::GpuProducts::kOwn;
  if (tries) need.Add<uint8_t>(kBlasWorkspaceBytes);
  const uint64_t kept = need.bytes();
  if (tries) need.Add<float>(TrialFloats(layers, rows_max));
  return {.kept = kept, .making = need.bytes()};
}

// A step's three products per layer with their ends, of what lies there, as Forward, Backward and
// Sum put them. `sums` are biases and logits as well.
template <class T>
Status Net<T>::PutAllProducts(DeviceSpan<float> sums) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    TACIT_RETURN_IF_ERROR(PutLayer(l, sums.Sub(0, layers_[l].out), sums));
    if (l > 0) {
      TACIT_RETURN_IF_ERROR(PutLayerBackward(l));
    } else {
      TACIT_RETURN_IF_ERROR(Multiply(Form::kAsIs, gradient_[0].First(rows_), Form::kTransposed,
                                     Factor(0), 0, FirstColumns(raw_.First(rows_), layers_[0].in)));
    }
    TACIT_RETURN_IF_ERROR(Multiply(Form::kTransposed, input_[l].First(rows_), Form::kAsIs,
                                   scaled_[l].First(rows_), 0,
                                   {sums.data, In(l) + 1, Out(l), Out(l)}));
  }
  return {};
}

template <class T>
Status Net<T>::Choose(const ProductOptions& options, uint32_t rows_max) {
  if (!kRounds || options.by == train::GpuProducts::kOwn) return {};
  // The trial multiplies numbers of a usual size, and its sums go where nothing else is.
  constexpr uint8_t kByte = 0x3f;  // twice: .75 in bf16
  TACIT_ASSIGN(const auto sums,
               Buffer<float>::Make(stream_.device(), TrialFloats(layers_, rows_max)));
  TACIT_RETURN_IF_ERROR(stream_.Fill(sums.span(), kByte));
  for (auto* of_layers : {&input_, &gradient_, &scaled_, &rounded_})
    for (Rows<T>& rows : *of_layers) TACIT_RETURN_IF_ERROR(stream_.Fill(rows.all(), kByte));
  rows_ = options.usual_rows > 0 ? std::min(options.usual_rows, rows_max) : rows_max;
  TACIT_ASSIGN(kept_library_, ChooseProducts(stream_, options, [&](Blas* library) {
                 library_ = library;
                 return PutAllProducts(sums.span());
               }));
  library_ = kept_library_.get();
  return stream_.Synchronize();
}

template <class T>
Result<std::unique_ptr<DeviceNet>> MakeNet(Stream& stream, std::vector<model::LinearLayer> layers,
                                           uint32_t rows_max, const ProductOptions& products) {
  auto net = std::make_unique<Net<T>>(stream, std::move(layers));
  TACIT_RETURN_IF_ERROR(net->Take(rows_max));
  TACIT_RETURN_IF_ERROR(net->Choose(products, rows_max));
  return std::unique_ptr<DeviceNet>(std::move(net));
}

}  // namespace

Result<std::unique_ptr<DeviceNet>> MakeDeviceNet(Stream& stream, ops::Precision precision,
                                                 std::vector<model::LinearLayer> layers,
                                                 uint32_t rows_max,
                                                 const ProductOptions& products) {
  constexpr uint32_t kMost = MatrixList<float>::kMost;
  if (layers.size() > kMost)
    return Fail(ErrorCode::kRefused,
                fmt::format("a network of {} layers has no form for a GPU, which takes {} at most: "
                            "set gpu.use to never, or take fewer layers",
                            layers.size(), kMost));
  if (precision == ops::Precision::kBf16)
    return MakeNet<ops::Bf16>(stream, std::move(layers), rows_max, products);
  return MakeNet<float>(stream, std::move(layers), rows_max, products);
}

DeviceNetBytes BytesOfDeviceNet(const DeviceFacts& facts, ops::Precision precision,
                                const std::vector<model::LinearLayer>& layers, uint32_t rows_max,
                                const ProductOptions& products) {
  return precision == ops::Precision::kBf16
             ? BytesOf<ops::Bf16>(facts, layers, rows_max, products.by)
             : BytesOf<float>(facts, layers, rows_max, products.by);
}

}  // namespace tacit::cuda
