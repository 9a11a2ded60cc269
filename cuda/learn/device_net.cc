#include "cuda/learn/device_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "cuda/kernels/dense/norms.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/gemm/gemm.h"
#include "cuda/kernels/gemm/gemm_library.h"
#include "cuda/kernels/rows/scales.h"

namespace tacit::cuda {
namespace {

using Use = DeviceNetOptions::Use;

// Pieces of a sum that are multiplied side by side.
constexpr uint32_t kPiecesAtOnce = 16;

// Rows of all matrices begin at multiples of 16 bytes, for every type of number.
uint64_t StrideOf(size_t cols) { return (cols + 7) / 8 * 8; }

template <class T>
constexpr bool kRoundsTo = !std::is_same_v<T, float>;

template <class T>
GemmPlan PlanOn(const DeviceFacts& facts, uint32_t m, uint32_t n, uint32_t k) {
  return PlanGemm(facts.multiprocessors, m, n, k, kRoundsTo<T> ? OwnWay(facts) : GemmWay::kMma);
}

// The floats that products work with: of a net that learns those of its largest step, of one that
// scores those of any pass, for few rows are split where many are not.
template <class T>
size_t WorkFloats(const DeviceFacts& facts, const DeviceNetOptions& options) {
  constexpr uint32_t kTile = 64;
  const uint32_t rows = options.rows_max;
  size_t work = 0;
  for (const model::LinearLayer& layer : options.layers) {
    const auto in = static_cast<uint32_t>(layer.in), out = static_cast<uint32_t>(layer.out);
    const auto add = [&](uint32_t m, uint32_t n, uint32_t k) {
      work = std::max(work, GemmWorkFloats(PlanOn<T>(facts, m, n, k), m, n));
    };
    add(rows, out, in);
    if (options.use == Use::kScore) {
      for (uint32_t few = kTile; few < rows; few += kTile) add(few, out, in);
    } else {
      add(in + 1, out, rows);
      add(rows, in, out);
    }
  }
  return work;
}

// The most parts in which the kernels of a net leave the squares of rows with these columns.
template <class T>
uint32_t SquaresPartsMost(const DeviceFacts& facts, size_t cols) {
  if (!kRoundsTo<T>) return 1;
  const auto n = static_cast<uint32_t>(cols);
  return std::max(1u, SquaresParts({.tile = 64, .way = OwnWay(facts)}, n));
}

size_t Widest(const std::vector<model::LinearLayer>& layers) {
  size_t widest = 0;
  for (const model::LinearLayer& layer : layers) widest = std::max({widest, layer.in, layer.out});
  return widest;
}

size_t LargestLayer(const std::vector<model::LinearLayer>& layers) {
  size_t largest = 0;
  for (const model::LinearLayer& layer : layers) largest = std::max(largest, layer.size());
  return largest;
}
// The floats into which the trial of products sums.
size_t TrialFloats(const std::vector<model::LinearLayer>& layers, uint32_t rows_max) {
  return std::max<size_t>(rows_max, LargestLayer(layers));
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

// The squares of a matrix's rows: left by the product that wrote them, or, in one part, to be
// formed.
class KeptSquares {
 public:
  static Result<KeptSquares> Make(Device& device, uint32_t rows_max, uint32_t parts_most) {
    KeptSquares kept;
    TACIT_ASSIGN(kept.buffer_, Buffer<double>::Make(device, size_t{rows_max} * parts_most));
    return kept;
  }
  KeptSquares() = default;
  // The place for those of a product.
  RowSquares Left(uint32_t parts, uint32_t rows) {
    are_left_ = true;
    parts_ = parts;
    return Get(rows);
  }
  // Its rows are written by another kernel.
  void Forget() {
    are_left_ = false;
    parts_ = 1;
  }
  bool are_left() const { return are_left_; }
  RowSquares Get(uint32_t rows) const { return {buffer_.span().data, parts_, rows, rows}; }

 private:
  Buffer<double> buffer_;
  bool are_left_ = false;
  uint32_t parts_ = 1;
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
  Net(Stream& stream, DeviceNetOptions options) : stream_(stream), options_(std::move(options)) {}

  Status Take();
  // Decides what multiplies. Called once, after Take.
  Status Choose();

  Status Input(const GatherInput& from, uint32_t rows) override {
    rows_ = rows;
    input_squares_[0].Forget();
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
    gradient_squares_.back().Forget();
    TACIT_RETURN_IF_ERROR(AddBias<T>(stream_, last, {}, false, gradient_.back().First(rows_)));
    for (size_t l = layers_.size() - 1; l > 0; --l) TACIT_RETURN_IF_ERROR(PutLayerBackward(l));
    auto first_rows = Factor(0);
    first_rows.rows = input_gradient.cols;
    return Multiply(Form::kAsIs, gradient_[0].First(rows_), Form::kTransposed, first_rows, 0,
                    input_gradient);
  }

  Status SquaredNorms(DeviceSpan<const uint32_t> unit_end, bool one_row_each,
                      DeviceSpan<float> out) override {
    TACIT_RETURN_IF_ERROR(SquareMissing());
    const MatrixList<const double> of_a = All(input_squares_), of_g = All(gradient_squares_);
    if (one_row_each) return OneRowNorms(stream_, unit_end, of_a, of_g, out);
    const auto own = own_.span().Sub(0, layers_.size() * rows_);
    TACIT_RETURN_IF_ERROR(RowGradientNorms(stream_, of_a, of_g, own));
    TACIT_RETURN_IF_ERROR(UnitSquaredNorms<T>(stream_, unit_end, MatrixList<const T>(All(input_)),
                                              MatrixList<const T>(All(gradient_)), own, out));
    return BoundByRows(stream_, unit_end, own, rows_, kRounding, out);
  }

  Status Clear(DeviceSpan<const uint8_t> bounded, DeviceSpan<const uint32_t> unit_of,
               DeviceMatrix<float> input_gradient) override {
    return ClearUnbounded<T>(stream_, bounded, unit_of, All(input_), All(gradient_),
                             input_gradient);
  }

  Status SumOnGrid(DeviceSpan<const float> scale, const DevicePieces& pieces, double per_step,
                   DeviceSpan<int64_t> sums, const Summed& summed) override {
    const MatrixList<T> gradients = All(gradient_);
    TACIT_RETURN_IF_ERROR(ScaleRows<T>(stream_, scale, gradients, gradients));
    for (size_t l = layers_.size(); l-- > 0;) {
      const size_t size = layers_[l].size();
      const auto open = open_.span().Sub(layers_[l].offset, size);
      const auto of_layer = sums.Sub(layers_[l].offset, size);
      GemmPieces some{.end = pieces.end};
      for (; some.first < pieces.end.size; some.first += some.count) {
        some.count = std::min<uint32_t>(kPiecesAtOnce, pieces.end.size - some.first);
        const auto work = pieces_work_.span().Sub(0, some.count * size);
        TACIT_RETURN_IF_ERROR(MultiplyPieces(input_[l].First(rows_), gradients.at[l], some, work));
        TACIT_RETURN_IF_ERROR(
            AddPieces(stream_, some, pieces.closes, work, per_step, open, of_layer));
      }
      TACIT_RETURN_IF_ERROR(summed(l));
    }
    return {};
  }

  Status Sum(DeviceSpan<const float> scale, float beta, DeviceSpan<float> sums,
             const Summed& summed) override {
    const MatrixList<T> gradients = All(gradient_);
    if (scale.size > 0) TACIT_RETURN_IF_ERROR(ScaleRows<T>(stream_, scale, gradients, gradients));
    for (size_t l = layers_.size(); l-- > 0;) {
      const DeviceMatrix<float> sum(sums.data + layers_[l].offset, In(l) + 1, Out(l), Out(l));
      TACIT_RETURN_IF_ERROR(Multiply(Form::kTransposed, input_[l].First(rows_), Form::kAsIs,
                                     gradients.at[l], beta, sum));
      TACIT_RETURN_IF_ERROR(summed(l));
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
  MatrixList<double> All(const std::vector<KeptSquares>& of_layers) const {
    MatrixList<double> all;
    for (const KeptSquares& squares : of_layers) all.Add(squares.Get(rows_));
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
  // A product of rows is not split in a net that learns privately: how it is would depend on how
  // many rows there are, and with it the last bits of each. Others are split no more than there is
  // work for.
  GemmPlan PlanOf(uint32_t m, uint32_t n, uint32_t k) const {
    GemmPlan plan = PlanOn<T>(stream_.device().facts(), m, n, k);
    if (options_.use == Use::kLearnPrivately) plan.splits = 1;
    while (plan.splits > 1 && GemmWorkFloats(plan, m, n) > work_.size()) --plan.splits;
    return plan;
  }
  Status Multiply(Form form_a, DeviceMatrix<const T> a, Form form_b, DeviceMatrix<const T> b,
                  float beta, DeviceMatrix<float> c) {
    const uint32_t k = form_a == Form::kTransposed ? a.rows : a.cols;
    if constexpr (kRounds) {
      // The library refuses sums of nothing.
      if (library_ != nullptr && k > 0)
        return GemmByLibrary(*library_, form_a, a, form_b, b, beta, c);
    }
    const GemmPlan plan = PlanOf(c.rows, c.cols, k);
    if constexpr (kRounds)
      return Gemm16(stream_, form_a, a, form_b, b, beta, c, plan, work_.span());
    else
      return Gemm32(stream_, form_a, a, form_b, b, beta, c, plan, work_.span());
  }

  Status MultiplyPieces(DeviceMatrix<const T> a, DeviceMatrix<const T> b, const GemmPieces& pieces,
                        DeviceSpan<float> work) {
    if constexpr (kRounds)
      return Gemm16Pieces(stream_, a, b, pieces, work);
    else
      return Gemm32Pieces(stream_, a, b, pieces, work);
  }

  // Says whether the product's own kernel may write what becomes of it: ours does, where no part of
  // k has a block of its own.
  bool EndsItself(const GemmPlan& plan) const {
    return kRounds && library_ == nullptr && plan.splits == 1;
  }
  // The place for the squares of a product's rows: none, if nobody will ask.
  RowSquares SquaresOf(const GemmPlan& plan, uint32_t n, uint32_t k, KeptSquares& kept) {
    if (options_.use != Use::kLearnPrivately || k == 0) return {};
    return kept.Left(SquaresParts(plan, n), rows_);
  }
  // Forms the squares that no product left.
  Status SquareMissing() const {
    MatrixList<const T> x;
    MatrixList<double> squares;
    const auto form = [&] {
      Status done = SquareRows<T>(stream_, x, squares);
      x = {};
      squares = {};
      return done;
    };
    const auto add = [&](const Rows<T>& rows, const KeptSquares& kept) -> Status {
      if (kept.are_left()) return {};
      x.Add(rows.First(rows_));
      squares.Add(kept.Get(rows_));
      return x.count == x.kMost ? form() : Status();
    };
    for (size_t l = 0; l < layers_.size(); ++l) {
      TACIT_RETURN_IF_ERROR(add(input_[l], input_squares_[l]));
      TACIT_RETURN_IF_ERROR(add(gradient_[l], gradient_squares_[l]));
    }
    return form();
  }
  // The layer's outputs: the next one's inputs, or the logits.
  Status PutLayer(size_t l, DeviceSpan<const float> bias, DeviceSpan<float> logits) {
    const bool last = l + 1 == layers_.size();
    const DeviceMatrix<float> of_logits(logits.data, rows_, 1, 1);
    const GemmPlan plan = PlanOf(rows_, Out(l), In(l));
    if (!last) input_squares_[l + 1].Forget();
    if constexpr (kRounds) {
      if (EndsItself(plan))
        return last
                   ? Gemm16AddBias(stream_, Inputs(l), Factor(l), bias, of_logits, plan)
                   : Gemm16Activate(stream_, Inputs(l), Factor(l), bias, input_[l + 1].First(rows_),
                                    plan, SquaresOf(plan, Out(l), In(l), input_squares_[l + 1]));
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
    gradient_squares_[l - 1].Forget();
    if constexpr (kRounds) {
      if (EndsItself(plan))
        return Gemm16ReluBackward(stream_, gradient_[l].First(rows_), Factor(l), Inputs(l), kept,
                                  plan, SquaresOf(plan, In(l), Out(l), gradient_squares_[l - 1]));
    }
    const auto raw = Raw(kept);
    TACIT_RETURN_IF_ERROR(
        Multiply(Form::kAsIs, gradient_[l].First(rows_), Form::kTransposed, Factor(l), 0, raw));
    return ReluBackward<T>(stream_, Inputs(l), raw, kept);
  }

  Status PutAllProducts(DeviceSpan<float> sums);

  Stream& stream_;
  const DeviceNetOptions options_;
  const std::vector<model::LinearLayer>& layers_ = options_.layers;
  Blas* library_ = nullptr;  // what multiplies; if null, our own
  uint32_t rows_ = 0;
  DeviceSpan<const float> dense_;
  // Per layer. Where the net only scores, gradients have no memory, nor have squares.
  std::vector<Rows<T>> input_, gradient_;
  std::vector<KeptSquares> input_squares_, gradient_squares_;
  std::vector<Rows<T>> rounded_;  // weights, for bf16
  Rows<float> raw_;               // for bf16
  Buffer<double> own_;
  Buffer<float> work_;
  // For private learning: pieces' products, and blocks' sums so far.
  Buffer<float> pieces_work_;
  Buffer<double> open_;
  std::unique_ptr<Blas> kept_library_;
};

template <class T>
Status Net<T>::Take() {
  TACIT_CHECK(!layers_.empty() && layers_.back().out == 1, "a net ends in one logit");
  Device& device = stream_.device();
  const uint32_t rows_max = options_.rows_max;
  const bool learns = options_.use != Use::kScore;
  input_squares_.resize(layers_.size());
  gradient_squares_.resize(layers_.size());
  const auto square = [&](size_t cols, KeptSquares* squares) -> Status {
    TACIT_ASSIGN(*squares,
                 KeptSquares::Make(device, rows_max, SquaresPartsMost<T>(device.facts(), cols)));
    return {};
  };
  for (size_t l = 0; l < layers_.size(); ++l) {
    const model::LinearLayer& layer = layers_[l];
    TACIT_ASSIGN(Rows<T> input, Rows<T>::Make(device, rows_max, layer.in + 1));
    input_.push_back(std::move(input));
    if (learns) {
      TACIT_ASSIGN(Rows<T> gradient, Rows<T>::Make(device, rows_max, layer.out));
      gradient_.push_back(std::move(gradient));
      TACIT_RETURN_IF_ERROR(square(layer.in, &input_squares_[l]));
      TACIT_RETURN_IF_ERROR(square(layer.out, &gradient_squares_[l]));
    }
    if (!kRounds) continue;
    TACIT_ASSIGN(Rows<T> rounded, Rows<T>::Make(device, layer.in, layer.out));
    rounded_.push_back(std::move(rounded));
  }
  if (kRounds) {
    TACIT_ASSIGN(raw_, Rows<float>::Make(device, rows_max, Widest(layers_)));
  }
  if (learns) {
    TACIT_ASSIGN(own_, Buffer<double>::Make(device, layers_.size() * rows_max));
  }
  TACIT_ASSIGN(work_, Buffer<float>::Make(device, WorkFloats<T>(device.facts(), options_)));
  if (!learns) return {};
  TACIT_ASSIGN(pieces_work_, Buffer<float>::Make(device, kPiecesAtOnce * LargestLayer(layers_)));
  TACIT_ASSIGN(open_, Buffer<double>::Make(device, layers_.back().offset + layers_.back().size()));
  return stream_.Fill(open_.span(), 0);
}

// As Take and Choose take it.
template <class T>
DeviceNetBytes BytesOf(const DeviceFacts& facts, const DeviceNetOptions& options) {
  const uint64_t rows_max = options.rows_max;
  const bool learns = options.use != Use::kScore;
  MemoryNeed need(facts.memory_piece_bytes);
  for (const model::LinearLayer& layer : options.layers) {
    need.Add<T>(rows_max * StrideOf(layer.in + 1));
    if (learns)
      need.Add<T>(rows_max * StrideOf(layer.out))
          .template Add<double>(rows_max * SquaresPartsMost<T>(facts, layer.in))
          .template Add<double>(rows_max * SquaresPartsMost<T>(facts, layer.out));
    if (kRoundsTo<T>) need.Add<T>(layer.in * StrideOf(layer.out));
  }
  if (kRoundsTo<T>) need.Add<float>(rows_max * StrideOf(Widest(options.layers)));
  if (learns) need.Add<double>(options.layers.size() * rows_max);
  need.Add<float>(WorkFloats<T>(facts, options));
  if (learns)
    need.Add<float>(kPiecesAtOnce * LargestLayer(options.layers))
        .template Add<double>(options.layers.back().offset + options.layers.back().size());
  const bool tries = kRoundsTo<T> && options.products.by != train::GpuProducts::kOwn;
  if (tries) need.Add<uint8_t>(kBlasWorkspaceBytes);
  const uint64_t kept = need.bytes();
  if (tries) need.Add<float>(TrialFloats(options.layers, options.rows_max));
  return {.kept = kept, .making = need.bytes()};
}

// A step's three products per layer with their ends, of what lies there, as Forward, Backward and
// Sum put them, and the squares that they do not leave; or the products that score. `sums` are
// biases and logits as well.
template <class T>
Status Net<T>::PutAllProducts(DeviceSpan<float> sums) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    TACIT_RETURN_IF_ERROR(PutLayer(l, sums.Sub(0, layers_[l].out), sums));
    if (options_.use == Use::kScore) continue;
    if (l > 0) {
      TACIT_RETURN_IF_ERROR(PutLayerBackward(l));
    } else {
      TACIT_RETURN_IF_ERROR(Multiply(Form::kAsIs, gradient_[0].First(rows_), Form::kTransposed,
                                     Factor(0), 0, FirstColumns(raw_.First(rows_), layers_[0].in)));
    }
    // Pieces of private sums are multiplied by our own kernel in any case.
    if (options_.use == Use::kLearnPrivately) continue;
    TACIT_RETURN_IF_ERROR(Multiply(Form::kTransposed, input_[l].First(rows_), Form::kAsIs,
                                   gradient_[l].First(rows_), 0,
                                   {sums.data, In(l) + 1, Out(l), Out(l)}));
  }
  return options_.use == Use::kLearnPrivately ? SquareMissing() : Status();
}

template <class T>
Status Net<T>::Choose() {
  const ProductOptions& products = options_.products;
  if (!kRounds || products.by == train::GpuProducts::kOwn) return {};
  // The trial multiplies numbers of a usual size, and its sums go where nothing else is.
  constexpr uint8_t kByte = 0x3f;  // twice: .75 in bf16
  TACIT_ASSIGN(const auto sums,
               Buffer<float>::Make(stream_.device(), TrialFloats(layers_, options_.rows_max)));
  TACIT_RETURN_IF_ERROR(stream_.Fill(sums.span(), kByte));
  for (auto* of_layers : {&input_, &gradient_, &rounded_})
    for (Rows<T>& rows : *of_layers) TACIT_RETURN_IF_ERROR(stream_.Fill(rows.all(), kByte));
  rows_ = products.usual_rows > 0 ? std::min(products.usual_rows, options_.rows_max)
                                  : options_.rows_max;
  TACIT_ASSIGN(kept_library_, ChooseProducts(stream_, products, [&](Blas* library) {
                 library_ = library;
                 return PutAllProducts(sums.span());
               }));
  library_ = kept_library_.get();
  return stream_.Synchronize();
}

template <class T>
Result<std::unique_ptr<DeviceNet>> MakeNet(Stream& stream, DeviceNetOptions options) {
  auto net = std::make_unique<Net<T>>(stream, std::move(options));
  TACIT_RETURN_IF_ERROR(net->Take());
  TACIT_RETURN_IF_ERROR(net->Choose());
  return std::unique_ptr<DeviceNet>(std::move(net));
}

}  // namespace

Result<std::unique_ptr<DeviceNet>> MakeDeviceNet(Stream& stream, DeviceNetOptions options) {
  constexpr uint32_t kMost = MatrixList<float>::kMost;
  if (options.layers.size() > kMost)
    return Fail(ErrorCode::kRefused,
                fmt::format("a network of {} layers has no form for a GPU, which takes {} at most: "
                            "set gpu.use to never, or take fewer layers",
                            options.layers.size(), kMost));
  if (options.precision == ops::Precision::kBf16)
    return MakeNet<ops::Bf16>(stream, std::move(options));
  return MakeNet<float>(stream, std::move(options));
}

DeviceNetBytes BytesOfDeviceNet(const DeviceFacts& facts, const DeviceNetOptions& options) {
  return options.precision == ops::Precision::kBf16 ? BytesOf<ops::Bf16>(facts, options)
                                                    : BytesOf<float>(facts, options);
}

}  // namespace tacit::cuda
